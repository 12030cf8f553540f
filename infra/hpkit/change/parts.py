"""What a guard says of teams, NodePools, add-ons and NAT gateways that the file does not name any more."""

from collections.abc import Iterator
from typing import Final

from hpkit.change.judgement import Judgement, deletion_fix
from hpkit.change.recorded import Recorded
from hpkit.plan.protected import parts_allowed, parts_of

__all__ = ["judged_parts"]

_CODES: Final = {
    "teams": "team-leaves",
    "nodePools": "node-pool-leaves",
    "addons": "addon-leaves",
    "natGateways": "nat-gateway-leaves",
}


def judged_parts(before: Recorded, after: Recorded) -> Iterator[Judgement]:
    """Yield what is said of each part that leaves, or that is another one under a new name of the API."""
    allowed = set(parts_allowed(after.plan))
    staying = {name: called for name, (called, _) in parts_of(after.plan).items()}
    for part, (called, words) in parts_of(before.plan).items():
        if staying.get(part) == called:
            continue
        kind, _, name = part.partition("/")
        named = part in allowed
        fix = deletion_fix(kind, name, named=named)
        anew = f", and made anew as {staying[part]}" if part in staying else ""
        yield Judgement(_CODES[kind], name, name, f"{words} is deleted{anew}", fix, refused=not named)

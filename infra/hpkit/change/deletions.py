"""What a guard says of teams, NodePools, add-ons and NAT gateways that the file does not name any more."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from hpkit.change.decision import GuardDecision, deletion_allowance, deletion_fix
from hpkit.change.recorded import Recorded
from hpkit.plan.protected import parts_allowed, parts_of

__all__ = ["CODES", "deletion_decisions"]

# Each by its key in `allowDelete`: the code of its decision, and what it goes with, as `allowReplace` calls that.
CODES: Final = {
    "teams": "team-leaves",
    "nodePools": "node-pool-leaves",
    "addons": "addon-leaves",
    "natGateways": "nat-gateway-leaves",
}
_GOES_WITH: Final = {"teams": "cluster", "nodePools": "cluster", "addons": "eks", "natGateways": "vpc"}


def deletion_decisions(
    resources: Sequence[GuardDecision], before: Recorded, after: Recorded
) -> tuple[list[GuardDecision], list[GuardDecision]]:
    """Return the decisions about resources, and those about each deletion.

    A loss is said once: a team that goes with a refused cluster is not refused again, the cluster's decision names both
    allowances.
    """
    refused = {each.key for each in resources if each.refused}
    deletions: list[GuardDecision] = []
    included: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for kind, decision in _deletions(before, after):
        larger = _GOES_WITH[kind]
        if larger not in refused:
            deletions.append(decision)
        elif decision.refused:
            included[larger][kind].append(decision.subject)
    return [_with_allowance(each, included[each.key]) for each in resources], deletions


def _with_allowance(decision: GuardDecision, included: dict[str, list[str]]) -> GuardDecision:
    if not included:
        return decision
    return replace(decision, fix=f"{decision.fix}; it also needs {deletion_allowance(included)}")


def _deletions(before: Recorded, after: Recorded) -> Iterator[tuple[str, GuardDecision]]:
    """Yield what is deleted, or is another one under a new name of the API; each with its key in `allowDelete`."""
    allowed = set(parts_allowed(after.plan))
    staying = {name: called for name, (called, _) in parts_of(after.plan).items()}
    for part, (called, words) in parts_of(before.plan).items():
        if staying.get(part) == called:
            continue
        kind, _, name = part.partition("/")
        named = part in allowed
        fix = deletion_fix(kind, name, named=named)
        anew = f", and made anew as {staying[part]}" if part in staying else ""
        yield kind, GuardDecision(CODES[kind], name, name, f"{words} is deleted{anew}", fix, refused=not named)

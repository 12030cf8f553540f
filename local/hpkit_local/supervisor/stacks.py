"""Lists the stacks on an instance from Pulumi's files: without an engine, so that it's fast."""

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpkit.program.teardown import resources_in
from hpkit_local.supervisor.instance import Instance

__all__ = ["StackThere", "reads_of", "stacks_of", "stacks_up"]

_UNREADABLE = (OSError, ValueError, KeyError, TypeError, AttributeError)


@dataclass(frozen=True)
class StackThere:
    """A stack that Pulumi knows on an instance.

    resources: how many it has. region: "" if it isn't known. unfinished: how many a killed run began to create.
    """

    name: str
    resources: int
    region: str
    unfinished: int = 0


def stacks_of(instance: Instance) -> list[StackThere]:
    """Return the stacks that Pulumi knows there, including empty ones.

    The files are those of Pulumi's own backend for folders: `.pulumi/stacks/<project>/<stack>.json`
    (https://www.pulumi.com/docs/iac/concepts/state-and-backends/#local-filesystem).
    """
    folder = instance.state_folder / ".pulumi" / "stacks"
    found = (_read(file) for file in sorted(folder.glob("*/*.json")))
    return [each for each in found if each is not None]


def stacks_up(instance: Instance) -> list[StackThere]:
    """Return the stacks that have something there."""
    return [each for each in stacks_of(instance) if each.resources]


def reads_of(instance: Instance, stack: str) -> frozenset[str]:
    """Return the URNs of what the stack's program only reads, as of the last change of the stack."""
    for file in (instance.state_folder / ".pulumi" / "stacks").glob(f"*/{stack}.json"):
        with suppress(*_UNREADABLE):
            return frozenset(str(each["urn"]) for each in _resources(file) if each.get("external"))
    return frozenset()


def _resources(file: Path) -> list[dict[str, Any]]:
    return _latest(file).get("resources") or []


def _latest(file: Path) -> dict[str, Any]:
    checkpoint = json.loads(file.read_text(encoding="utf-8"))["checkpoint"]
    # `pulumi stack import` writes it in capitals (Pulumi 3.200), because Go's decoder ignores case.
    return checkpoint.get("latest") or checkpoint.get("Latest") or {}


def _read(file: Path) -> StackThere | None:
    try:
        latest = _latest(file)
        resources = latest.get("resources") or []
        pending = [each for each in latest.get("pending_operations") or () if each["type"] == "creating"]
        providers = [each for each in resources if each.get("type") == "pulumi:providers:aws"]
        regions = [each.get("inputs", {}).get("region") for each in providers]
        region = next((str(each) for each in regions if each), "")
        return StackThere(file.stem, len(resources_in(resources)), region, len(pending))
    except _UNREADABLE:
        # Another version of Pulumi might write another format; Pulumi itself is called before any change.
        return None

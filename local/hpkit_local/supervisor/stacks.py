"""Which stacks are on an instance, read from what Pulumi keeps there: without an engine, so that it takes no time."""

import json
from dataclasses import dataclass
from pathlib import Path

from hpkit.program.teardown import resources_in
from hpkit_local.supervisor.instance import Instance

__all__ = ["StackThere", "stacks_of", "stacks_up"]


@dataclass(frozen=True)
class StackThere:
    """A stack that Pulumi knows on an instance: how many resources it has; region is "" where none is known."""

    name: str
    resources: int
    region: str


def stacks_of(instance: Instance) -> list[StackThere]:
    """Return the stacks that Pulumi knows there, empty ones too.

    The files are those of Pulumi's own backend for folders: `.pulumi/stacks/<project>/<stack>.json`
    (https://www.pulumi.com/docs/iac/concepts/state-and-backends/#local-filesystem).
    """
    folder = instance.state_folder / ".pulumi" / "stacks"
    found = (_read(file) for file in sorted(folder.glob("*/*.json")))
    return [each for each in found if each is not None]


def stacks_up(instance: Instance) -> list[StackThere]:
    """Return the stacks that have something there."""
    return [each for each in stacks_of(instance) if each.resources]


def _read(file: Path) -> StackThere | None:
    try:
        latest = json.loads(file.read_text(encoding="utf-8"))["checkpoint"].get("latest") or {}
        resources = latest.get("resources") or []
        providers = [each for each in resources if each.get("type") == "pulumi:providers:aws"]
        regions = [each.get("inputs", {}).get("region") for each in providers]
        return StackThere(file.stem, len(resources_in(resources)), next((str(each) for each in regions if each), ""))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        # Another version of Pulumi may write otherwise; Pulumi itself is asked before anything is done.
        return None

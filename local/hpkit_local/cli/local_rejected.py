"""Further reasons to reject a change: the engine stops at the first resource whose plugin rejects it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hpkit.plan.model import Plan
from hpkit.plan.protected import allowed_in
from hpkit.program.recording import record
from hpkit_provider.resources.change_guard import rejection
from hpkit_provider.resources.cluster.protection import deletion_rejected, removed_groups, with_instances

__all__ = ["also_rejected", "rejections"]


def also_rejected(state: Sequence[Mapping[str, Any]], plan: Plan, errors: Sequence[str]) -> list[str]:
    """Return the reasons that the organization file alone decides and that none of the run's errors has."""
    inputs = {(each.type, each.name): dict(each.inputs) for each in record(plan).resources.values()}
    return [each for each in rejections(state, inputs, allowed_in(plan)) if not any(each in error for error in errors)]


def rejections(
    state: Sequence[Mapping[str, Any]], inputs: Mapping[tuple[str, str], dict[str, Any]], where: str
) -> Iterator[str]:
    """Yield why guards and the cluster reject new inputs, by type and name, of resources in a state."""
    for each in state:
        old, new = each.get("inputs", {}), inputs.get((each["type"], each["urn"].rpartition("::")[2]))
        # Live IDs, which other guards compare, aren't known before the run.
        if new is not None and each["type"] == "hyperpod:index:ChangeGuard" and "identity" not in new:
            if reason := rejection(old, new):
                yield reason
        elif new is not None and each["type"] == "hyperpod:index:Cluster":
            allowed = new.get("allowDeleteInstanceGroups", [])
            removed = with_instances(removed_groups(old, new, each.get("outputs", {})), None)
            if groups := [group for group in removed if group.name not in allowed]:
                yield deletion_rejected(groups, allowed, where=where)

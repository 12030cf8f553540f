"""Instance groups whose nodes run the pods of add-ons: an `up` waits for them."""

from __future__ import annotations

from typing import Final

from hpkit.catalog import find_instance_type
from hpkit.config.models.cluster import InstanceGroup
from hpkit.plan.model import Plan

__all__ = ["awaited_groups", "taints_against_addons"]

_KEEPS_AWAY: Final = ("NoSchedule", "NoExecute")
# Of EKS's CoreDNS add-on.
_TOLERATED: Final = ("CriticalAddonsOnly", "node-role.kubernetes.io/control-plane")


def taints_against_addons(group: InstanceGroup) -> list[str]:
    """Return the keys of a group's taints that CoreDNS and the add-ons don't tolerate."""
    return [taint.key for taint in group.taints if taint.effect in _KEEPS_AWAY and taint.key not in _TOLERATED]


def awaited_groups(plan: Plan) -> tuple[InstanceGroup, ...]:
    """Return the groups that add-ons need: groups without accelerators, if any of them have nodes.

    Otherwise, those without deep health checks, which take hours. Empty if only Karpenter adds nodes.
    """
    static = [group.spec for group in plan.groups if not group.autoscaled and group.spec.instance_count]
    open_groups = [group for group in static if not taints_against_addons(group)]
    soon = [group for group in open_groups if not group.deep_health_checks]
    return tuple([group for group in soon if not _has_accelerators(group)] or soon or open_groups)


def _has_accelerators(group: InstanceGroup) -> bool:
    known = [find_instance_type(each) for each in group.types]
    return any(each is None or each.accelerators for each in known)

"""Explains an instance group: its nodes, what manages their number, and which teams' quota depends on it."""

from dataclasses import dataclass

from hpkit.catalog import InstanceType
from hpkit.errors import SelectionError
from hpkit.plan.capacity import TypeQuota
from hpkit.plan.derive import instances_of, quotas_of
from hpkit.plan.model import GroupPlan, Plan, RestrictedGroupPlan
from hpkit.text.spelling import hint

__all__ = ["GroupExplanation", "explain_group"]


@dataclass(frozen=True, slots=True)
class GroupExplanation:
    """An instance group in one environment.

    node_pools: the NodePools that add nodes to it. quotas: capacity and teams' quota of its types, over all groups with
    those types; empty for a restricted group, which quotas don't count.
    """

    plan: Plan
    group: GroupPlan | RestrictedGroupPlan
    instances: tuple[InstanceType, ...]
    node_pools: tuple[str, ...]
    quotas: tuple[TypeQuota, ...]

    @property
    def node_class(self) -> str | None:
        """Return the NodeClass that contains the group, or None if Karpenter doesn't manage its count."""
        return self.group.node_class if isinstance(self.group, GroupPlan) else None


def explain_group(plan: Plan, name: str) -> GroupExplanation:
    """Return the explanation of an instance group. Raises SelectionError if it doesn't exist."""
    group = next((each for each in plan.all_groups if each.spec.name == name), None)
    if group is None:
        suggestion = hint(name, (each.spec.name for each in plan.all_groups))
        raise SelectionError(f"{plan.stack} has no instance group {name}; {suggestion}")
    capacities = instances_of(plan)
    node_class = group.node_class if isinstance(group, GroupPlan) else None
    counted = set(group.spec.types) if isinstance(group, GroupPlan) else set()
    return GroupExplanation(
        plan=plan,
        group=group,
        instances=tuple(capacities[each] for each in group.spec.types if each in capacities),
        node_pools=tuple(
            pool.spec.name
            for pool in plan.node_pools
            if node_class is not None and pool.spec.node_class == node_class and counted & set(pool.instance_types)
        ),
        quotas=tuple(quota for quota in quotas_of(plan) if quota.instance_type in counted),
    )

"""What a plan needs of the account in numbers: instances, interfaces, volumes."""

from collections.abc import Iterable
from dataclasses import dataclass

from hpkit.catalog import find_instance_type
from hpkit.plan.capacity import pool_instances
from hpkit.plan.model import GroupPlan, NodePoolPlan, Plan

__all__ = ["FlexibleNeed", "InstanceNeed", "instance_needs", "interface_need", "total_need", "volume_need"]

# Services whose VPC endpoints are routes; every other one is a network interface in each zone.
_GATEWAY_ENDPOINTS = frozenset(("s3", "dynamodb"))
# EKS puts two to four interfaces of its control plane into the VPC (EKS user guide, network requirements).
_CONTROL_PLANE_INTERFACES = 4


@dataclass(frozen=True, slots=True)
class InstanceNeed:
    """Instances of one type; guaranteed stands always, maximum is None where no NodePool limit bounds Karpenter."""

    instance_type: str
    spot: bool
    guaranteed: int
    maximum: int | None


@dataclass(frozen=True, slots=True)
class FlexibleNeed:
    """A static group that takes its count from several types."""

    group: str
    instance_types: tuple[str, ...]
    spot: bool
    count: int


def instance_needs(plan: Plan) -> tuple[tuple[InstanceNeed, ...], tuple[FlexibleNeed, ...]]:
    """Return needs by type and kind of capacity, and those of flexible groups, which any of their types may serve."""
    fixed: dict[tuple[str, bool], int] = {}
    grown: dict[tuple[str, bool], int | None] = {}
    flexible = []
    for group in plan.groups:
        types = tuple(dict.fromkeys(group.spec.types))
        if group.autoscaled:
            for name in types:
                fixed.setdefault((name, _spot(group)), 0)
        elif len(types) == 1:
            fixed[types[0], _spot(group)] = fixed.get((types[0], _spot(group)), 0) + group.spec.instance_count
        else:
            flexible.append(FlexibleNeed(group.spec.name, types, _spot(group), group.spec.instance_count))
    for pool in plan.node_pools:
        for key in _kinds(plan, pool):
            grown[key] = _sum((grown.get(key, 0), _bound(pool, key[0])))
    needs = tuple(
        InstanceNeed(*key, guaranteed=count, maximum=_sum((count, grown.get(key, 0))))
        for key, count in sorted(fixed.items())
    )
    return needs, tuple(flexible)


def total_need(plan: Plan, *, spot_only: bool = False) -> tuple[int, int | None]:
    """Return the instances of the whole cluster: guaranteed, and the most with Karpenter."""
    counted = [group for group in plan.groups if _spot(group) or not spot_only]
    guaranteed = sum(group.spec.instance_count for group in counted if not group.autoscaled)
    grown: int | None = 0
    for pool in plan.node_pools:
        names = {name for name, spot in _kinds(plan, pool) if spot or not spot_only}
        bounds = [_bound(pool, name) for name in sorted(names)]
        # A limit bounds all types of a pool together: alone, the smallest type gives the most nodes.
        most = None if None in bounds else max((bound for bound in bounds if bound is not None), default=0)
        grown = _sum((grown, most))
    return guaranteed, _sum((guaranteed, grown))


def interface_need(plan: Plan) -> tuple[int, bool]:
    """Return the network interfaces that the stack adds at least, and whether that is all that is known of it.

    A node counts one, or one for each EFA interface where the catalog knows them. Where nothing bounds Karpenter, only
    the guaranteed nodes count.
    """
    needs, flexible = instance_needs(plan)
    counts: list[tuple[tuple[str, ...], int]] = [(need.instance_types, need.count) for need in flexible]
    counts += [((need.instance_type,), need.guaranteed if need.maximum is None else need.maximum) for need in needs]
    whole = all(need.maximum is not None for need in needs)
    total = 0
    for names, count in counts:
        known = [instance.efa_interfaces for name in names if (instance := find_instance_type(name))]
        whole = whole and len(known) == len(names) and None not in known
        total += count * max((number or 1 for number in known), default=1)
    if plan.network.vpc_id is None:
        endpoints = [each for each in plan.network.endpoints if each not in _GATEWAY_ENDPOINTS]
        total += plan.network.nat_gateways + len(endpoints) * len(plan.network.zones)
    if plan.spec.eks.existing is None:
        total += _CONTROL_PLANE_INTERFACES
    return total, whole


def volume_need(plan: Plan) -> int | None:
    """Return the largest extra volume of a node in GiB, None when no group has one."""
    return max((group.spec.ebs_volume_gib for group in plan.groups if group.spec.ebs_volume_gib), default=None)


def _kinds(plan: Plan, pool: NodePoolPlan) -> Iterable[tuple[str, bool]]:
    """Return the (type, spot) that a pool can add."""
    return sorted(
        {
            (name, _spot(group))
            for group in plan.groups
            if group.node_class == pool.spec.node_class
            for name in group.spec.types
            if name in pool.instance_types
        }
    )


def _bound(pool: NodePoolPlan, instance_type: str) -> int | None:
    instance = find_instance_type(instance_type)
    return None if instance is None else pool_instances(pool.spec.limits, instance)


def _sum(parts: Iterable[int | None]) -> int | None:
    total = 0
    for part in parts:
        if part is None:
            return None
        total += part
    return total


def _spot(group: GroupPlan) -> bool:
    return group.spec.capacity_type == "Spot"

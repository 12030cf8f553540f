"""Monthly on-demand cost of a plan: permanent instances, Karpenter's maximum, and the rest of the platform.

Spot, training plans, root volumes, data transfer, logs and metrics aren't included.
"""

import datetime
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal

from hpkit.catalog import cluster_hour, find_instance_type, find_kubernetes_version
from hpkit.catalog.prices import HOURS_PER_MONTH, Price, near_price, region_prices
from hpkit.changes.review.model import Cost
from hpkit.plan.capacity import pods_on, pool_instances
from hpkit.plan.model import GroupPlan, NodePoolPlan, Plan, RestrictedGroupPlan

__all__ = [
    "FindPrice",
    "PlatformItem",
    "group_cost",
    "maximum_cost",
    "minimum_cost",
    "nat_data_price",
    "platform_cost",
    "platform_items",
    "pool_cost",
    "ready_cost",
    "ready_nodes",
    "total",
]

FindPrice = Callable[[str, str], Price | None]


def minimum_cost(plan: Plan, find: FindPrice = near_price) -> Cost:
    """Return the cost of permanent nodes: groups by their counts, and warm pools."""
    region = plan.spec.region
    return total([_groups(plan, find), *(ready_cost(pool, region, find) for pool in plan.node_pools)])


def maximum_cost(plan: Plan, find: FindPrice = near_price) -> Cost:
    """Return the minimum cost plus every NodePool filled to its limits with its dearest type."""
    pools = [pool_cost(pool, plan, find) for pool in plan.node_pools if pool.instance_types]
    return total([_groups(plan, find), *pools])


@dataclass(frozen=True, slots=True)
class PlatformItem:
    """Something that a stack creates in addition to instances: number, and price in the price list, per month.

    key: name of the price in `hpkit.catalog.price_list`. label: its name, after the number.
    """

    key: str
    count: int
    label: str
    per_month: int = HOURS_PER_MONTH


def platform_items(plan: Plan) -> tuple[PlatformItem, ...]:
    """Return NAT gateways, interface endpoints, additional volumes and Lustre that a stack has."""
    storage = plan.spec.storage
    interfaces = len(plan.network.zones) * sum(service != "s3" for service in plan.network.endpoints)
    items = [
        PlatformItem("natGatewayHour", plan.network.nat_gateways, "× NAT gateway"),
        PlatformItem("interfaceEndpointHour", interfaces, "× interface endpoint in a zone"),
        PlatformItem("hyperPodVolumeGbMonth", _volumes(plan), "GiB of additional volumes", 1),
    ]
    if storage is not None and storage.lustre is not None and storage.lustre.existing is None:
        throughput, size = storage.lustre.per_unit_storage_throughput, storage.lustre.storage_capacity_gib
        label = f"GiB of FSx for Lustre, {throughput} MB/s/TiB"
        items.append(PlatformItem(f"lustreGbMonth.{throughput}", size, label, 1))
    return tuple(item for item in items if item.count)


def platform_cost(plan: Plan, today: datetime.date | None = None) -> Cost:
    """Return what a stack creates in addition to instances: EKS and the items.

    today: decides whether the Kubernetes version is in extended support; without it, it isn't.
    """
    region = plan.spec.region
    return total([_eks_cost(plan, today), *(_item_cost(item, region) for item in platform_items(plan))])


def _eks_cost(plan: Plan, today: datetime.date | None) -> Cost | None:
    if plan.spec.eks.existing is not None:
        return None
    hour, version = cluster_hour(plan.spec.region), find_kubernetes_version(plan.spec.eks.version)
    is_extended = today is not None and version is not None and version.support(today) == "EXTENDED_SUPPORT"
    own = region_prices().get(plan.spec.region)
    used = (plan.spec.region,) if own is not None and own.source == hour.source else ()
    return Cost((hour.extended if is_extended else hour.standard) * HOURS_PER_MONTH, own=used)


def nat_data_price(plan: Plan) -> Decimal | None:
    """Return US dollars per GB through the NAT gateways of a stack; None without any, or if it isn't known."""
    prices = region_prices().get(plan.spec.region)
    return None if prices is None or not plan.network.nat_gateways else prices.platform.get("natGatewayGb")


def _item_cost(item: PlatformItem, region: str) -> Cost:
    prices = region_prices().get(region)
    price = None if prices is None else prices.platform.get(item.key)
    if price is None:
        return Cost(Decimal(0), (f"{item.count:,} {item.label}",))
    return Cost(price * item.count * item.per_month, own=(region,))


def _volumes(plan: Plan) -> int:
    """Return the GiB of the additional volumes of permanent nodes; AWS sets the size of root volumes."""
    return sum(
        group.spec.instance_count * (storage.ebs_volume_config.volume_size_in_gb or 0)
        for group in plan.own_groups
        if not group.autoscaled
        for storage in group.spec.instance_storage_configs
    )


def _groups(plan: Plan, find: FindPrice) -> Cost:
    return total(
        group_cost(group, plan.spec.region, find)
        for group in plan.own_groups
        if not group.autoscaled and group.spec.instance_count
    )


def ready_cost(pool: NodePoolPlan, region: str, find: FindPrice = near_price) -> Cost | None:
    """Return the cost of a warm pool's nodes, with the least expensive type that fits its pods; None if none fits."""
    if pool.spec.warm_pool is None:
        return None
    nodes = ready_nodes(pool)
    prices = {kind: found for kind in nodes if (found := find(kind, region)) is not None}
    label = f"warm pool of NodePool {pool.spec.name}"
    if not prices or len(prices) < len(nodes):
        return Cost(Decimal(0), (label,))
    costs = {price.monthly * nodes[kind] for kind, price in prices.items()}
    unknown = (f"{label} above the cheapest type",) if len(costs) > 1 else ()
    return _cost(min(costs), unknown, prices.values(), region)


def ready_nodes(pool: NodePoolPlan) -> dict[str, int]:
    """Return how many nodes of each type fit the placeholder pods of a warm pool, if the values are known."""
    warm = pool.spec.warm_pool
    if warm is None:
        return {}
    known = ((kind, find_instance_type(kind)) for kind in pool.instance_types)
    pods = {kind: pods_on(warm.requests, instance) for kind, instance in known if instance is not None}
    return {kind: -(-warm.replicas // count) for kind, count in pods.items() if count}


def pool_cost(pool: NodePoolPlan, plan: Plan, find: FindPrice = near_price) -> Cost:
    """Return the cost of a NodePool at its limits with its most expensive type."""
    if any(group.spec.is_spot for group in plan.groups if group.node_class == pool.spec.node_class):
        return Cost(Decimal(0), (f"Spot instances of NodePool {pool.spec.name}",))
    return _pool(pool, plan.spec.region, find)


def total(parts: Iterable[Cost | None]) -> Cost:
    """Return the sum; missing parts cost nothing."""
    costs = [part for part in parts if part is not None]
    return Cost(
        sum((part.known for part in costs), Decimal(0)),
        tuple(name for part in costs for name in part.unknown),
        tuple(name for part in costs for name in part.unbounded),
        tuple(sorted({name for part in costs for name in part.prices_of})),
        tuple(sorted({name for part in costs for name in part.own})),
    )


def _cost(monthly: Decimal, unknown: tuple[str, ...], prices: Iterable[Price], region: str) -> Cost:
    """Return a cost with the regions whose prices it is by."""
    used = {each.region for each in prices}
    return Cost(monthly, unknown, prices_of=tuple(sorted(used - {region})), own=tuple(used & {region}))


def group_cost(group: GroupPlan | RestrictedGroupPlan, region: str, find: FindPrice = near_price) -> Cost:
    """Return the cost of a group's instances.

    For a flexible group, the least expensive type, with the rest unknown, because the service chooses.
    """
    spec = group.spec
    if spec.is_spot or spec.training_plan_arn is not None:
        why = "Spot" if spec.is_spot else "training plan"
        return Cost(Decimal(0), (f"{spec.instance_count} × {' | '.join(spec.types)} ({why})",))
    prices = [found for name in spec.types if (found := find(name, region)) is not None]
    label = f"{spec.instance_count} × {' | '.join(spec.types)}"
    if not prices or len(prices) < len(spec.types):
        return Cost(Decimal(0), (label,))
    months = {each.monthly for each in prices}
    unknown = (f"{label} above the cheapest type",) if len(months) > 1 else ()
    return _cost(min(months) * spec.instance_count, unknown, prices, region)


def _pool(pool: NodePoolPlan, region: str, find: FindPrice) -> Cost:
    name = pool.spec.name
    costs: list[Decimal] = []
    prices: list[Price] = []
    for instance_type in pool.instance_types:
        instance = find_instance_type(instance_type)
        most = pool_instances(pool.spec.limits, instance) if instance else None
        if most is None:
            return Cost(Decimal(0), (), (f"NodePool {name}",))
        price = find(instance_type, region)
        if price is not None:
            prices.append(price)
            costs.append(price.monthly * most)
        elif most:
            return Cost(Decimal(0), (f"NodePool {name} (up to {most} × {instance_type})",))
    return _cost(max(costs, default=Decimal(0)), (), prices, region)

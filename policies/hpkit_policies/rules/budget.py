"""Compares the monthly cost of the guaranteed capacity and of each team's quota with the budgets.

Spot, NodePools, storage, traffic, and discounts aren't counted. Each budget counts on-demand prices in the cluster's
region. If the catalog has none, it uses those of a region on the same continent, and reports that; otherwise it counts
nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from hpkit.catalog.prices import dated_regions, near_price
from hpkit.plan.budgets import BUDGET_POLICY, budgets_of, reserved_cost
from hpkit.plan.capacity import Amount, as_instances
from hpkit.text.formatting import listing
from hpkit_policies.model import Parameter, Policy, Resource, Results, Settings, Undecided, Violation, of_type
from hpkit_policies.stack_inputs import (
    CLUSTER,
    instance_groups,
    instance_types,
    known_types,
    owned_groups,
    quotas_by_cluster,
)

__all__ = ["POLICIES"]

_Reserved = tuple[str, Amount | None]
_BY_HAND = (
    "Run `hpkit catalog refresh` to read the region's prices from AWS. If AWS lists no price for the type, calculate "
    "the cost by hand."
)

_CEILING = Parameter(
    "monthlyUsd",
    "Maximum cost of the stack's guaranteed capacity, in US dollars per month. 0: no limit.",
    {"type": "number", "minimum": 0},
    0,
)


_TEAMS = Parameter(
    "teams",
    "Maximum cost of each team's reserved quota, in US dollars per month, at on-demand prices.",
    {"type": "object", "additionalProperties": {"type": "number", "minimum": 0}},
    {},
)
_PROJECTS = Parameter(
    "projects",
    "Projects, with their teams and the maximum cost of their reserved quota together, in US dollars per month.",
    {
        "type": "object",
        "additionalProperties": {
            "type": "object",
            "required": ["teams", "monthlyUsd"],
            "additionalProperties": False,
            "properties": {
                "teams": {"type": "array", "items": {"type": "string"}, "minItems": 1},
                "monthlyUsd": {"type": "number", "minimum": 0},
            },
        },
    },
    {},
)


def _teams_below_ceiling(resources: Sequence[Resource], settings: Settings) -> Results:
    budgets = budgets_of(settings)
    if not budgets:
        return
    matched, _ = quotas_by_cluster(resources)
    for cluster in of_type(resources, CLUSTER):
        region, reserved, unknown = _region(cluster), dict[str, list[_Reserved]](), dict[str, set[str]]()
        for quota in matched[cluster.urn]:
            types = known_types(cluster, [each.instance_type for each in quota.quota_resources])
            for each in quota.quota_resources:
                part = each.instance_type, as_instances(each, types.get(each.instance_type))
                reserved.setdefault(quota.team, []).append(part)
            unknown.setdefault(quota.team, set()).update(each or "all" for each in quota.unknown_types)
        costs = {team: reserved_cost(parts, region) for team, parts in reserved.items()}
        for budget in budgets:
            for team in sorted(budget.teams & unknown.keys()):
                if unknown[team]:
                    unknown_types = listing(sorted(unknown[team]))
                    yield Undecided(
                        f"{budget.label}: the quota of {team} for {unknown_types} isn't known before the update",
                        cluster,
                    )
                if team in costs and costs[team].unknown:
                    unknown_types = listing(list(costs[team].unknown))
                    message = f"{budget.label}: the cost of {unknown_types} for {team} is unknown"
                    yield Undecided(message, cluster, _BY_HAND)
            own = sorted(budget.teams & costs.keys(), key=lambda team: -costs[team].dollars)
            total = reserved_cost([part for team in own for part in reserved[team]], region)
            if total.exceeds(budget):
                team_costs = listing([f"{team}: {float(costs[team].dollars):,.0f}" for team in own])
                near, prices = "about " if total.about else "", _price_note(total.used)
                yield Violation(
                    f"the quota of {budget.label} costs {near}{float(total.dollars):,.0f} US dollars per month on "
                    f"demand; the budget is {float(budget.monthly):,.0f} ({team_costs}{prices})",
                    f"Lower its allocations, or raise its budget in `{budget.kind}s`.",
                    cluster,
                    cause=next(quota.resource for quota in matched[cluster.urn] if quota.team == own[0]),
                )


def _below_ceiling(resources: Sequence[Resource], settings: Settings) -> Results:
    ceiling = Decimal(str(settings[_CEILING.name]))
    if not ceiling:
        return
    total, costly, about, used = Decimal(0), dict[str, Decimal](), set[str](), set[str]()
    clusters = of_type(resources, CLUSTER)
    for cluster in clusters:
        region = _region(cluster)
        if instance_groups(cluster) is None:
            yield Undecided(f"{cluster.name}: its instance groups aren't known before the update", cluster)
        for group in _permanent_groups(cluster, resources):
            cost = _cost(group, region)
            if cost is None:
                message = f"{cluster.name}: the cost of {_label(group)} in {region} is unknown"
                yield Undecided(message, cluster, _BY_HAND)
            else:
                total += cost.dollars
                costly[_label(group)] = cost.dollars
                about |= cost.about
                used |= cost.used
    if total > ceiling:
        ranked = sorted(costly.items(), key=lambda item: -item[1])
        near, prices = "about " if about else "", _price_note(used)
        yield Violation(
            f"the guaranteed capacity costs {near}{total:,.0f} US dollars per month on demand; the budget is "
            f"{ceiling:,.0f} ({listing([f'{label}: {cost:,.0f}' for label, cost in ranked])}{prices})",
            f"Lower instanceCount, or raise {_CEILING.name}.",
            clusters[0],
            "instanceGroups",
        )


def _prices_known(resources: Sequence[Resource], _settings: Settings) -> Results:
    for cluster in of_type(resources, CLUSTER):
        region = _region(cluster)
        # One finding for all groups with the same consequence: one command answers it.
        labels: dict[str, list[str]] = {}
        for group in _permanent_groups(cluster, resources):
            cost = _cost(group, region)
            if cost is None:
                labels.setdefault(", so budgets don't count it", []).append(_label(group))
            elif cost.about:
                instead = f"; budgets use the prices of {dated_regions(cost.about)} instead"
                labels.setdefault(instead, []).append(_label(group))
        for effect, groups in labels.items():
            what = f"{cluster.name}: the cost of {listing(groups)} in {region} is unknown"
            yield Violation(f"{what}{effect}", _BY_HAND, cluster, "instanceGroups")


def _price_note(regions: Iterable[str]) -> str:
    return f", at the prices of {dated_regions(regions)}"


def _permanent_groups(cluster: Resource, resources: Sequence[Resource]) -> list[Mapping[str, Any]]:
    """Return the groups whose nodes always run: groups that Karpenter doesn't manage and that aren't empty."""
    owned = owned_groups(cluster, resources)
    return [
        group
        for group in instance_groups(cluster) or ()
        if group.get("instanceCount") and group.get("instanceGroupName") not in owned
    ]


@dataclass(frozen=True, slots=True)
class _Cost:
    """US dollars per month.

    used: regions whose prices count; about: those that aren't the cluster's own.
    """

    dollars: Decimal
    used: frozenset[str]
    about: frozenset[str]


def _cost(group: Mapping[str, Any], region: str | None) -> _Cost | None:
    """Return the cost of a group; a flexible group costs as much as its most expensive type.

    None if a price is unknown.
    """
    count, types = group.get("instanceCount"), instance_types(group)
    if not isinstance(count, int) or not types or region is None:
        return None
    prices = [near_price(name, region) for name in types]
    known_prices = [price for price in prices if price is not None]
    if len(known_prices) < len(prices):
        return None
    used = frozenset(price.region for price in known_prices)
    return _Cost(max(price.monthly for price in known_prices) * count, used, used - {region})


def _label(group: Mapping[str, Any]) -> str:
    count = group.get("instanceCount")
    types = instance_types(group) or ("an unknown type",)
    return f"{group.get('instanceGroupName')} ({count if isinstance(count, int) else '?'} × {' or '.join(types)})"


def _region(cluster: Resource) -> str | None:
    """Return the region of a cluster, from its provider or else its ARNs."""
    region = cluster.provider.get("region")
    for path in ("clusterArn", "orchestrator.eks.clusterArn"):
        arn = cluster.get_or_unknown(path)
        if not isinstance(region, str) and isinstance(arn, str):
            region = arn.split(":")[3]
    return region if isinstance(region, str) else None


POLICIES = (
    Policy(
        name="budget-ceiling",
        description="The guaranteed capacity is within the organization's monthly budget.",
        validate_stack=_below_ceiling,
        parameters=(_CEILING,),
    ),
    Policy(
        name=BUDGET_POLICY,
        description="The reserved quota of each team and project is within its monthly budget.",
        validate_stack=_teams_below_ceiling,
        parameters=(_TEAMS, _PROJECTS),
    ),
    Policy(
        name="budget-prices-known",
        description="The catalog has a price for each static instance in its region.",
        level="advisory",
        validate_stack=_prices_known,
    ),
)

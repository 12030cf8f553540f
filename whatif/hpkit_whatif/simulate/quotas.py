"""What there is of each instance type, and who has how much of it: what a run's figures are measured against."""

from __future__ import annotations

from dataclasses import dataclass

from hpkit.catalog import find_instance_type
from hpkit.plan.capacity import overruns, reserve
from hpkit.plan.model import Plan, QuotaResource
from hpkit_whatif.admission import EFA, IDLE_QUEUE, Model, amounts_of

__all__ = ["NOBODY", "TypeQuota", "over_reserved", "quotas_of"]

NOBODY = ""
"""Whose is what no team reserved."""


@dataclass(frozen=True, slots=True)
class TypeQuota:
    """An instance type: what one instance has of each resource, each team's quota of them, and how many there are.

    Network interfaces are no resource here: they go with accelerators, and a part of an instance has none.
    """

    resources: tuple[str, ...]
    whole: tuple[int, ...]
    nominal: dict[str, tuple[int, ...]]
    instances: float

    def guarantee(self, team: str) -> float:
        """Return a team's quota in instances, by the resource of which that is most."""
        amounts = self.nominal.get(team, ())
        return max((amount / one for amount, one in zip(amounts, self.whole, strict=False)), default=0.0)


def quotas_of(plan: Plan, model: Model) -> dict[str, TypeQuota]:
    """Return the quotas of each instance type of which there are any."""
    teams = {team.cluster_queue: team.name for team in plan.teams} | {IDLE_QUEUE: NOBODY}
    nominal: dict[str, dict[str, dict[str, int]]] = {}
    for queue in model.queues:
        for flavor in (each for group in queue.resource_groups for each in group.flavors):
            amounts = {resource: quota.nominal for resource, quota in flavor.resources.items()}
            nominal.setdefault(flavor.name, {})[teams[queue.name]] = amounts
    growing = {
        each.instance_type for team in plan.teams for each in team.quota_resources if each.elastic or each.future
    }
    return {kind: _type_quota(plan, kind, mine, grows=kind in growing) for kind, mine in nominal.items()}


def _type_quota(plan: Plan, kind: str, nominal: dict[str, dict[str, int]], *, grows: bool) -> TypeQuota:
    one = {name: amount for name, amount in amounts_of(QuotaResource(kind, count=1)).items() if amount and name != EFA}
    capacity = plan.capacity.get(kind)
    there = float(capacity.guaranteed) if capacity is not None else 0.0
    if grows:
        # Elastic quota counts on nodes beyond those that always stand.
        sums = {name: sum(mine.get(name, 0) for mine in nominal.values()) for name in one}
        there = max(there, *(sums[name] / amount for name, amount in one.items()))
    return TypeQuota(
        tuple(one),
        tuple(one.values()),
        {team: tuple(mine.get(name, 0) for name in one) for team, mine in nominal.items()},
        there,
    )


def over_reserved(plan: Plan) -> tuple[str, ...]:
    """Return a sentence for each instance type of which teams reserve more than always stands."""
    reserved: dict[str, list[QuotaResource]] = {}
    for team in plan.teams:
        for each in team.quota_resources:
            if not each.elastic and not each.future:
                reserved.setdefault(each.instance_type, []).append(each)
    found = []
    for kind, mine in sorted(reserved.items()):
        instance, capacity = find_instance_type(kind), plan.capacity.get(kind)
        there = capacity.guaranteed if capacity is not None else 0
        over = overruns(reserve((each, instance) for each in mine), there, instance) if instance is not None else ()
        if over:
            found.append(
                f"teams reserve {float(over[0].reserved):g} {over[0].dimension} of {kind}, of which "
                f"{float(over[0].limit):g} stand: Kueue admits by quota, and what then has no node does not run"
            )
    return tuple(found)

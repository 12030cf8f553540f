"""The amount of each instance type, and each team's quota: the basis of a run's values."""

from dataclasses import dataclass

from hpkit.catalog import EFA, find_instance_type
from hpkit.plan.capacity import amounts_of, overruns, reserve
from hpkit.plan.model import Plan, QuotaResource
from hpkit_whatif.admission import IDLE_QUEUE, Model

__all__ = ["NOBODY", "TypeQuota", "over_reserved", "type_quotas"]

NOBODY = ""
"""Whose is what no team reserved."""


@dataclass(frozen=True, slots=True)
class TypeQuota:
    """An instance type: the resources of one instance, each team's quota of them, and the number of instances.

    Network interfaces aren't a resource here: they belong to accelerators, and parts of an instance have none.
    """

    resources: tuple[str, ...]
    whole: tuple[int, ...]
    nominal: dict[str, tuple[int, ...]]
    instances: float


def type_quotas(plan: Plan, model: Model) -> dict[str, TypeQuota]:
    """Return the quotas of each instance type of which there are any."""
    teams = {team.cluster_queue: team.name for team in plan.teams} | {IDLE_QUEUE: NOBODY}
    nominal: dict[str, dict[str, dict[str, int]]] = {}
    for queue in model.queues:
        for flavor in (resource for group in queue.resource_groups for resource in group.flavors):
            amounts = {resource: quota.nominal for resource, quota in flavor.resources.items()}
            nominal.setdefault(flavor.name, {})[teams[queue.name]] = amounts
    growing = {
        resource.instance_type
        for team in plan.teams
        for resource in team.quota_resources
        if resource.elastic or resource.future
    }
    return {
        instance_type: _type_quota(plan, instance_type, amounts_by_team, grows=instance_type in growing)
        for instance_type, amounts_by_team in nominal.items()
    }


def _type_quota(plan: Plan, instance_type: str, nominal: dict[str, dict[str, int]], *, grows: bool) -> TypeQuota:
    instance_amounts = {
        name: amount
        for name, amount in amounts_of(QuotaResource(instance_type, count=1)).items()
        if amount and name != EFA
    }
    capacity = plan.capacity.get(instance_type)
    instances = float(capacity.permanent) if capacity is not None else 0.0
    if grows:
        # Elastic quota relies on nodes in addition to those that always run.
        sums = {name: sum(mine.get(name, 0) for mine in nominal.values()) for name in instance_amounts}
        instances = max(instances, *(sums[name] / amount for name, amount in instance_amounts.items()))
    return TypeQuota(
        tuple(instance_amounts),
        tuple(instance_amounts.values()),
        {team: tuple(mine.get(name, 0) for name in instance_amounts) for team, mine in nominal.items()},
        instances,
    )


def over_reserved(plan: Plan) -> tuple[str, ...]:
    """Return one sentence per instance type of which teams reserve more than always runs."""
    reserved: dict[str, list[QuotaResource]] = {}
    for team in plan.teams:
        for resource in team.quota_resources:
            if not resource.elastic and not resource.future:
                reserved.setdefault(resource.instance_type, []).append(resource)
    sentences = []
    for instance_type, resources in sorted(reserved.items()):
        instance, capacity = find_instance_type(instance_type), plan.capacity.get(instance_type)
        permanent = capacity.permanent if capacity is not None else 0
        over = (
            overruns(reserve((resource, instance) for resource in resources), permanent, instance)
            if instance is not None
            else ()
        )
        if over:
            sentences.append(
                f"teams have quota for {float(over[0].reserved):g} {over[0].dimension} of {instance_type}, but only "
                f"{float(over[0].limit):g} exist: Kueue admits by quota, and admitted pods without a node don't run"
            )
    return tuple(sentences)

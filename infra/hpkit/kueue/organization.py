"""Converts a plan to the simulator's model: the queues that task governance creates for it.

The service's mapping of settings is only partly documented (SageMaker developer guide, "Policies" and "Compute
allocation"). Three things aren't documented:
- A lender reclaims regardless of the borrower's priority.
- DontLend holds everything back.
- The limit on borrowing is rounded down to whole units.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

from hpkit.catalog import EFA, QUEUE_RESOURCES, Amounts, amounts_of_instances, amounts_of_part, countable_type
from hpkit.kueue.model import (
    ClusterQueue,
    FlavorQuotas,
    Model,
    Preemption,
    ResourceGroup,
    ResourceQuota,
    Strategy,
    WaitForPodsReady,
)
from hpkit.plan.capacity import usage
from hpkit.plan.model import Plan, QuotaResource, TeamPlan

__all__ = ["COHORT", "EFA", "IDLE_QUEUE", "amounts_of", "fair_sharing_of", "model_of", "wait_for_pods_ready_of"]

COHORT = "hyperpod-cohort"
IDLE_QUEUE = "hyperpod-ns-idle-resource-sharing-cq-1"
_DEFAULT_BORROW_LIMIT = 50


def model_of(plan: Plan) -> Model:
    """Return the queues of a plan's teams, and the queue of idle capacity if the policy shares it.

    Raises CatalogError for an instance type whose vCPUs, memory or accelerators aren't in the catalog.
    """
    policy = plan.policy
    strategies = fair_sharing_of(plan)
    reserved: dict[str, Counter[str]] = {}
    queues = []
    for team in plan.teams:
        mine = _amounts(team.quota_resources)
        for kind, found in mine.items():
            reserved.setdefault(kind, Counter()).update(found)
        queues.append(_team(team, mine, fair=strategies is not None))
    if policy is not None and policy.idle_resource_sharing == "Enabled":
        queues += _idle(plan, reserved)
    return Model(
        queues=tuple(queues),
        fair_sharing=strategies,
        wait_for_pods_ready=wait_for_pods_ready_of(plan),
    )


def wait_for_pods_ready_of(plan: Plan) -> WaitForPodsReady | None:
    """Return gang scheduling as a plan has it; None where it is off or the cluster's own affair."""
    gang = plan.gang_scheduling
    if gang is None or not gang.enable:
        return None
    strategy = gang.requeuing_strategy
    return WaitForPodsReady(
        gang.timeout_seconds,
        gang.recovery_seconds,
        gang.block_admission,
        strategy.timestamp,
        strategy.backoff_limit_count,
        strategy.backoff_base_seconds,
        strategy.backoff_max_seconds,
    )


def fair_sharing_of(plan: Plan) -> tuple[Strategy, ...] | None:
    """Return by which strategies the service has Kueue preempt for a fair share; None where it does not."""
    fair = plan.policy is None or plan.policy.fair_share == "Enabled"
    return ("LessThanOrEqualToFinalShare", "LessThanInitialShare") if fair else None


def _team(team: TeamPlan, mine: dict[str, Amounts], *, fair: bool) -> ClusterQueue:
    limits = {kind: amounts_of_instances(kind, count) for kind, count in sorted(team.absolute_borrow_limits.items())}
    instance_types = tuple(dict.fromkeys([*mine, *limits]))
    partitions = sorted({name for found in mine.values() for name in found} - set(QUEUE_RESOURCES))
    covered = (*QUEUE_RESOURCES, *partitions)
    flavors = tuple(
        FlavorQuotas(
            instance_type,
            {
                name: _quota(team, mine.get(instance_type, {}).get(name, 0), limits.get(instance_type), name)
                for name in covered
            },
        )
        for instance_type in instance_types
    )
    return ClusterQueue(
        name=team.cluster_queue,
        cohort=COHORT,
        resource_groups=(ResourceGroup(covered, flavors),) if flavors else (),
        fair_weight=float(team.spec.fair_share_weight) if fair else 1.0,
        preemption=Preemption(team.spec.preempt_team_tasks, "Any"),
    )


def _quota(team: TeamPlan, nominal: int, limit: Amounts | None, resource: str) -> ResourceQuota:
    borrowing = 0
    if team.borrows:
        percent = team.spec.sharing.borrow_limit if team.spec.sharing.borrow_limit is not None else _default(team)
        borrowing = nominal * percent // 100 if limit is None else limit.get(resource, 0)
    return ResourceQuota(nominal, borrowing, None if team.lends else 0)


def _default(team: TeamPlan) -> int:
    """Return the percentage that applies without any in the file: 50, or none if the file has limits in instances."""
    return 0 if team.absolute_borrow_limits else _DEFAULT_BORROW_LIMIT


def _amounts(resources: tuple[QuotaResource, ...]) -> dict[str, Amounts]:
    totals: dict[str, Counter[str]] = {}
    for resource in resources:
        totals.setdefault(resource.instance_type, Counter()).update(amounts_of(resource))
    return {kind: dict(total) for kind, total in totals.items()}


def amounts_of(resource: QuotaResource) -> Amounts:
    """Return the amount of each resource in a part of an instance type, in the simulator's base units.

    Raises CatalogError for an instance type whose vCPUs, memory or accelerators aren't in the catalog.
    """
    if resource.count is not None:
        return amounts_of_instances(resource.instance_type, resource.count)
    _, _, vcpu, memory, _ = usage(resource, countable_type(resource.instance_type)).vector
    partition = resource.partition
    return amounts_of_part(
        resource.instance_type,
        vcpu=_stored(vcpu if resource.v_cpu is None else resource.v_cpu),
        memory_gib=_stored(memory if resource.memory_in_gib is None else resource.memory_in_gib),
        accelerators=resource.accelerators or 0,
        partition=None if partition is None else (partition.type, partition.count),
    )


def _stored(amount: Fraction | int | None) -> Fraction:
    """Return an amount as the service stores it, with two decimals."""
    return Fraction(str(round(float(amount or 0), 2)))


def _idle(plan: Plan, reserved: dict[str, Counter[str]]) -> list[ClusterQueue]:
    """Return the queue that lends unreserved, permanent instances."""
    flavors = []
    for instance_type, capacity in plan.capacity.items():
        if not capacity.guaranteed:
            continue
        has = amounts_of_instances(instance_type, capacity.guaranteed)
        mine = reserved.get(instance_type, Counter())
        quotas = {name: ResourceQuota(max(0, has.get(name, 0) - mine[name]), 0) for name in QUEUE_RESOURCES}
        flavors.append(FlavorQuotas(instance_type, quotas))
    if not flavors:
        return []
    group = ResourceGroup(QUEUE_RESOURCES, tuple(flavors))
    return [
        ClusterQueue(IDLE_QUEUE, COHORT, (group,), preemption=Preemption("Never", "Any")),
    ]

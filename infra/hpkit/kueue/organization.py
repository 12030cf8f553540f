"""Converts a plan to the simulator's model: the queues that task governance creates for it.

The service's mapping of settings is only partly documented (SageMaker developer guide, "Policies" and "Compute
allocation"). Three things aren't documented:
- A lender reclaims regardless of the borrower's priority.
- DontLend holds everything back.
- The limit on borrowing is rounded down to whole units.
"""

from collections import Counter

from hpkit.catalog import QUEUE_RESOURCES, Amounts, amounts_of_instances
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
from hpkit.plan.capacity import amounts_by_type, borrow_percent
from hpkit.plan.model import Plan, TeamPlan

__all__ = ["COHORT", "IDLE_QUEUE", "fair_sharing_of", "model_of", "wait_for_pods_ready_of"]

COHORT = "hyperpod-cohort"
IDLE_QUEUE = "hyperpod-ns-idle-resource-sharing-cq-1"


def model_of(plan: Plan) -> Model:
    """Return the queues of a plan's teams, and the queue of idle capacity if the policy shares it.

    Raises CatalogError for an instance type whose vCPUs, memory or accelerators aren't in the catalog.
    """
    policy = plan.policy
    strategies = fair_sharing_of(plan)
    reserved: dict[str, Counter[str]] = {}
    queues = []
    for team in plan.teams:
        mine = amounts_by_type(team.quota_resources)
        for kind, found in mine.items():
            reserved.setdefault(kind, Counter()).update(found)
        queues.append(_team(team, mine, fair=strategies is not None))
    if policy is not None and policy.idle_resource_sharing == "Enabled":
        queues += _idle(plan, reserved)
    return Model(queues=tuple(queues), fair_sharing=strategies, wait_for_pods_ready=wait_for_pods_ready_of(plan))


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
    limits = amounts_by_type(each for limit in team.absolute_borrow_limits.values() for each in limit)
    instance_types = tuple(dict.fromkeys([*mine, *limits]))
    partitions = sorted({name for found in (*mine.values(), *limits.values()) for name in found} - set(QUEUE_RESOURCES))
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
        active=team.spec.activation_state == "Enabled",
    )


def _quota(team: TeamPlan, nominal: int, limit: Amounts | None, resource: str) -> ResourceQuota:
    borrowing = 0
    if team.borrows:
        borrowing = nominal * borrow_percent(team) // 100 if limit is None else limit.get(resource, 0)
    return ResourceQuota(nominal, borrowing, None if team.lends else 0)


def _idle(plan: Plan, reserved: dict[str, Counter[str]]) -> list[ClusterQueue]:
    """Return the queue that lends unallocated, permanent instances."""
    flavors = []
    for instance_type, capacity in plan.capacity.items():
        if not capacity.permanent:
            continue
        has = amounts_of_instances(instance_type, capacity.permanent)
        mine = reserved.get(instance_type, Counter())
        quotas = {name: ResourceQuota(max(0, has.get(name, 0) - mine[name]), 0) for name in QUEUE_RESOURCES}
        flavors.append(FlavorQuotas(instance_type, quotas))
    if not flavors:
        return []
    group = ResourceGroup(QUEUE_RESOURCES, tuple(flavors))
    return [ClusterQueue(IDLE_QUEUE, COHORT, (group,), preemption=Preemption("Never", "Any"))]

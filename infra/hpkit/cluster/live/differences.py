"""Differences between running resources and the organization file, as sentences."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from decimal import Decimal
from typing import Final

from hpkit.cluster.live.model import NodePool, Observed, Platform, Queue, Quota, main_resource
from hpkit.cluster.live.parse import number
from hpkit.cluster.live.waiting import counted, sized
from hpkit.errors import CatalogError
from hpkit.kueue.configuration import gang_differences
from hpkit.kueue.model import ClusterQueue, ResourceQuota, per_unit
from hpkit.kueue.organization import model_of
from hpkit.plan.model import Plan
from hpkit.text.formatting import amount, listing

__all__ = ["differences"]

_ZERO: Final = Decimal(0)
# On the cluster, and in the file.
_Amounts = tuple[Decimal, Decimal]


def differences(observed: Observed, plan: Plan) -> tuple[str, ...]:
    """Return where a platform differs from its plan; what could not be read is no difference."""
    texts: list[str] = []
    if observed.platform is not None:
        texts += _clusters(observed.platform, plan)
        texts += _groups(observed.platform, plan)
        if "addons" not in observed.platform.unread:
            texts += _addons(observed.platform, plan)
        if "policy" not in observed.platform.unread:
            texts += _policy(observed.platform, plan)
    if not plan.spec.cluster.existing and "nodepools" not in observed.unread:
        texts += _node_pools(observed.pools, plan)
    # An environment without `governance` leaves policy and teams to another stack or tool.
    if plan.policy is not None and observed.queues:
        texts += _teams(observed.queues, plan)
        texts += [] if "workloadpriorityclasses" in observed.unread else _priorities(observed, plan)
    with suppress(ValueError):
        texts += gang_differences(observed.kueue_configuration, plan)
    return tuple(texts)


def _clusters(platform: Platform, plan: Plan) -> Iterable[str]:
    spec = plan.spec
    rows = [("Kubernetes", platform.kubernetes, spec.eks.version)]
    if not spec.cluster.existing:
        rows.append(("node recovery", platform.node_recovery, spec.cluster.node_recovery))
        rows.append(("Karpenter's mode", platform.karpenter, "Disable" if spec.karpenter is None else "Enable"))
    for what, there, wanted in rows:
        if there and there != wanted:
            yield f"{what} is {there}, but {wanted} in the file"


def _policy(platform: Platform, plan: Plan) -> Iterable[str]:
    live, planned = platform.policy, plan.policy
    if live is None and planned is not None:
        yield f"the cluster policy {plan.policy_name} is in the file, but not on the cluster"
    elif live is not None and planned is not None:
        for setting, live_value, planned_value in (
            ("name", live.name, plan.policy_name),
            ("fair share", live.fair_share, planned.fair_share),
            ("idle resource sharing", live.idle_sharing, planned.idle_resource_sharing),
        ):
            if live_value and live_value != planned_value:
                yield f"the cluster policy has {setting} {live_value}, but {planned_value} in the file"


def _groups(platform: Platform, plan: Plan) -> Iterable[str]:
    live = {group.name: group for group in platform.groups}
    for group in plan.all_groups:
        live_group = live.pop(group.spec.name, None)
        if live_group is None:
            yield f"instance group {group.spec.name} is in the file, but not in the cluster"
            continue
        if live_group.instance_types and set(live_group.instance_types) != set(group.spec.types):
            types = [", ".join(sorted(each)) for each in (live_group.instance_types, group.spec.types)]
            yield f"the type of instance group {group.spec.name} is {types[0]}, but {types[1]} in the file"
        if not group.autoscaled and live_group.target != group.spec.instance_count:
            yield (
                f"instance group {group.spec.name} has a target of {live_group.target} instances, but "
                f"{group.spec.instance_count} in the file"
            )
    for name in live:
        yield f"instance group {name} is in the cluster, but not in the file"


def _addons(platform: Platform, plan: Plan) -> Iterable[str]:
    live = {addon.name: addon for addon in platform.addons}
    for addon in plan.addons:
        live_addon = live.get(addon.name)
        if live_addon is None:
            yield f"add-on {addon.name} is in the file, but not on the cluster"
        elif addon.version is not None and live_addon.version != addon.version:
            yield f"add-on {addon.name} is {live_addon.version}, but {addon.version} in the file"


def _node_pools(pools: Iterable[NodePool], plan: Plan) -> Iterable[str]:
    live = {pool.name: pool for pool in pools}
    for planned in plan.node_pools:
        pool = live.pop(planned.spec.name, None)
        if pool is None:
            yield f"NodePool {planned.spec.name} is in the file, but not on the cluster"
            continue
        limits = {name: number(str(each)) for name, each in planned.spec.limits.items()}
        for name in sorted(pool.limits.keys() | limits.keys()):
            there, wanted = pool.limits.get(name), limits.get(name)
            if there != wanted:
                has, file = ("no limit" if each is None else amount(each) for each in (there, wanted))
                yield f"NodePool {pool.name} has {name} {has}, but {file} in the file"
    for name in live:
        yield f"NodePool {name} is on the cluster, but not in the file"


def _teams(queues: Iterable[Queue], plan: Plan) -> Iterable[str]:
    live = {queue.team: queue for queue in queues if queue.team is not None}
    try:
        planned = {queue.name: queue for queue in model_of(plan).queues}
    except CatalogError as error:
        yield f"quotas aren't compared: {error}"
        return
    for team in plan.teams:
        live_queue = live.pop(team.name, None)
        if live_queue is None:
            yield f"team {team.name} is in the file, but has no queue"
            continue
        yield from _queue(team.name, live_queue, planned[team.cluster_queue])
    for name in sorted(live, key=str):
        yield f"team {name} has a queue, but isn't in the file"


def _queue(team: str, live: Queue, planned: ClusterQueue) -> Iterable[str]:
    if float(live.weight) != planned.fair_weight:
        yield f"team {team} has fair-share weight {amount(live.weight)}, but {planned.fair_weight:g} in the file"
    if live.stopped == planned.active:
        has, file = ("paused", "Enabled") if live.stopped else ("active", "Disabled")
        yield f"team {team} is {has}, but activationState is {file} in the file"
    preempts = planned.preemption.within_cluster_queue
    if live.within != preempts:
        yield f"team {team} preempts its own tasks by {live.within}, but by {preempts} in the file"
    planned_quotas = {
        (flavor.name, name): quota
        for group in planned.resource_groups
        for flavor in group.flavors
        for name, quota in flavor.resources.items()
    }
    differing: dict[tuple[str, str], dict[str, _Amounts]] = {}
    for key in dict.fromkeys([*planned_quotas, *live.quotas]):
        live_quota, planned_quota = live.quotas.get(key, Quota(_ZERO)), planned_quotas.get(key, ResourceQuota(0, 0))
        unit = per_unit(key[1])
        if live_quota.nominal * unit != planned_quota.nominal:
            amounts = (live_quota.nominal, Decimal(planned_quota.nominal) / unit)
            differing.setdefault(("quota", key[0]), {})[key[1]] = amounts
        limit = planned_quota.borrowing_limit
        if live_quota.borrowing_limit is not None and limit is not None and live_quota.borrowing_limit * unit != limit:
            amounts = (live_quota.borrowing_limit, Decimal(limit) / unit)
            differing.setdefault(("borrow limit", key[0]), {})[key[1]] = amounts
    for (what, flavor), resources in differing.items():
        yield _sentence(team, what, flavor, resources)
    yield from _lending(team, live.quotas, planned_quotas)


def _lending(
    team: str, live: Mapping[tuple[str, str], Quota], planned: Mapping[tuple[str, str], ResourceQuota]
) -> Iterable[str]:
    """Yield where a team lends, and should not, or lends less than it should: limits count as far as there is quota."""
    lent = {key: quota.lendable for key, quota in live.items() if quota.nominal}
    should = {
        key: Decimal(quota.nominal if quota.lending_limit is None else min(quota.nominal, quota.lending_limit))
        / per_unit(key[1])
        for key, quota in planned.items()
        if quota.nominal
    }
    if lent and should and any(lent.values()) != any(should.values()):
        has, file = ("idle quota", "none") if any(lent.values()) else ("no idle quota", "all of it")
        yield f"team {team} lends {has}, but {file} in the file"
        return
    differing: dict[str, dict[str, _Amounts]] = {}
    for key in sorted(lent.keys() & should.keys()):
        if live[key].nominal * per_unit(key[1]) == planned[key].nominal and lent[key] != should[key]:
            differing.setdefault(key[0], {})[key[1]] = (lent[key], should[key])
    for flavor, resources in differing.items():
        yield _sentence(team, "lending limit", flavor, resources)


def _sentence(team: str, quota_name: str, flavor: str, resources: Mapping[str, _Amounts]) -> str:
    """Return the differences, in the main resource; other resources of an instance are named."""
    main = main_resource(resources)
    name = main if main in resources else next(iter(resources))
    live, planned = resources[name]
    others = listing(sorted(resources.keys() - {name}))
    also = f" ({others} too)" if others else ""
    return (
        f"team {team} has a {quota_name} of {counted(live, name)} of {flavor}, "
        f"but {sized(planned, name)} in the file{also}"
    )


def _priorities(observed: Observed, plan: Plan) -> Iterable[str]:
    planned = (
        {} if plan.policy is None else {f"{each.name}-priority": each.weight for each in plan.policy.priority_classes}
    )
    live = observed.priority_classes
    for name in dict.fromkeys([*planned, *live]):
        if live.get(name) != planned.get(name):
            yield f"priority class {name} is {live.get(name, 'absent')}, but {planned.get(name, 'absent')} in the file"

"""What runs and is not as the stack file says it, as sentences."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from hpkit.errors import CatalogError
from hpkit.live.model import Observed, Platform, Queue
from hpkit.live.waiting import amount
from hpkit.plan.model import Plan
from hpkit.whatif import ClusterQueue, model_of, per_unit

__all__ = ["differences"]


def differences(observed: Observed, plan: Plan) -> tuple[str, ...]:
    """Return where a platform differs from its plan; what could not be read is no difference."""
    found: list[str] = []
    if observed.platform is not None:
        found += _groups(observed.platform, plan)
        found += _addons(observed.platform, plan)
    if observed.queues:
        found += _teams(observed.queues, plan)
        found += _priorities(observed, plan)
    return tuple(found)


def _groups(platform: Platform, plan: Plan) -> Iterable[str]:
    live = {group.name: group for group in platform.groups}
    for group in plan.all_groups:
        there = live.pop(group.spec.name, None)
        if there is None:
            yield f"instance group {group.spec.name} is in the file, and not in the cluster"
        elif not group.autoscaled and there.target != group.spec.instance_count:
            yield (
                f"instance group {group.spec.name} has a target of {there.target} instances, "
                f"and {group.spec.instance_count} in the file"
            )
    for name in live:
        yield f"instance group {name} is in the cluster, and not in the file"


def _addons(platform: Platform, plan: Plan) -> Iterable[str]:
    live = {addon.name: addon for addon in platform.addons}
    for addon in plan.addons:
        there = live.get(addon.name)
        if there is None:
            yield f"add-on {addon.name} is in the file, and not on the cluster"
        elif addon.version is not None and there.version != addon.version:
            yield f"add-on {addon.name} is {there.version}, and {addon.version} in the file"


def _teams(queues: Iterable[Queue], plan: Plan) -> Iterable[str]:
    live = {queue.team: queue for queue in queues if queue.team is not None}
    try:
        planned = {queue.name: queue for queue in model_of(plan).queues}
    except CatalogError as error:
        yield f"quotas are not compared: {error}"
        return
    for team in plan.teams:
        there = live.pop(team.name, None)
        if there is None:
            yield f"team {team.name} is in the file, and has no queue"
            continue
        yield from _queue(team.name, there, planned[team.cluster_queue])
    for name in sorted(live, key=str):
        yield f"team {name} has a queue, and is not in the file"


def _queue(team: str, live: Queue, planned: ClusterQueue) -> Iterable[str]:
    if float(live.weight) != planned.fair_weight:
        yield f"team {team} has fair-share weight {amount(live.weight)}, and {planned.fair_weight:g} in the file"
    wanted = {
        (flavor.name, name): (quota.nominal, quota.borrowing_limit)
        for group in planned.resource_groups
        for flavor in group.flavors
        for name, quota in flavor.resources.items()
    }
    for key in dict.fromkeys([*wanted, *live.quotas]):
        there, (nominal, limit) = live.quotas.get(key), wanted.get(key, (0, 0))
        unit = per_unit(key[1])
        has = Decimal(0) if there is None else there.nominal
        if has * unit != nominal:
            yield _sentence(team, "quota", key, has, Decimal(nominal) / unit)
        may = None if there is None else there.borrowing_limit
        if there is not None and may is not None and limit is not None and may * unit != limit:
            yield _sentence(team, "borrow limit", key, may, Decimal(limit) / unit)


def _sentence(team: str, what: str, key: tuple[str, str], live: Decimal, planned: Decimal) -> str:
    return f"team {team} has a {what} of {amount(live)} {key[1]} of {key[0]}, and {amount(planned)} in the file"


def _priorities(observed: Observed, plan: Plan) -> Iterable[str]:
    wanted = (
        {} if plan.policy is None else {f"{each.name}-priority": each.weight for each in plan.policy.priority_classes}
    )
    live = observed.priority_classes
    for name in dict.fromkeys([*wanted, *live]):
        if live.get(name) != wanted.get(name):
            yield f"priority class {name} is {live.get(name, 'absent')}, and {wanted.get(name, 'absent')} in the file"

"""The state of a platform as a page: groups, teams, waiting tasks, add-ons, and differences from the organization file.

It makes no calls: the page is computed from what was read, and from the stack's plan.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from hpkit.cluster.live.model import (
    Group,
    KubernetesNode,
    NodePool,
    Observed,
    Platform,
    Queue,
    Quota,
    Task,
    main_resource,
)
from hpkit.cluster.live.nodes import Node, log_words, nodes_of
from hpkit.cluster.live.state import Jobs, State
from hpkit.text.document import Quantity
from hpkit.text.formatting import amount

__all__ = ["GroupStatus", "Share", "Status", "TaskStatus", "TeamStatus", "policy_words", "status_of"]

# Values of SageMaker's ClusterInstanceStatus that don't end by themselves.
_FAILING = ("Failure", "NotFound")
_SHOWN = 5
_LENDERS = 3
_ZERO = Decimal(0)


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """An instance group: the target, running instances, and others, each with the service's reason.

    running: None if the instances couldn't be read.
    """

    group: Group
    running: int | None
    others: Mapping[str, int]
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Share:
    """A team's part of one flavor, in units of its main resource.

    lent: how much of its quota others use now: minimum and maximum, because Kueue counts what each team borrows, but
    not from which team. lenders: teams whose idle quota covers what this one borrowed, those with the most first; if
    there are many, the first ones and the number of others.
    """

    flavor: str
    resource: str
    quota: Decimal
    used: Decimal
    borrowed: Decimal
    borrowing_limit: Decimal | None
    lent: tuple[Decimal, Decimal]
    lenders: tuple[str, ...]
    more_lenders: int = 0

    @property
    def borrowed_words(self) -> str:
        """Return what is borrowed, and from which teams if that is certain."""
        if not self.borrowed:
            return "0"
        names = " or ".join(self.lenders) or "idle capacity"
        more = f" or {self.more_lenders} more" if self.more_lenders else ""
        return f"{amount(self.borrowed)} from {names}{more}"

    @property
    def lent_words(self) -> str:
        """Return what is lent: one number if it's certain, otherwise minimum and maximum."""
        least, most = self.lent
        return amount(most) if least == most else f"{amount(least)} to {amount(most)}"


@dataclass(frozen=True, slots=True)
class TaskStatus:
    """A task: its state, its requests in total, and its age.

    pods_running: how many of its pods run; None if pods couldn't be read. reason: as `hpkit job why` explains it.
    evictions: how often Kueue evicted it, by reason. team: the team, or the namespace, that it is in.
    """

    kind: str
    name: str
    state: State
    priority: int
    pods: int
    pods_running: int | None
    reason: str
    cause: str
    evictions: Mapping[str, int]
    requests: Mapping[str, Quantity]
    seconds: int
    team: str


@dataclass(frozen=True, slots=True)
class TeamStatus:
    """A team: its shares, and its tasks by state. problem: why its queue admits nothing, or "".

    seen: whether its tasks could be read; if not, an empty list means nothing.
    """

    team: str
    shares: tuple[Share, ...]
    running: tuple[TaskStatus, ...]
    waiting: tuple[TaskStatus, ...]
    problem: str
    seen: bool = True

    @property
    def runs_words(self) -> str:
        """Return how many tasks run, as far as known."""
        return str(len(self.running)) if self.seen else "?"

    @property
    def waits_words(self) -> str:
        """Return how many tasks wait, as far as known."""
        return str(len(self.waiting)) if self.seen else "?"


@dataclass(frozen=True, slots=True)
class Status:
    """The whole page; problems are sentences that require action, worst first.

    unserved: waiting tasks that no team's queue admits: their LocalQueue doesn't exist, or belongs to another queue.
    """

    observed: Observed
    groups: tuple[GroupStatus, ...]
    teams: tuple[TeamStatus, ...]
    pools: tuple[NodePool, ...]
    nodes: tuple[Node, ...]
    problems: tuple[str, ...]
    unserved: tuple[TaskStatus, ...] = ()


def status_of(observed: Observed) -> Status:
    """Return the page of what was read."""
    jobs = Jobs(observed)
    groups = tuple(_groups(observed))
    teams = tuple(_teams(jobs))
    unserved = tuple(_unserved(jobs)) if observed.queues and "localqueues" not in observed.unread else ()
    problems = (*_problems(observed, groups, teams), *_of_unserved(unserved))
    return Status(observed, groups, teams, observed.pools, nodes_of(observed), problems, unserved)


def policy_words(platform: Platform) -> str:
    """Return the cluster policy on one line."""
    policy = platform.policy
    if policy is None:
        return "not read" if "policy" in platform.unread else "none"
    ranks = sorted(policy.priority_classes.items(), key=lambda each: (-each[1], each[0]))
    order = ", ".join(f"{name} {weight}" for name, weight in ranks)
    parts = (
        f"{policy.name} is {policy.status}",
        f"priority classes {order}" if order else "first come, first served",
        f"fair share {policy.fair_share}" if policy.fair_share else "",
        f"idle resource sharing {policy.idle_sharing}" if policy.idle_sharing else "",
    )
    return "; ".join(each for each in parts if each)


def _groups(observed: Observed) -> Iterable[GroupStatus]:
    if observed.platform is None:
        return
    by_group = defaultdict(list)
    for node in observed.platform.nodes:
        by_group[node.group].append(node)
    for group in observed.platform.groups:
        nodes = by_group[group.name]
        states = Counter(node.status for node in nodes)
        running = states.pop("Running", 0)
        said = Counter(f"{node.status}: {node.message}" for node in nodes if node.message)
        reasons = tuple(text if count == 1 else f"{text} ({count} instances)" for text, count in said.most_common())
        yield GroupStatus(group, None if "nodes" in observed.platform.unread else running, dict(states), reasons)


def _teams(jobs: Jobs) -> Iterable[TeamStatus]:
    observed = jobs.observed
    by_queue = defaultdict(list)
    for task in observed.tasks:
        by_queue[task.queue].append(task)
    found, borrowed = _idle_and_borrowed(observed.queues)
    idle = {key: dict(sorted(there.items(), key=lambda each: (-each[1], each[0]))) for key, there in found.items()}
    total = {key: sum(there.values(), _ZERO) for key, there in idle.items()}
    for queue in sorted(observed.queues, key=lambda each: each.name):
        if queue.team is None:
            continue
        tasks = [
            (each, _task(jobs, each)) for each in _by_rank(by_queue[queue.name]) if _is_open(each) or jobs.is_over(each)
        ]
        yield TeamStatus(
            team=queue.team,
            shares=tuple(_shares(queue, idle, total, borrowed)),
            # The pods of an evicted task may still be ending.
            running=tuple(task for each, task in tasks if not each.waits or task.state == "ending"),
            waiting=tuple(task for each, task in tasks if each.waits and task.state != "ending"),
            problem=queue.problem or _stopped(observed, queue),
            seen=observed.sees(queue.namespace),
        )


def _stopped(observed: Observed, queue: Queue) -> str:
    names = [name for namespace, name in observed.stopped if namespace == queue.namespace]
    return f"LocalQueue {names[0]} is stopped" if names else ""


def _by_rank(tasks: Iterable[Task]) -> list[Task]:
    return sorted(tasks, key=lambda each: (-each.priority, each.created))


def _is_open(task: Task) -> bool:
    return task.active and not task.has("Finished")


def _task(jobs: Jobs, task: Task) -> TaskStatus:
    job = jobs.state(task)
    return TaskStatus(
        task.owner_kind,
        task.owner_name,
        job.state,
        task.priority,
        job.pods,
        job.running,
        job.reason,
        job.cause,
        task.evictions,
        task.requests,
        int((jobs.observed.time - task.created).total_seconds()),
        task.team,
    )


def _unserved(jobs: Jobs) -> Iterable[TaskStatus]:
    """Yield what waits and is in no team's list."""
    queues = {queue.name: queue for queue in jobs.observed.queues}
    for task in _by_rank(each for each in jobs.observed.tasks if each.waits):
        queue = queues.get(task.queue)
        if queue is None or queue.team is None:
            yield _task(jobs, task)


def _of_unserved(unserved: Sequence[TaskStatus]) -> Iterable[str]:
    for each in unserved[:_SHOWN]:
        yield f"{each.kind} {each.name} of {each.team} is waiting: {each.reason}"
    if len(unserved) > _SHOWN:
        yield (
            f"{len(unserved) - _SHOWN} more tasks are waiting without a team's queue; to list them, run `kubectl get "
            "workloads -A`"
        )


Key = tuple[str | None, str, str]


def _idle_and_borrowed(queues: Iterable[Queue]) -> tuple[dict[Key, dict[str, Decimal]], dict[Key, Decimal]]:
    """Return, for each (cohort, flavor, resource), what each queue's quota leaves to others, and what all borrow."""
    idle: defaultdict[Key, dict[str, Decimal]] = defaultdict(dict)
    borrowed: defaultdict[Key, Decimal] = defaultdict(Decimal)
    for queue in queues:
        for (flavor, resource), quota in queue.quotas.items():
            key = (queue.cohort, flavor, resource)
            left = min(quota.lendable, max(_ZERO, quota.nominal - quota.used))
            if left:
                idle[key][queue.team or "idle capacity"] = left
            borrowed[key] += quota.borrowed
    return idle, borrowed


def _shares(
    queue: Queue,
    idle: Mapping[Key, Mapping[str, Decimal]],
    total: Mapping[Key, Decimal],
    borrowed: Mapping[Key, Decimal],
) -> Iterable[Share]:
    flavors: dict[str, dict[str, Quota]] = {}
    for (flavor, name), found in queue.quotas.items():
        flavors.setdefault(flavor, {})[name] = found
    for flavor, quotas in flavors.items():
        counted = {name: each for name, each in quotas.items() if each.nominal or each.used or each.borrowing_limit}
        resource = main_resource(counted)
        quota = quotas.get(resource, Quota(_ZERO))
        key = (queue.cohort, flavor, resource)
        idle_by_team = idle.get(key, {})
        mine = idle_by_team.get(queue.team or "", _ZERO)
        by_others = borrowed[key] - quota.borrowed if key in borrowed else _ZERO
        elsewhere = total.get(key, _ZERO) - mine
        # A borrowing team has no idle quota, so it isn't counted among them.
        lenders = tuple(idle_by_team) if quota.borrowed else ()
        yield Share(
            flavor=flavor,
            resource=resource,
            quota=quota.nominal,
            used=quota.used,
            borrowed=quota.borrowed,
            borrowing_limit=quota.borrowing_limit,
            lent=(max(_ZERO, min(mine, by_others - elsewhere)), min(mine, by_others)),
            lenders=lenders[:_LENDERS],
            more_lenders=max(0, len(lenders) - _LENDERS),
        )


def _problems(observed: Observed, groups: Iterable[GroupStatus], teams: Iterable[TeamStatus]) -> Iterable[str]:
    if observed.platform is not None:
        yield from _of_platform(observed.platform)
    for group in groups:
        failing = sum(count for status, count in group.others.items() if status in _FAILING)
        if failing:
            yield _because(f"{failing} of {group.group.target} instances of {group.group.name} fail", group.reasons)
        elif group.group.current < group.group.target:
            yield _because(
                f"{group.group.name} has {group.group.current} of {group.group.target} instances", group.reasons
            )
    if observed.platform is not None:
        yield from _of_logs(observed.platform)
    yield from _of_nodes(observed.nodes)
    for pool in observed.pools:
        if not pool.ready:
            yield _because(f"NodePool {pool.name} is not ready", (pool.message,))
    for team in teams:
        if team.problem:
            yield f"team {team.team}: {team.problem}"


def _of_nodes(nodes: Sequence[KubernetesNode]) -> Iterable[str]:
    not_ready = sorted((node.name, node.trouble) for node in nodes if not node.ready)
    if not_ready:
        more = ", …" if len(not_ready) > _SHOWN else ""
        are = "1 node is" if len(not_ready) == 1 else f"{len(not_ready)} nodes are"
        named = (f"{name} ({trouble})" if trouble else name for name, trouble in not_ready[:_SHOWN])
        yield f"{are} not ready: {', '.join(named)}{more}"
    for node in nodes:
        if node.ready and node.trouble:
            yield f"node {node.name}: {node.trouble}"


def _of_logs(platform: Platform) -> Iterable[str]:
    for node in platform.nodes:
        if node.log:
            yield f"the lifecycle script of {node.instance_id} {log_words(platform, node)}"


def _of_platform(platform: Platform) -> Iterable[str]:
    if platform.status != "InService":
        yield _because(f"cluster {platform.name} is {platform.status}", (platform.message,))
    if platform.policy is not None and platform.policy.status.endswith("Failed"):
        yield _because(f"the cluster policy is {platform.policy.status}", (platform.policy.message,))
    if platform.karpenter_failure:
        yield _because("Karpenter failed", (platform.karpenter_failure,))
    for group, end in platform.ending.items():
        yield (
            f"the training plan of group {group} ends at {end}, and the group then has no nodes; let jobs save and end "
            "before"
        )
    for addon in platform.addons:
        if addon.status != "ACTIVE" or addon.issues:
            yield _because(f"add-on {addon.name} is {addon.status}", addon.issues)


def _because(what: str, reasons: Iterable[str]) -> str:
    said = [each for each in reasons if each]
    return f"{what}: {'; '.join(said)}" if said else what

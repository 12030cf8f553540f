"""Simulates a running platform with changes: without one task, or with fewer pods of another.

It doesn't place pods: distances between nodes and taints are ignored. But tasks for which no nodes have room, even if
nothing else ran, don't get quota of a flavor with a topology: Kueue finds them no nodes, and doesn't admit them.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import Final, cast

from hpkit.cluster.live.flavors import flavors_of, has_topology, large_enough, oversized, selected_flavors
from hpkit.cluster.live.model import Observed, Queue, Task
from hpkit.cluster.live.placement import Places
from hpkit.cluster.live.state import Jobs
from hpkit.cluster.live.waiting import HELD, topology_mismatch
from hpkit.kueue.events import Event, simulator
from hpkit.kueue.model import (
    Admission,
    ClusterQueue,
    FlavorQuotas,
    Model,
    PodSet,
    PodSetAssignment,
    Policy,
    Preemption,
    ResourceGroup,
    ResourceQuota,
    Strategy,
    Workload,
    per_unit,
)

__all__ = ["MOST_STARTS", "CohortSimulation", "Start"]

# More take longer than a user waits, and the estimate is worth less with each.
MOST_STARTS: Final = 300


class _Enough(Exception):  # noqa: N818 - it isn't an error
    """Ends a simulation."""


@dataclass(frozen=True, slots=True)
class Start:
    """How a task starts: what it uses and borrows, by flavor and resource; the queues that have the latter idle.

    pods: with how many, which can be fewer than it has (partial admission).
    """

    pods: int
    usage: Mapping[tuple[str, str], Decimal]
    borrowed: Mapping[tuple[str, str], Decimal]
    lenders: tuple[str, ...]


class CohortSimulation:
    """The queues and tasks of a cohort for the simulator, created again for each question about a task.

    running: tasks that hold quota, lowest rank first; tasks that couldn't be read are one unnamed task per queue.
    usable: the flavors and their resources that the task can get.
    """

    def __init__(self, jobs: Jobs, task: Task, queue: Queue, fair_sharing: tuple[Strategy, ...] | None) -> None:
        observed = jobs.observed
        mine = [each for each in observed.queues if each.active and each.cohort == queue.cohort]
        if queue.cohort is None:
            mine = [queue]
        self._model = Model(queues=tuple(map(_queue, mine)), fair_sharing=fair_sharing)
        self._jobs, self._observed, self._asked, self._queue = jobs, observed, task, queue
        queues = self._queues = {each.name: each for each in mine}
        others = [
            # The limits of pods that no node can hold never begin.
            replace(each, longest=each.limit) if each.longest != each.limit and jobs.never(each) else each
            for each in observed.tasks
            if each.queue in queues and each.uid != task.uid
        ]
        holding = [each for each in others if each.holds.keys() & queues[each.queue].quotas.keys()]
        self.running = sorted(
            (*holding, *_unread(observed, mine, holding)), key=lambda each: (each.priority, -each.created.timestamp())
        )
        self.usable = queue.quotas.keys() & {
            (flavor, name)
            for pods in task.pod_sets
            for flavor in flavors_of(observed, pods, queue)
            for name in pods.requests
        }
        self._oversized = oversized(observed, task, queue)
        self._running = {each.uid: _admitted(each, queues[each.queue]) for each in self.running}
        self._waiting = [
            self._pending(each)
            for each in others
            if each.waits and not each.holds and each.pod_sets and not observed.stop(each)
        ]

    def never(self) -> str | None:
        """Return why a task isn't admitted even if nothing else ran; None if it would be."""
        is_admitted = self._is_admitted(self._asked, (), ())
        if self._oversized:
            return self._oversized.removesuffix(HELD) + (HELD if is_admitted else "")
        if is_admitted:
            return None
        covered = {resource for _, resource in self._queue.quotas}
        asked = {name for each in self._asked.pod_sets for name, value in each.requests.items() if value}
        if asked - covered:
            return f"its queue doesn't count {', '.join(sorted(asked - covered))}"
        for pods in self._asked.pod_sets:
            selected = selected_flavors(self._observed, pods, self._queue)
            if not selected:
                return "its pods select or require nodes that no flavor of its queue has"
            if not flavors_of(self._observed, pods, self._queue):
                return topology_mismatch(sorted(selected), asks=pods.topology is not None)
        return "the quota and borrow limit of its queue are too small for it"

    def runs(self, task: Task, *, without: str = "") -> bool:
        """Return whether a task would run now, after all tasks that wait before it, without one running task."""
        return self._is_admitted(task, [each for uid, each in self._running.items() if uid != without], self._waiting)

    def start(self, task: Task) -> tuple[Start | None, tuple[str, ...]]:
        """Return how a task would start now, after all tasks that wait before it, and which tasks it preempts.

        None if it would wait: preempted tasks can leave too little, or get their quota back before it.
        """
        workloads = [*self._running.values(), *self._waiting, self._pending(task)]
        simulation = simulator(self._model, workloads)
        victims = (each.name for each in simulation.run_until_quiet().preempted if each.by == task.uid)
        preempted = tuple(dict.fromkeys(victims))
        running = simulation.running()
        if task.uid not in running:
            return None, preempted
        used: defaultdict[tuple[str, str, str], int] = defaultdict(int)
        mine: defaultdict[tuple[str, str], int] = defaultdict(int)
        for workload in workloads:
            for assignment in running.get(workload.name, ()):
                for resource, amount in assignment.usage.items():
                    if resource in assignment.flavors:
                        flavor = assignment.flavors[resource]
                        used[workload.queue, flavor, resource] += amount
                        if workload.name == task.uid:
                            mine[flavor, resource] += amount
        borrowed: dict[tuple[str, str], Decimal] = {}
        lenders: dict[str, None] = {}
        for (flavor, resource), amount in mine.items():
            quota = self._queue.quotas[flavor, resource]
            over = used[self._queue.name, flavor, resource] - _units(resource, quota.nominal)
            if min(amount, over) > 0:
                borrowed[flavor, resource] = Decimal(min(amount, over)) / per_unit(resource)
                lenders |= dict.fromkeys(
                    name
                    for name, other in self._queues.items()
                    if name != self._queue.name
                    and (flavor, resource) in other.quotas
                    and other.quotas[flavor, resource].lendable > 0
                    and _units(resource, other.quotas[flavor, resource].nominal) > used[name, flavor, resource]
                )
        pods = sum(each.count for each in running[task.uid])
        usage = {key: Decimal(amount) / per_unit(key[1]) for key, amount in mine.items()}
        return Start(pods, usage, borrowed, tuple(lenders)), preempted

    def most_pods(self, *, idle: bool = False) -> int:
        """Return with how many of its pods a task would run now; idle: if nothing else ran."""
        if self._oversized:
            return 0
        largest = max(self._asked.pod_sets, key=lambda each: each.count)
        other_pods, sets = self._asked.pods - largest.count, self._asked.pod_sets

        def is_too_much(count: int) -> bool:
            smaller = (replace(each, count=count, least=None) if each is largest else each for each in sets)
            task = replace(self._asked, pods=other_pods + count, pod_sets=tuple(smaller))
            return not (self._is_admitted(task, (), ()) if idle else self.runs(task))

        low = bisect_left(range(1, largest.count), True, key=is_too_much)
        return low + other_pods if low else 0

    def starts(self, now: float) -> tuple[float | None, float | None]:
        """Return when a task starts if each one runs for its maximum time and no more are submitted.

        None if that depends on tasks without a maximum. The second time is set if MOST_STARTS other tasks start first:
        the task starts after it.
        """
        admitted: list[Event] = []

        def observe(event: Event) -> None:
            if event.kind == "Admitted":
                admitted.append(event)
                if event.workload == self._asked.uid or len(admitted) == MOST_STARTS:
                    raise _Enough

        simulation = simulator(
            self._model, [*self._running.values(), *self._waiting, self._pending(self._asked)], now=now
        )
        try:
            simulation.run_clock((), on_event=observe)
        except _Enough:
            last = admitted[-1]
            return (last.time, None) if last.workload == self._asked.uid else (None, last.time)
        return None, None

    def _is_admitted(self, task: Task, running: Iterable[Workload], waiting: Iterable[Workload]) -> bool:
        simulation = simulator(self._model, [*running, *waiting, self._pending(task)])
        simulation.run_until_quiet()
        return task.uid in simulation.running()

    def lacking(self) -> str:
        """Return why nodes have no room for the task even if no other task ran; "" if they have, or if unknown."""
        return self._idle.lacking(self._asked, self._queue)

    @cached_property
    def _idle(self) -> Places:
        """Return the nodes without the pods of tasks."""
        return Places(Jobs(self._jobs.without({each.uid for each in self._observed.tasks})))

    def _flavors(self, task: Task) -> Iterable[frozenset[str]]:
        """Yield, for each of a task's pod sets, the flavors on which Kueue can admit it if quota is free."""
        queue = self._queues[task.queue]
        sets = [(pods, flavors_of(self._observed, pods, queue)) for pods in task.pod_sets]
        closed = [frozenset(name for name in flavors if has_topology(self._observed, name)) for _, flavors in sets]
        placed = tuple(each for each, names in zip(task.pod_sets, closed, strict=True) if names)
        # Whether nodes have room for the asked task is a question of its own.
        is_other = task.uid != self._asked.uid
        is_crowded = bool(is_other and placed and self._idle.lacking(replace(task, pod_sets=placed), queue))
        for (pods, flavors), names in zip(sets, closed, strict=True):
            yield flavors - (names if is_crowded else names - large_enough(self._observed, pods, names))

    def _pending(self, task: Task) -> Workload:
        sets = tuple(
            PodSet(
                f"{number}-{pod_set.name}",
                pod_set.count,
                {name: _units(name, value) for name, value in pod_set.requests.items()},
                pod_set.least,
                flavors=flavors,
            )
            for number, (pod_set, flavors) in enumerate(zip(task.pod_sets, self._flavors(task), strict=True))
        )
        return _workload(task, sets)


def _unread(observed: Observed, queues: Iterable[Queue], holding: Iterable[Task]) -> Iterable[Task]:
    """Return one task for all unread tasks of a queue that hold quota: Kueue reports their total usage."""
    seen: defaultdict[tuple[str, str, str], Decimal] = defaultdict(Decimal)
    for each in holding:
        for (flavor, resource), used in each.holds.items():
            seen[each.queue, flavor, resource] += used
    for queue in queues:
        if observed.sees(queue.namespace):
            continue
        left = {key: quota.used - seen[queue.name, *key] for key, quota in queue.quotas.items()}
        usage = {key: value for key, value in left.items() if value > 0}
        if usage:
            yield Task(
                name="",
                namespace=queue.namespace,
                uid=f"unread of {queue.name}",
                owner_kind="",
                owner_name="",
                local_queue="",
                queue=queue.name,
                priority=0,
                priority_class=None,
                created=observed.time,
                pods=1,
                active=True,
                requests={},
                usage=usage,
                conditions={},
            )


def _queue(queue: Queue) -> ClusterQueue:
    flavors: dict[str, dict[str, ResourceQuota]] = {}
    for (flavor, resource), quota in queue.quotas.items():
        flavors.setdefault(flavor, {})[resource] = ResourceQuota(
            _units(resource, quota.nominal),
            _limit(resource, quota.borrowing_limit),
            _limit(resource, quota.lending_limit),
        )
    covered = tuple(dict.fromkeys(resource for _, resource in queue.quotas))
    groups = (ResourceGroup(covered, tuple(FlavorQuotas(name, each) for name, each in flavors.items())),)
    return ClusterQueue(
        name=queue.name,
        cohort=queue.cohort,
        resource_groups=groups if flavors else (),
        fair_weight=float(queue.weight),
        preemption=Preemption(cast("Policy", queue.within), cast("Policy", queue.reclaim)),
    )


def _limit(resource: str, value: Decimal | None) -> int | None:
    return None if value is None else _units(resource, value)


def _units(resource: str, value: Decimal) -> int:
    return int(value * per_unit(resource))


def _admitted(task: Task, queue: Queue) -> Workload:
    """Return a running task as one pod per flavor that it uses, because only its usage counts.

    Usage without quota in its queue is omitted, because no task waits for it.
    """
    by_flavor: dict[str, dict[str, int]] = {}
    for (flavor, resource), value in task.holds.items():
        if (flavor, resource) in queue.quotas:
            by_flavor.setdefault(flavor, {})[resource] = _units(resource, value)
    admitted = task.conditions.get("Admitted") or task.conditions.get("QuotaReserved")
    since = task.created if admitted is None or admitted.since is None else admitted.since
    return replace(
        _workload(task, tuple(PodSet(name, 1, amounts) for name, amounts in by_flavor.items())),
        admission=Admission(
            since.timestamp(),
            tuple(PodSetAssignment(name, 1, dict.fromkeys(each, name), each) for name, each in by_flavor.items()),
        ),
    )


def _workload(task: Task, sets: tuple[PodSet, ...]) -> Workload:
    return Workload(
        task.uid, task.queue, sets, priority=task.priority, created=task.created.timestamp(), run=task.longest
    )

"""The workloads of one queue: its head, and those that are parked or running.

Rules: Kueue's `pkg/cache/queue/cluster_queue.go`, version 0.19.2. Workloads of one shape are parked together, so this
module parks shapes, at the same cost for one workload and for ten thousand.
"""

from __future__ import annotations

import bisect
import heapq
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, Protocol

from hpkit.kueue.model import PodSetAssignment, Workload
from hpkit_whatif.admission.tree import QueueNode, TreeNode, Usage

__all__ = ["Queue", "QueuedWorkload", "Shape"]

_NONE: frozenset[int] = frozenset()

State = Literal["waiting", "running", "backing off", "gone"]


class Found(Protocol):
    """The result for a workload that wasn't admitted."""

    @property
    def waits_for(self) -> str:
        """Return Kueue's reason."""


class Shape:
    """Workloads with the same requests, priority and counts.

    asked: their requests, resolved once. flavors: the indices of the flavors that they can use. blocked: the result
    when there was no room, and what it depends on: the node (only the queue if its own limit was the reason, otherwise
    everything below the root), and the number of changes there on their flavors.
    """

    __slots__ = ("asked", "blocked", "flavors", "heap", "parked", "priority", "size")

    def __init__(self, priority: int, asked: object, flavors: tuple[int, ...]) -> None:
        self.priority = priority
        self.asked = asked
        self.flavors = flavors
        self.heap: list[tuple[float, str, QueuedWorkload]] = []
        self.parked = False
        self.size = 0
        self.blocked: tuple[Sequence[int], int, Found] | None = None

    def first(self) -> QueuedWorkload | None:
        """Return the first waiting workload."""
        heap = self.heap
        while heap and heap[0][2].state != "waiting":
            heapq.heappop(heap)
        return heap[0][2] if heap else None

    def block(self, node: TreeNode, found: Found) -> None:
        """Remember what was found of them for as long as nothing changes at the node."""
        self.blocked = node.changes, sum([node.changes[flavor] for flavor in self.flavors]), found

    def still_blocked(self) -> Found | None:
        """Return the result when there was no room, if nothing has changed since."""
        blocked = self.blocked
        if blocked is None:
            return None
        changes, then, targets = blocked
        now = 0
        for flavor in self.flavors:
            now += changes[flavor]
        return targets if now == then else None


class QueuedWorkload:
    """A workload in the simulation: its position in the queue, and the quota that it holds."""

    __slots__ = (
        "admitted",
        "assignment",
        "attempt",
        "created",
        "cycle",
        "evicted",
        "finishes",
        "flavors",
        "last_cycle",
        "last_generation",
        "name",
        "pairs",
        "placed",
        "priority",
        "queue",
        "reason",
        "retries",
        "shape",
        "spec",
        "state",
        "tried",
        "usage",
    )

    def __init__(self, spec: Workload, queue: Queue, shape: Shape) -> None:
        self.spec = spec
        self.name = spec.name
        self.queue = queue
        self.shape = shape
        self.priority = spec.priority
        self.created = spec.created
        self.state: State = "waiting"
        self.usage: Usage = ()
        self.pairs: frozenset[int] = frozenset()
        self.flavors: frozenset[int] = frozenset()
        self.assignment: tuple[PodSetAssignment, ...] = ()
        self.placed: tuple[object, ...] = ()
        self.admitted = 0.0
        self.finishes: float | None = None
        # The order within a cycle decides between workloads that were admitted at the same time.
        self.cycle = 0
        self.evicted = False
        self.attempt = 0
        # How often its pods weren't ready in time.
        self.retries = 0
        self.reason: str | None = None
        # Progress of the walk over the flavors: for each pod set and resource group, the next flavor.
        self.tried: tuple[dict[int, int], ...] = ()
        self.last_cycle = 0
        self.last_generation = 0

    @property
    def eviction_key(self) -> tuple[int, float, int, str]:
        """Return the order among possible victims: lower priority, admitted later, name."""
        return self.priority, -self.admitted, -self.cycle, self.name

    def pending_flavors(self) -> bool:
        """Return whether the walk over the flavors stopped before the last one."""
        return bool(self.tried) and any(index != -1 for tried in self.tried for index in tried.values())


class Queue:
    """A queue: its node in the tree, and its waiting and running workloads.

    running_on: for each set of pairs, the workloads that use exactly these, in the order of eviction. generation: how
    often quota was freed.
    """

    __slots__ = (
        "active",
        "evicting",
        "generation",
        "node",
        "parked",
        "ready",
        "resolve",
        "running",
        "running_on",
        "shapes",
        "sticky",
        "strict",
        "waiting",
    )

    def __init__(self, node: QueueNode, resolve: Callable[[Workload], tuple[object, object, tuple[int, ...]]]) -> None:
        self.node = node
        self.active = node.spec.active
        self.strict = node.spec.queueing_strategy == "StrictFIFO"
        self.resolve = resolve
        self.shapes: dict[object, Shape] = {}
        self.ready: list[tuple[int, float, str, QueuedWorkload]] = []
        self.parked: list[Shape] = []
        self.sticky: QueuedWorkload | None = None
        self.generation = 0
        self.evicting = 0
        self.waiting = 0
        self.running: dict[str, QueuedWorkload] = {}
        self.running_on: dict[frozenset[int], list[tuple[int, float, int, str, QueuedWorkload]]] = {}

    def submit(self, spec: Workload) -> QueuedWorkload:
        """Add a waiting workload; if its shape is parked, it's parked immediately."""
        task = self.new(spec)
        self.push(task)
        return task

    def new(self, spec: Workload) -> QueuedWorkload:
        """Return a workload that neither waits nor runs yet."""
        key, demand, flavors = self.resolve(spec)
        shape = self.shapes.get(key)
        if shape is None:
            shape = self.shapes[key] = Shape(spec.priority, demand, flavors)
        return QueuedWorkload(spec, self, shape)

    def push(self, task: QueuedWorkload) -> None:
        """Insert a workload at its position."""
        shape = task.shape
        task.state = "waiting"
        heapq.heappush(shape.heap, (task.created, task.name, task))
        shape.size += 1
        self.waiting += 1
        if not shape.parked and shape.first() is task:
            heapq.heappush(self.ready, (-task.priority, task.created, task.name, task))

    def head(self) -> QueuedWorkload | None:
        """Return the first workload that isn't parked; one that has preempted others is before all others."""
        if not self.active:
            return None
        sticky = self.sticky
        if sticky is not None and sticky.state == "waiting" and not sticky.shape.parked:
            return sticky
        ready = self.ready
        while ready:
            task = ready[0][3]
            shape = task.shape
            if task.state == "waiting" and not shape.parked and shape.first() is task:
                return task
            heapq.heappop(ready)
        return None

    def take(self, task: QueuedWorkload, state: State) -> None:
        """Remove a waiting workload."""
        shape = task.shape
        task.state = state
        shape.size -= 1
        self.waiting -= 1
        self._offer(shape)

    def _offer(self, shape: Shape) -> None:
        following = shape.first()
        if following is not None and not shape.parked:
            heapq.heappush(self.ready, (-shape.priority, following.created, following.name, following))

    def park(self, shape: Shape) -> None:
        """Park a shape until quota is freed."""
        if not shape.parked:
            shape.parked = True
            self.parked.append(shape)

    def wake(self) -> None:
        """Unpark everything."""
        for shape in self.parked:
            shape.parked = False
            self._offer(shape)
        self.parked.clear()

    def drop(self, task: QueuedWorkload) -> None:
        """Forget a workload that leaves what waits for good or for now."""
        if self.sticky is task:
            self.sticky = None

    def waiting_tasks(self) -> Iterator[QueuedWorkload]:
        """Yield the workloads that wait, without those that left the queue since they were added to it."""
        for shape in self.shapes.values():
            for _, _, task in shape.heap:
                if task.state == "waiting":
                    yield task

    def start(self, task: QueuedWorkload) -> None:
        """Add a running workload with the usage that it holds."""
        task.state = "running"
        self.running[task.name] = task
        self.node.add(task.usage)
        self._changed(task)
        running = self.running_on.get(task.pairs)
        if running is None:
            running = self.running_on[task.pairs] = []
        bisect.insort(running, (*task.eviction_key, task))

    def stop(self, task: QueuedWorkload) -> None:
        """Release the usage of a workload."""
        del self.running[task.name]
        self.node.remove(task.usage)
        self._changed(task)
        there = self.running_on[task.pairs]
        del there[bisect.bisect_left(there, (*task.eviction_key, task))]
        self.generation += 1
        self.evicting -= task.evicted
        task.state = "gone"
        task.usage, task.pairs, task.flavors, task.assignment, task.placed = (), _NONE, _NONE, (), ()
        task.evicted = False
        task.tried = ()

    def evict(self, task: QueuedWorkload) -> None:
        """Mark a workload as being evicted; it holds its usage until it stops."""
        task.evicted = True
        self.evicting += 1
        self._changed(task)

    def _changed(self, task: QueuedWorkload) -> None:
        mine, all_ = self.node.changes, self.node.root.changes
        for flavor in task.flavors:
            mine[flavor] += 1
            if all_ is not mine:
                all_[flavor] += 1

    def evictable(self, pairs: Iterable[int]) -> Iterable[QueuedWorkload]:
        """Return the workloads that use any of the pairs, in the order of eviction; those being evicted are first."""
        lists = [entries for used, entries in self.running_on.items() if entries and not used.isdisjoint(pairs)]
        if not lists:
            return ()
        entries = lists[0] if len(lists) == 1 else sorted(itertools.chain(*lists))
        tasks = [entry[4] for entry in entries]
        if self.evicting:
            tasks.sort(key=lambda task: not task.evicted)
        return tasks

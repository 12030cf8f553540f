"""The workloads of one queue: which is its head, which are set aside, which run.

Rules: Kueue's `pkg/cache/queue/cluster_queue.go`, version 0.19.2. Workloads of one shape are set aside together, so a
shape is what is set aside here; that costs the same for one workload and for ten thousand.
"""

from __future__ import annotations

import bisect
import heapq
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, Protocol

from hpkit.kueue.model import PodSetAssignment, Workload
from hpkit_whatif.admission.tree import QueueNode, TreeNode, Usage

__all__ = ["Queue", "Shape", "Task"]

_NONE: frozenset[int] = frozenset()

State = Literal["waiting", "running", "backing off", "gone"]


class Found(Protocol):
    """What was found of a workload that did not get in."""

    @property
    def waits_for(self) -> str:
        """Return Kueue's reason."""


class Shape:
    """Workloads that ask for the same: requests, priority, counts.

    asked: what they ask, resolved once. flavors: the indices of those that they may go to.
    blocked: what was found of them when there was no room, and what it hangs on: the node (the queue alone, if its own
    limit was in the way, else all below the root), and how much had changed there on the flavors that they may go to.
    """

    __slots__ = ("asked", "blocked", "flavors", "heap", "parked", "priority", "size")

    def __init__(self, priority: int, asked: object, flavors: tuple[int, ...]) -> None:
        self.priority = priority
        self.asked = asked
        self.flavors = flavors
        self.heap: list[tuple[float, str, Task]] = []
        self.parked = False
        self.size = 0
        self.blocked: tuple[Sequence[int], int, Found] | None = None

    def first(self) -> Task | None:
        """Return the first of those that wait."""
        heap = self.heap
        while heap and heap[0][2].state != "waiting":
            heapq.heappop(heap)
        return heap[0][2] if heap else None

    def block(self, node: TreeNode, found: Found) -> None:
        """Remember what was found of them for as long as nothing changes at the node."""
        self.blocked = node.changes, sum([node.changes[flavor] for flavor in self.flavors]), found

    def still_blocked(self) -> Found | None:
        """Return what was found of them when there was no room, if nothing has changed since."""
        blocked = self.blocked
        if blocked is None:
            return None
        changes, then, targets = blocked
        now = 0
        for flavor in self.flavors:
            now += changes[flavor]
        return targets if now == then else None


class Task:
    """A workload on its way: where it is in its queue, and what it holds."""

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
        # The cycle orders those that were admitted at the same time.
        self.cycle = 0
        self.evicted = False
        self.attempt = 0
        # How often its pods weren't ready in time.
        self.retries = 0
        self.reason: str | None = None
        # How far the walk over the flavors came: of each pod set, by resource group, the flavor to go on after.
        self.tried: tuple[dict[int, int], ...] = ()
        self.last_cycle = 0
        self.last_generation = 0

    @property
    def eviction_key(self) -> tuple[int, float, int, str]:
        """Return the place among those that could be evicted: lower priority, admitted later, name."""
        return self.priority, -self.admitted, -self.cycle, self.name

    def pending_flavors(self) -> bool:
        """Return whether the walk over the flavors stopped before the last one."""
        return bool(self.tried) and any(index != -1 for tried in self.tried for index in tried.values())


class Queue:
    """A queue: its place in the tree, what waits and what runs.

    running_on: of each set of pairs, those who use just these, in the order of eviction. generation: how often quota
    came free.
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
        self.ready: list[tuple[int, float, str, Task]] = []
        self.parked: list[Shape] = []
        self.sticky: Task | None = None
        self.generation = 0
        self.evicting = 0
        self.waiting = 0
        self.running: dict[str, Task] = {}
        self.running_on: dict[frozenset[int], list[tuple[int, float, int, str, Task]]] = {}

    def submit(self, spec: Workload) -> Task:
        """Let a workload wait; one of a shape that is set aside is set aside at once."""
        task = self.new(spec)
        self.push(task)
        return task

    def new(self, spec: Workload) -> Task:
        """Return a workload that neither waits nor runs yet."""
        key, demand, flavors = self.resolve(spec)
        shape = self.shapes.get(key)
        if shape is None:
            shape = self.shapes[key] = Shape(spec.priority, demand, flavors)
        return Task(spec, self, shape)

    def push(self, task: Task) -> None:
        """Put a workload to its place."""
        shape = task.shape
        task.state = "waiting"
        heapq.heappush(shape.heap, (task.created, task.name, task))
        shape.size += 1
        self.waiting += 1
        if not shape.parked and shape.first() is task:
            heapq.heappush(self.ready, (-task.priority, task.created, task.name, task))

    def head(self) -> Task | None:
        """Return the first that is not set aside: the one that preempted before all others."""
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

    def take(self, task: Task, state: State) -> None:
        """Take a workload out of what waits."""
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
        """Set a shape aside until something comes free."""
        if not shape.parked:
            shape.parked = True
            self.parked.append(shape)

    def wake(self) -> None:
        """Take up again all that was set aside."""
        for shape in self.parked:
            shape.parked = False
            self._offer(shape)
        self.parked.clear()

    def drop(self, task: Task) -> None:
        """Forget a workload that leaves what waits for good or for now."""
        if self.sticky is task:
            self.sticky = None

    def waiting_tasks(self) -> Iterator[Task]:
        """Return those that wait."""
        for shape in self.shapes.values():
            for _, _, task in shape.heap:
                if task.state == "waiting":
                    yield task

    def start(self, task: Task) -> None:
        """Let a workload run with the usage that it holds."""
        task.state = "running"
        self.running[task.name] = task
        self.node.add(task.usage)
        self._changed(task)
        running = self.running_on.get(task.pairs)
        if running is None:
            running = self.running_on[task.pairs] = []
        bisect.insort(running, (*task.eviction_key, task))

    def stop(self, task: Task) -> None:
        """Take what a workload holds."""
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

    def evict(self, task: Task) -> None:
        """Let a workload be on its way out; it holds what it has until it stops."""
        task.evicted = True
        self.evicting += 1
        self._changed(task)

    def _changed(self, task: Task) -> None:
        mine, all_ = self.node.changes, self.node.root.changes
        for flavor in task.flavors:
            mine[flavor] += 1
            if all_ is not mine:
                all_[flavor] += 1

    def evictable(self, pairs: Iterable[int]) -> Iterable[Task]:
        """Return who uses any of the pairs, in the order of eviction: those that are on their way out first."""
        lists = [entries for used, entries in self.running_on.items() if entries and not used.isdisjoint(pairs)]
        if not lists:
            return ()
        entries = lists[0] if len(lists) == 1 else sorted(itertools.chain(*lists))
        tasks = [entry[4] for entry in entries]
        if self.evicting:
            tasks.sort(key=lambda task: not task.evicted)
        return tasks

"""The simulator: a state in; one cycle, a run until nothing changes, or a run of the clock out."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterable, Iterator

from hpkit.kueue.events import Admitted, CycleResult, Event, Pending, Preempted
from hpkit.kueue.model import Model, PodSetAssignment, Workload
from hpkit_whatif.admission.assign import Resolver
from hpkit_whatif.admission.check import reject_admission, reject_model
from hpkit_whatif.admission.cycle import Cycle
from hpkit_whatif.admission.placement import Places
from hpkit_whatif.admission.queue import Queue, QueuedWorkload
from hpkit_whatif.admission.tree import Pairs, TreeNode, build
from hpkit_whatif.admission.turn import Entry, backoff_of, is_retried

__all__ = ["Simulator"]


class Simulator:
    """Queues, what waits in them and what runs: advanced cycle by cycle or event by event.

    Everything is decided as Kueue 0.19.2 decides it. Where that leaves something to chance, the order of the queues in
    the model and the workloads' names decide.
    """

    def __init__(self, model: Model, workloads: Iterable[Workload] = (), *, now: float = 0.0) -> None:
        """Create a simulator with running and waiting workloads. Raises ValueError for contradictions."""
        reject_model(model)
        self.now = now
        self._pairs = Pairs(model)
        nodes, self._cohorts = build(model, self._pairs)
        self._places = Places(model)
        grids = self._places.grids
        self._queues: dict[str, Queue] = {
            name: Queue(node, Resolver(node, self._pairs, grids)) for name, node in nodes.items()
        }
        by_node: dict[TreeNode, Queue] = {queue.node: queue for queue in self._queues.values()}
        self._cycle = Cycle(by_node, self._pairs, model.fair_sharing, self._places)
        self._flat = all(node.depth <= 1 for node in by_node)
        self._by_root: dict[TreeNode, list[Queue]] = {}
        for queue in self._queues.values():
            self._by_root.setdefault(queue.node.root, []).append(queue)
        self._tasks: dict[str, QueuedWorkload] = {}
        # Queues that may have a head; all others are passed over.
        self._awake: dict[str, Queue] = {}
        self._evicting: list[QueuedWorkload] = []
        self._finishing: list[tuple[float, int, int, QueuedWorkload]] = []
        self._gang = model.wait_for_pods_ready
        # Admitted, with pods that aren't all ready yet.
        self._starting: list[tuple[float, int, int, QueuedWorkload]] = []
        self._unready: set[str] = set()
        self._backing_off: list[tuple[float, str, QueuedWorkload]] = []
        # The decisions of a cycle that waits for other workloads' pods, and the quota freed since.
        self._held: list[Entry] = []
        self._woken: set[TreeNode] = set()
        self._sequence = itertools.count()
        leaves = self._places.leaves()
        for workload in workloads:
            self._take_up(workload, leaves)

    # Queries

    def running(self) -> dict[str, tuple[PodSetAssignment, ...]]:
        """Return the running workloads with their assignments."""
        return {name: task.assignment for queue in self._queues.values() for name, task in queue.running.items()}

    def pending(self) -> list[Pending]:
        """Return the waiting workloads by name."""
        workloads = [
            Pending(task.name, task.reason, task.shape.parked)
            for queue in self._queues.values()
            for task in queue.waiting_tasks()
        ]
        workloads += [Pending(name, self._tasks[name].reason, parked=True) for name in self.backoffs()]
        return sorted(workloads, key=lambda workload: workload.name)

    def backoffs(self) -> dict[str, float]:
        """Return when each workload returns to its queue that was evicted because its pods weren't ready."""
        return {name: time for time, name, task in self._backing_off if task.state == "backing off"}

    def queue_of(self, workload: str) -> str:
        """Return the name of a workload's queue; KeyError if it neither runs nor waits."""
        return self._tasks[workload].queue.node.name

    def share(self, queue: str) -> float:
        """Return a queue's weighted share, as Kueue's status has it before it is rounded up."""
        return self._queues[queue].node.weighted_share()

    def cohort_share(self, cohort: str) -> float:
        """Return a cohort's weighted share under its parent."""
        return self._cohorts[cohort].weighted_share()

    def potential(self, queue: str) -> dict[tuple[str, str], int]:
        """Return the most that a queue could ever use, by flavor and resource."""
        node = self._queues[queue].node
        return {name: node.potential[pair] for pair, name in enumerate(self._pairs.names)}

    def usage(self, queue: str) -> dict[tuple[str, str], int]:
        """Return a queue's usage by flavor and resource."""
        node = self._queues[queue].node
        return {self._pairs.names[pair]: amount for pair, amount in enumerate(node.usage) if amount}

    # What happens

    def submit(self, workload: Workload) -> None:
        """Add a waiting workload to its queue. Raises ValueError if it's invalid, such as for a missing queue."""
        self._check(workload)
        queue = self._queues[workload.queue]
        self._tasks[workload.name] = queue.submit(workload)
        self._awake[workload.queue] = queue

    def finish(self, name: str) -> None:
        """End a running or waiting workload; its quota is freed, and parked workloads are tried again.

        Raises KeyError if it neither runs nor waits.
        """
        task = self._tasks.pop(name)
        if task.state == "running":
            self._release(task)
            self._wake(task.queue.node.root)
        elif task.state == "waiting":
            task.queue.take(task, "gone")
            self._wake(task.queue.node.root)
        else:
            task.state = "gone"
        task.queue.drop(task)

    def time_out(self, name: str) -> bool:
        """Evict a workload whose pods aren't ready in time; return whether it is retried. ValueError if nothing does.

        KeyError if it doesn't run.
        """
        if self._gang is None:
            raise ValueError("without gang scheduling, nothing is evicted for its pods")
        task = self._tasks[name]
        if task.state != "running":
            raise KeyError(name)
        self._release(task)
        task.attempt += 1
        is_again = is_retried(self._gang, task.retries)
        if is_again:
            task.retries += 1
            task.state, task.reason = "backing off", "PodsReadyTimeout"
            task.created = self.now if self._gang.timestamp == "Eviction" else task.spec.created
            end = self.now + backoff_of(self._gang, task.retries)
            heapq.heappush(self._backing_off, (end, name, task))
        else:
            del self._tasks[name]
        task.queue.drop(task)
        self._wake(task.queue.node.root)
        return is_again

    def requeue(self) -> None:
        """Requeue the workloads whose backoff has ended."""
        while self._backing_off and self._backing_off[0][0] <= self.now:
            task = heapq.heappop(self._backing_off)[2]
            if task.state == "backing off":
                task.reason = None
                task.queue.push(task)
                self._awake[task.queue.node.name] = task.queue

    def run_cycle(self) -> CycleResult:
        """Run exactly one cycle; evicted workloads hold their quota until `complete_evictions`.

        With blockAdmission, a cycle ends when an admission must wait for other workloads' pods; the next call continues
        it.
        """
        return self._run([] if self._held else self._heads(pass_over=True)[0])

    def complete_evictions(self) -> bool:
        """Free the quota of evicted workloads, which wait again; return whether there were any."""
        evicted, self._evicting = self._evicting, []
        roots: dict[TreeNode, None] = {}
        for task in sorted(evicted, key=lambda task: task.name):
            if task.state != "running":
                continue
            self._release(task)
            task.attempt += 1
            task.created = task.spec.created
            task.queue.push(task)
            self._awake[task.queue.node.name] = task.queue
            roots[task.queue.node.root] = None
        for root in roots:
            self._wake(root)
        return bool(roots)

    def run_until_quiet(
        self, *, tick: float = 0.0, on_cycle: Callable[[CycleResult], None] = lambda _outcome: None
    ) -> CycleResult:
        """Run cycles, completing every eviction immediately, until nothing changes or the states repeat.

        tick: seconds that the clock advances with each cycle. on_cycle: called after each cycle with its result.
        """
        total = CycleResult()
        if not self._end_held(total, on_cycle):
            return total
        heads, passed_over = self._heads(pass_over=True)
        if not heads and not passed_over and not self._evicting:
            return total
        watch = _Watch()
        progress = True
        while True:
            if not progress and not passed_over and watch.was_here(heads):
                return total
            if not heads and not passed_over:
                if self._evicting and self.complete_evictions():
                    progress = True
                    heads, passed_over = self._heads(pass_over=True)
                    continue
                return total
            self.now += tick
            outcome = self._run(heads)
            on_cycle(outcome)
            evicted = self.complete_evictions()
            total.admitted += outcome.admitted
            total.preempted += outcome.preempted
            progress = bool(outcome.admitted) or evicted
            if not self._end_held(total, on_cycle):
                return total
            if progress and watch.repeats(lambda: self._heads(pass_over=False)[0], self._running, outcome):
                total.flapping = watch.flapping
                return total
            heads, passed_over = self._heads(pass_over=True)

    def run_clock(
        self,
        workloads: Iterable[Workload],
        *,
        until: float | None = None,
        on_event: Callable[[Event], None] | None = None,
    ) -> frozenset[str]:
        """Run the clock: submit each workload at its creation time, and end it after its run time.

        An evicted workload starts again. With gang scheduling, one whose pods take too long to become ready is evicted
        and retried. workloads: in the order of creation, read one by one as their time comes. One that was created
        before `now` is submitted immediately. until: when to stop; by default, when nothing more would happen. Returns
        flapping workloads. Raises ValueError for a workload that is invalid, out of order, or would be retried forever.
        """
        if until is not None and math.isnan(until):
            raise ValueError(f"until is {until}; it must be a number of seconds, or None")
        say = on_event or (lambda _event: None)
        coming = _Coming(workloads)
        flapping: frozenset[str] = frozenset()

        def on_cycle(outcome: CycleResult) -> None:
            # A workload admitted in a cycle can rely on quota of workloads that others evict in the same cycle.
            for preempted in outcome.preempted:
                say(Event(self.now, "Preempted", preempted.name, preempted.reason, preempted.by))
            for admitted in outcome.admitted:
                self._plan(self._tasks[admitted.name])
                say(Event(self.now, "Admitted", admitted.name, pod_sets=admitted.pod_sets))

        for task in [task for queue in self._queues.values() for task in queue.running.values()]:
            self._plan(task)
        while True:
            following = self._next_time(coming)
            if following is None or (until is not None and following > until):
                return flapping
            self.now = max(self.now, following)
            self._end_due(say)
            self._start_due(say)
            self.requeue()
            for workload in coming.until(self.now):
                if until is None and self._gang is not None and self._gang.retries_forever(workload.start):
                    raise ValueError(
                        f"workload {workload.name}: its pods are never ready in time, and nothing limits its retries"
                    )
                self.submit(workload)
                say(Event(self.now, "Submitted", workload.name))
            flapping |= self.run_until_quiet(on_cycle=on_cycle).flapping

    # Internals of the clock

    def _check(self, workload: Workload) -> None:
        if workload.queue not in self._queues:
            raise ValueError(f"workload {workload.name}: there is no queue {workload.queue}")
        if workload.name in self._tasks:
            raise ValueError(f"there are two workloads {workload.name}")
        if not -math.inf < workload.created < math.inf:
            raise ValueError(f"workload {workload.name}: created is {workload.created}; it must be a number of seconds")
        if not 0 <= workload.start < math.inf:
            raise ValueError(f"workload {workload.name}: start is {workload.start}; it must be seconds, 0 or more")
        if workload.run is not None and not 0 <= workload.run < math.inf:
            raise ValueError(
                f"workload {workload.name}: run is {workload.run}; it must be seconds, 0 or more, or None for ever"
            )

    def _take_up(self, workload: Workload, leaves: frozenset[str] | None) -> None:
        if workload.admission is None:
            self.submit(workload)
            return
        self._check(workload)
        reject_admission(workload, self._pairs.index, leaves)
        queue = self._queues[workload.queue]
        task = self._tasks[workload.name] = queue.new(workload)
        usage: dict[int, int] = {}
        for assignment in workload.admission.pod_sets:
            for resource, flavor in assignment.flavors.items():
                pair = self._pairs.index[flavor, resource]
                usage[pair] = usage.get(pair, 0) + assignment.usage.get(resource, 0)
        task.usage = tuple(usage.items())
        task.pairs = frozenset(usage)
        task.flavors = frozenset(self._pairs.flavor_of[pair] for pair in usage)
        task.assignment = workload.admission.pod_sets
        task.admitted = workload.admission.admitted
        queue.start(task)
        if workload.admission.evicted:
            queue.evict(task)
        self._places.resume(task)
        if task.evicted:
            self._evicting.append(task)

    def _heads(self, *, pass_over: bool) -> tuple[list[QueuedWorkload], bool]:
        """Return the heads of the next cycle in the order of the queues, and whether more were passed over.

        pass_over: park a head immediately if nothing has changed for its shape since it found no room, because that
        uses its queue's turn. In a tree of cohorts, it can block another head, so it's processed.
        """
        heads = []
        passed_over = False
        pass_over = pass_over and self._flat
        for name, queue in list(self._awake.items()):
            head = queue.head()
            if head is None:
                del self._awake[name]
                continue
            if pass_over and not head.tried and not queue.strict:
                found = head.shape.still_blocked()
                if found is not None:
                    head.reason = found.waits_for
                    queue.park(head.shape)
                    passed_over = True
                    continue
            heads.append(head)
        if len(heads) > 1:
            heads.sort(key=_order)
        return heads, passed_over

    def _run(self, heads: list[QueuedWorkload]) -> CycleResult:
        outcome = CycleResult()
        entries = self._held
        if not entries:
            entries = self._cycle.run(heads)
            self._woken = set()
            if self._blocks:
                entries.sort(key=lambda entry: entry.turn)
        for number, entry in enumerate(entries):
            if entry.outcome == "Admitted" and self._blocks and self._unready:
                entry.task.reason = "WaitingForPodsReady"
                self._held = entries[number:]
                return outcome
            self._settle(entry, outcome)
        self._held = []
        return outcome

    @property
    def _blocks(self) -> bool:
        return self._gang is not None and self._gang.block_admission

    def _end_held(self, total: CycleResult, on_cycle: Callable[[CycleResult], None]) -> bool:
        """Continue a cycle that waits for other workloads' pods; return whether it has ended."""
        while self._held and not self._unready:
            outcome = self._run([])
            on_cycle(outcome)
            self.complete_evictions()
            total.admitted += outcome.admitted
            total.preempted += outcome.preempted
        return not self._held

    def _settle(self, entry: Entry, outcome: CycleResult) -> None:
        task, queue = entry.task, entry.task.queue
        if task.state != "waiting":
            # It ended while the cycle waited.
            return
        if entry.outcome == "Admitted":
            self._admit(entry)
            outcome.admitted.append(Admitted(task.name, task.assignment))
            return
        if entry.outcome == "Preempting":
            task.reason, task.tried = "WaitingForPreemptedWorkloads", ()
            queue.sticky = None if queue.strict else task
            for victim, reason in entry.targets:
                if not victim.evicted and victim.state == "running":
                    victim.queue.evict(victim)
                    self._evicting.append(victim)
                    outcome.preempted.append(Preempted(victim.name, reason, task.name))
        else:
            task.reason = entry.assignment.waits_for
        parks = entry.outcome in ("NoFit", "NoCandidates") and not queue.strict and not task.pending_flavors()
        # Quota freed while the cycle waited might be enough.
        parks = parks and queue.node.root not in self._woken
        if parks:
            queue.park(task.shape)
            task.tried = ()

    def _admit(self, entry: Entry) -> None:
        task = entry.task
        task.queue.take(task, "running")
        task.usage = entry.usage
        task.pairs = frozenset(entry.assignment.pairs)
        task.flavors = frozenset(self._pairs.flavor_of[pair] for pair in task.pairs)
        task.assignment = entry.assignment.result()
        task.placed = entry.assignment.placed
        task.admitted, task.cycle = self.now, self._cycle.number
        task.reason, task.tried = None, ()
        task.queue.drop(task)
        task.queue.start(task)
        self._places.add(task.placed)
        if task.spec.start:
            self._unready.add(task.name)

    def _release(self, task: QueuedWorkload) -> None:
        self._unready.discard(task.name)
        self._places.remove(task.placed)
        task.queue.stop(task)

    def _wake(self, root: TreeNode) -> None:
        self._woken.add(root)
        for queue in self._by_root[root]:
            if queue.parked:
                queue.wake()
                self._awake[queue.node.name] = queue

    def _running(self) -> object:
        """Return the running workloads with their assignments in the order of admission, for comparisons only."""
        return tuple(
            (task.name, tuple((got.count, *got.flavors.items(), *got.domains) for got in task.assignment))
            for queue in self._queues.values()
            for task in queue.running.values()
        )

    def _plan(self, task: QueuedWorkload) -> None:
        """Plan when an admitted workload's pods are ready, and when it ends."""
        if task.name in self._unready and task.state == "running":
            timeout = math.inf if self._gang is None else self._gang.timeout
            ready = task.admitted + min(task.spec.start, timeout)
            heapq.heappush(self._starting, (ready, next(self._sequence), task.attempt, task))
        else:
            self._plan_end(task, task.admitted)

    def _plan_end(self, task: QueuedWorkload, begin: float) -> None:
        if task.spec.run is not None and task.state == "running":
            task.finishes = begin + task.spec.run
            heapq.heappush(self._finishing, (task.finishes, next(self._sequence), task.attempt, task))

    def _start_due(self, say: Callable[[Event], None]) -> None:
        """Mark workloads whose pods are ready as running, and evict those whose pods took too long."""
        while self._starting and self._starting[0][0] <= self.now:
            entry = heapq.heappop(self._starting)
            if not self._still_runs(entry):
                continue
            task = entry[3]
            if self._gang is None or task.spec.start <= self._gang.timeout:
                self._unready.discard(task.name)
                self._plan_end(task, entry[0])
            else:
                is_again = self.time_out(task.name)
                say(Event(self.now, "TimedOut" if is_again else "Deactivated", task.name, "PodsReadyTimeout"))

    def _next_time(self, coming: _Coming) -> float | None:
        times = []
        for heap in (self._finishing, self._starting):
            while heap and not self._still_runs(heap[0]):
                heapq.heappop(heap)
            times += [heap[0][0]] if heap else []
        times += [min(backoffs.values())] if (backoffs := self.backoffs()) else []
        if coming.following is not None:
            times.append(coming.following.created)
        return min(times, default=None)

    @staticmethod
    def _still_runs(entry: tuple[float, int, int, QueuedWorkload]) -> bool:
        _, _, attempt, task = entry
        return task.state == "running" and task.attempt == attempt

    def _end_due(self, say: Callable[[Event], None]) -> None:
        roots: dict[TreeNode, None] = {}
        while self._finishing and self._finishing[0][0] <= self.now:
            entry = heapq.heappop(self._finishing)
            if not self._still_runs(entry):
                continue
            task = entry[3]
            del self._tasks[task.name]
            self._release(task)
            task.queue.drop(task)
            roots[task.queue.node.root] = None
            say(Event(self.now, "Finished", task.name))
        for root in roots:
            self._wake(root)


class _Coming:
    """Future workloads, read one ahead."""

    def __init__(self, workloads: Iterable[Workload]) -> None:
        self._rest = iter(workloads)
        self.following = next(self._rest, None)

    def until(self, now: float) -> Iterator[Workload]:
        """Return the workloads whose time has come."""
        while self.following is not None and self.following.created <= now:
            workload = self.following
            self.following = next(self._rest, None)
            if self.following is not None and self.following.created < workload.created:
                raise ValueError(f"workload {self.following.name} was created before {workload.name}, and comes later")
            yield workload


def _order(task: QueuedWorkload) -> int:
    return task.queue.node.order


class _Watch:
    """Notices when cycles lead nowhere: they change nothing, or lead back to where they began."""

    def __init__(self) -> None:
        self.flapping: frozenset[str] = frozenset()
        self._idle: set[tuple[object, ...]] = set()
        self._evictions: dict[str, int] = {}
        self._seen: dict[object, int] = {}
        self._evicted: list[str] = []

    def was_here(self, heads: list[QueuedWorkload]) -> bool:
        """Return whether these heads appeared before since the last change."""
        now = _signature(heads)
        if now in self._idle:
            return True
        self._idle.add(now)
        return False

    def repeats(
        self, heads: Callable[[], list[QueuedWorkload]], running: Callable[[], object], outcome: CycleResult
    ) -> bool:
        """Return whether a cycle with changes led back to an earlier state."""
        self._idle.clear()
        for each in outcome.preempted:
            self._evictions[each.name] = self._evictions.get(each.name, 0) + 1
            self._evicted.append(each.name)
        if not any(self._evictions[each.name] > 1 for each in outcome.preempted):
            return False
        state = (_signature(heads()), running())
        if state in self._seen:
            self.flapping = frozenset(self._evicted[self._seen[state] :])
            return True
        self._seen[state] = len(self._evicted)
        return False


def _signature(heads: list[QueuedWorkload]) -> tuple[object, ...]:
    """Return the heads and how far the walk of each over its flavors is."""
    return tuple(
        [
            (head.name, tuple(tuple(sorted(tried.items())) for tried in head.tried)) if head.tried else head.name
            for head in heads
        ]
    )

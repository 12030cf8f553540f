"""One scheduling cycle: the head of each queue, nominated against the same state, then processed one by one.

Rules: Kueue's `pkg/scheduler/scheduler.go`, version 0.19.2. No state is copied: trial changes are undone.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from hpkit.kueue.model import PodSet, Strategy
from hpkit_whatif.admission.assign import Asked, Assignment, Mode, Request, assign, scaled_counts
from hpkit_whatif.admission.fair import fair
from hpkit_whatif.admission.placement import Places
from hpkit_whatif.admission.preempt import Search, Target, classic
from hpkit_whatif.admission.queue import Queue, QueuedWorkload
from hpkit_whatif.admission.tree import Pairs, TreeNode
from hpkit_whatif.admission.turn import Entry, classic_order, fair_order

__all__ = ["Cycle"]


class Cycle:
    """Runs cycles over queues; the decisions are in the entries that `run` returns."""

    __slots__ = ("_applied", "_fair", "_left", "_number", "_places", "_pods", "_queues", "_version")

    def __init__(
        self, queues: Mapping[TreeNode, Queue], pairs: Pairs, strategies: tuple[Strategy, ...] | None, places: Places
    ) -> None:
        self._queues = queues
        self._fair = strategies
        self._places = places
        # Kueue searches for victims without the resource `pods`, which a queue counts.
        self._pods = frozenset(index for (_, resource), index in pairs.index.items() if resource == "pods")
        self._number = 0
        self._version = 0
        self._applied: list[Entry] = []
        # Number of entries in the cycle after the current one.
        self._left = 0

    @property
    def number(self) -> int:
        """Return the number of cycles so far."""
        return self._number

    def run(self, heads: Iterable[QueuedWorkload]) -> list[Entry]:
        """Decide about these heads; each entry has its result, and nothing is admitted or evicted yet."""
        self._number += 1
        entries = [self._nominate(task) for task in heads]
        active = _active(entries)
        self._applied = []
        self._left = len(active)
        preempted: dict[str, QueuedWorkload] = {}
        for entry in active if len(active) <= 1 else self._in_turn(active):
            self._left -= 1
            entry.turn = len(active) - self._left
            self._process(entry, preempted)
        for entry in reversed(self._applied):
            entry.task.queue.node.remove(entry.usage)
            self._places.remove(entry.assignment.placed)
        return entries

    def _in_turn(self, active: Sequence[Entry]) -> Iterable[Entry]:
        if self._fair is None:
            return classic_order(active)
        return fair_order(active, version=lambda: self._version)

    def _nominate(self, task: QueuedWorkload) -> Entry:
        if task.tried and self._number - task.last_cycle > 1 and task.queue.generation > task.last_generation:
            task.tried = ()
        assignment, targets = self._assignments(task)
        self._remember(task, assignment)
        return Entry(task, assignment, assignment.amounts(), targets)

    def _remember(self, task: QueuedWorkload, assignment: Assignment) -> None:
        task.tried = tuple(assignment.tried)
        task.last_cycle = self._number
        task.last_generation = task.queue.generation

    def _assignments(self, task: QueuedWorkload) -> tuple[Assignment, list[Target]]:
        demand = _asked(task)
        request = demand.request
        blocked = None if task.pending_flavors() else task.shape.still_blocked()
        if blocked is not None:
            return cast("Assignment", blocked), []
        full, targets = self._attempt(task, request, None)
        if full.mode == Mode.FIT or targets:
            return full, targets
        if demand.partial:
            smaller = self._reduced(task, request)
            if smaller is not None:
                return smaller
        self._places.reserve(full, request)
        return full, []

    def _cached_assignment(self, task: QueuedWorkload, *, supposed: bool) -> Assignment | None:
        """Return the assignment of a workload without a choice, None if it depends on more than its queue's outlook."""
        demand = _asked(task)
        if demand.amounts is None or task.pending_flavors():
            return None
        fair = self._fair is not None
        fits, outlook = task.queue.node.outlook(demand.amounts, fair=fair)
        if not fits and not supposed:
            return None
        assignment = demand.assignments.get(outlook)
        if assignment is None:
            assignment = demand.assignments[outlook] = assign(task, demand.request, None, fair=fair, simulate=_suppose)
        return assignment

    def _attempt(
        self, task: QueuedWorkload, request: Request, counts: Sequence[int] | None, *, exact: bool = False
    ) -> tuple[Assignment, list[Target]]:
        # With no other flavor to choose, possible victims for a single pair don't matter.
        supposed = not exact and _asked(task).no_choice
        assignment = self._cached_assignment(task, supposed=supposed) if counts is None else None
        if assignment is None:
            simulate = _suppose if supposed else self._simulate
            assignment = assign(task, request, counts, fair=self._fair is not None, simulate=simulate)
            self._places.place(assignment, request)
        # Results for whole sizes stay valid until something changes, if they depend on quota only.
        stays = supposed and self._stays(task)
        if assignment.mode in (Mode.NO_FIT, Mode.FIT):
            if stays and assignment.mode == Mode.NO_FIT:
                task.shape.block(task.queue.node.root, assignment)
            return assignment, []
        usage = [(pair, amount) for pair, amount in assignment.usage.items() if amount and pair not in self._pods]
        search = Search(task, usage, assignment.contested(), self._queues)
        if self._places.asked_by(request):
            search.places = lambda: self._places.fits(assignment, request)
            search.on_release = self._places.count
        targets = self._targets(search)
        if stays and search.hopeless:
            task.shape.block(task.queue.node, assignment)
        elif stays and search.without_shares and not targets:
            task.shape.block(task.queue.node.root, assignment)
        if targets and supposed and self._fair is None:
            # Except for the order of the heads, which the level of borrowing decides.
            return self._attempt(task, request, counts, exact=True)
        if targets:
            self._places.place_without(assignment, request, [target for target, _ in targets])
        return assignment, targets

    def _stays(self, task: QueuedWorkload) -> bool:
        demand, spec = _asked(task), task.queue.node.spec.preemption
        alike = spec.within_cluster_queue != "LowerOrNewerEqualPriority"
        whole = not demand.partial and not task.pending_flavors()
        return alike and whole and not self._places.asked_by(demand.request)

    def _reduced(self, task: QueuedWorkload, request: Request) -> tuple[Assignment, list[Target]] | None:
        """Return the largest smaller size that fits or finds victims, by Kueue's binary search."""
        steps = sum(each.spec.count - _least(each.spec) for each in request)
        if not steps:
            return None
        smallest_step: tuple[int, tuple[Assignment, list[Target]]] | None = None
        low, high = 0, steps + 1
        while low < high:
            middle = (low + high) // 2
            assignment, targets = self._attempt(task, request, scaled_counts(request, middle, steps))
            if assignment.mode == Mode.FIT or targets:
                smallest_step, high = (middle, (assignment, targets)), middle
            else:
                low = middle + 1
        return smallest_step[1] if smallest_step is not None and smallest_step[0] == low else None

    def _targets(self, search: Search) -> list[Target]:
        return classic(search) if self._fair is None else fair(search, self._fair)

    def _simulate(self, task: QueuedWorkload, pair: int, amount: int) -> tuple[Mode, int]:
        node = task.queue.node
        targets = self._targets(Search(task, ((pair, amount),), frozenset((pair,)), self._queues))
        if not targets:
            return Mode.NO_CANDIDATES, node.borrow_level(pair, amount)[0]
        for victim, _ in targets:
            victim.queue.node.remove(victim.usage)
        level, _ = node.borrow_level(pair, amount)
        for victim, _ in targets:
            victim.queue.node.add(victim.usage)
        own = any(victim.queue is task.queue for victim, _ in targets)
        return Mode.PREEMPT if own else Mode.RECLAIM, level

    def _process(self, entry: Entry, preempted: dict[str, QueuedWorkload]) -> None:
        task, assignment = entry.task, entry.assignment
        if assignment.mode == Mode.NO_FIT:
            entry.outcome = "NoFit"
            return
        # Nothing has changed since the first nomination, and it needs no victims. If borrowing counts as worse than
        # preempting, a workload that fits by its mode might need victims anyway.
        plain = task.queue.node.spec.fungibility.preference == "BorrowingOverPreemption"
        untouched = plain and assignment.mode == Mode.FIT and not self._applied and not preempted
        fits = "Fits" if untouched else self._still_fits(entry, preempted)
        if fits == "NoPlace":
            task.tried = ()
            assignment, entry.targets = self._assignments(task)
            entry.assignment = assignment
            self._remember(task, assignment)
            entry.usage = assignment.amounts()
            fits = self._still_fits(entry, preempted)
        if assignment.mode == Mode.NO_FIT:
            entry.outcome = "NoFit"
        elif assignment.mode != Mode.FIT and not entry.targets:
            entry.outcome = "NoCandidates"
            if task.queue.node.spec.preemption.reclaim_within_cohort != "Any":
                self._apply(entry, self._reserved(entry))
        elif any(target.name in preempted for target, _ in entry.targets) or fits != "Fits":
            entry.outcome = "Skipped"
        else:
            preempted.update((target.name, target) for target, _ in entry.targets)
            self._apply(entry, entry.usage)
            entry.outcome = "Admitted" if assignment.mode == Mode.FIT else "Preempting"

    def _apply(self, entry: Entry, usage: Sequence[tuple[int, int]]) -> None:
        entry.usage = usage
        if not self._left:
            # No later entry would see it.
            return
        entry.task.queue.node.add(usage)
        self._places.add(entry.assignment.placed)
        self._applied.append(entry)
        self._version += 1

    def _still_fits(self, entry: Entry, gone: dict[str, QueuedWorkload]) -> str:
        """Return whether there is room after the removal of all victims of this cycle: Fits, NoQuota or NoPlace."""
        victims = {**gone, **{target.name: target for target, _ in entry.targets}}.values()
        for victim in victims:
            victim.queue.node.remove(victim.usage)
            self._places.count(victim, -1)
        node = entry.task.queue.node
        fits = "Fits" if self._places.holds(entry.assignment.placed) else "NoPlace"
        if any(amount > max(0, node.available(pair)) for pair, amount in entry.usage):
            fits = "NoQuota"
        for victim in victims:
            victim.queue.node.add(victim.usage)
            self._places.count(victim, 1)
        return fits

    def _reserved(self, entry: Entry) -> list[tuple[int, int]]:
        """Return what is reserved in this cycle for a workload that found no victims."""
        node = entry.task.queue.node
        reserved = []
        for pair, amount in entry.usage:
            left = node.nominal[pair] - node.usage[pair]
            limit = node.borrowing[pair]
            if entry.assignment.borrowing == 0:
                reserved_amount = min(amount, left)
            else:
                reserved_amount = amount if limit is None else min(amount, left + limit)
            # If usage exceeds the limit, Kueue subtracts the rest only from the queue, which nothing reads.
            reserved.append((pair, max(0, reserved_amount)))
        return reserved


def _least(spec: PodSet) -> int:
    return spec.count if spec.min_count is None else spec.min_count


def _asked(task: QueuedWorkload) -> Asked:
    return cast("Asked", task.shape.asked)


def _active(entries: Sequence[Entry]) -> list[Entry]:
    """Return the entries that must be processed; the results of all others are known."""
    flat = all(entry.task.queue.node.depth <= 1 for entry in entries)
    active = []
    for entry in entries:
        # In a tree, it can block another entry of its cohort; otherwise it can be processed first.
        if flat and entry.does_nothing:
            entry.outcome = "NoFit" if entry.assignment.mode == Mode.NO_FIT else "NoCandidates"
        else:
            active.append(entry)
    return active


def _suppose(task: QueuedWorkload, pair: int, amount: int) -> tuple[Mode, int]:
    return Mode.PREEMPT, task.queue.node.borrow_level(pair, amount)[0]

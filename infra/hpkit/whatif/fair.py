"""Fair sharing: whose turn it is, and who gives way to whom.

Rules: Kueue's `fair_sharing_iterator.go` and `pkg/scheduler/preemption/fairsharing`, version 0.19.2.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from hpkit.whatif.model import Strategy
from hpkit.whatif.preempt import Reason, Search, Target, fill_back, permits
from hpkit.whatif.queue import Task
from hpkit.whatif.tree import QueueNode, TreeNode

__all__ = ["fair"]

Share = tuple[int, float]
_BELOW_ALL: Share = (0, -1.0)


def fair(search: Search, strategies: Sequence[Strategy]) -> list[Target]:
    """Return whom to evict so that shares get closer, nobody if that does not help."""
    candidates = _candidates(search)
    if not candidates:
        return []
    node = search.node
    # Shares are compared as they will be with the workload.
    node.add(search.usage)
    round_ = _Round(search, candidates)
    fits = round_.first(strategies[0])
    if not fits and len(strategies) > 1:
        fits = round_.second()
    node.remove(search.usage)
    if fits:
        return fill_back(search, round_.targets, borrowing=True)
    for task, _ in round_.targets:
        search.restore(task)
    return []


def _candidates(search: Search) -> dict[TreeNode, deque[Task]]:
    """Return, of each queue that has any, those who may be evicted, in order."""
    task, node = search.task, search.node
    spec = node.spec.preemption
    found: dict[TreeNode, deque[Task]] = {}
    if spec.within_cluster_queue != "Never":
        own = deque(
            each for each in task.queue.evictable(search.contested) if permits(spec.within_cluster_queue, task, each)
        )
        if own:
            found[node] = own
    if node.parent is None or spec.reclaim_within_cohort == "Never":
        return found
    for other in _queues_below(node.root):
        if other is node or not any(other.usage[pair] > other.nominal[pair] for pair in search.contested):
            continue
        theirs = deque(
            each
            for each in search.queues[other].evictable(search.contested)
            if permits(spec.reclaim_within_cohort, task, each)
        )
        if theirs:
            found[other] = theirs
    return found


def _queues_below(cohort: TreeNode) -> Iterator[QueueNode]:
    yield from cohort.queues
    for child in cohort.children:
        if not isinstance(child, QueueNode):
            yield from _queues_below(child)


class _Round:
    """One search: who is left to ask, who has been chosen."""

    __slots__ = ("kept", "node", "path", "search", "targets")

    def __init__(self, search: Search, candidates: dict[TreeNode, deque[Task]]) -> None:
        self.search = search
        self.node = search.node
        self.path = set(search.node.ancestors())
        self.targets: list[Target] = []
        self.kept: dict[TreeNode, deque[Task]] = candidates

    def first(self, strategy: Strategy) -> bool:
        """Choose by the first strategy; those who do not pass it are kept for the second."""
        order = _Order(self.node, self.path, self.kept)
        self.kept = {}
        within = all(self.node.usage[pair] <= self.node.nominal[pair] for pair in self.search.contested)
        for queue in order:
            tasks = order.candidates[queue]
            if queue is self.node or within:
                reason: Reason = "InClusterQueue" if queue is self.node else "InCohortReclamation"
                if self._evict(tasks.popleft(), reason):
                    return True
                continue
            own, theirs = self._sides(queue)
            mine, before = own.share(), theirs.share()
            if mine[0] > before[0]:
                # An infinite share passes no test against a finite one, which only gets smaller.
                self.kept.setdefault(queue, deque()).extend(tasks)
                tasks.clear()
            while tasks:
                task = tasks.popleft()
                if self._passes(strategy, mine, before, task, theirs):
                    if self._evict(task, "InCohortFairSharing"):
                        return True
                    break
                self.kept.setdefault(queue, deque()).append(task)
        return False

    def second(self) -> bool:
        """Choose among those who were kept: of each queue the first, once."""
        order = _Order(self.node, self.path, self.kept)
        for queue in order:
            own, theirs = self._sides(queue)
            passes = own.share() < theirs.share()
            task = order.candidates[queue].popleft()
            if passes and self._evict(task, "InCohortFairSharing"):
                return True
            order.dropped.add(queue)
        return False

    def _passes(self, strategy: Strategy, mine: Share, before: Share, task: Task, theirs: TreeNode) -> bool:
        if strategy == "LessThanInitialShare":
            return mine < before
        node = task.queue.node
        node.remove(task.usage)
        after = theirs.share()
        node.add(task.usage)
        return mine <= after

    def _evict(self, task: Task, reason: Reason) -> bool:
        """Take a workload off, and return whether there is room now."""
        self.search.release(task)
        self.targets.append((task, reason))
        self.node.remove(self.search.usage)
        fits = self.search.fits(borrowing=True)
        self.node.add(self.search.usage)
        return fits

    def _sides(self, queue: TreeNode) -> tuple[TreeNode, TreeNode]:
        """Return the two children of the lowest cohort that both queues are in, on the way to each."""
        theirs = queue
        while theirs.parent is not None and theirs.parent not in self.path:
            theirs = theirs.parent
        common = theirs.parent
        own: TreeNode = self.node
        while own.parent is not common and own.parent is not None:
            own = own.parent
        return own, theirs


class _Order:
    """The queues that give way, the one with the highest share first, as shares change."""

    __slots__ = ("candidates", "dropped", "ended", "node", "path")

    def __init__(self, node: QueueNode, path: set[TreeNode], candidates: dict[TreeNode, deque[Task]]) -> None:
        self.node = node
        self.path = path
        self.candidates = candidates
        self.dropped: set[TreeNode] = set()
        self.ended: set[TreeNode] = set()

    def __iter__(self) -> Iterator[TreeNode]:
        root = self.node.root
        if root is self.node:
            while self.node not in self.dropped and self.candidates.get(self.node):
                yield self.node
            return
        while root not in self.ended:
            found = self._next(root)
            if found is not None:
                yield found

    def _next(self, cohort: TreeNode) -> TreeNode | None:
        queue, share = self._highest_queue(cohort)
        below: TreeNode | None = None
        highest = _BELOW_ALL
        for child in cohort.children:
            if isinstance(child, QueueNode) or child in self.ended:
                continue
            if not child.excess_pairs and child not in self.path:
                self.ended.add(child)
            elif child.share() >= highest:
                below, highest = child, child.share()
        if below is not None and highest >= share:
            return self._next(below)
        if queue is None:
            self.ended.add(cohort)
        return queue

    def _highest_queue(self, cohort: TreeNode) -> tuple[TreeNode | None, Share]:
        found: TreeNode | None = None
        highest = _BELOW_ALL
        flat = cohort.parent is None and len(cohort.queues) == len(cohort.children)
        for queue in list(self.candidates) if flat else cohort.queues:
            if queue in self.dropped:
                continue
            if not self.candidates.get(queue) or (not queue.excess_pairs and queue is not self.node):
                self.dropped.add(queue)
                continue
            share = queue.share()
            if share > highest or (found is not None and share == highest and self._before(queue, found)):
                found, highest = queue, share
        return found, highest

    def _before(self, one: TreeNode, other: TreeNode) -> bool:
        """Return whether the first candidate of one queue comes before that of another."""
        return self._key(one) < self._key(other)

    def _key(self, queue: TreeNode) -> tuple[bool, bool, tuple[int, float, int, str]]:
        task = self.candidates[queue][0]
        return not task.evicted, queue is self.node, task.eviction_key

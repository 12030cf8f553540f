"""Fair sharing: which queue is next, and which queue another one preempts.

Rules: Kueue's `fair_sharing_iterator.go` and `pkg/scheduler/preemption/fairsharing`, version 0.19.2.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator, Sequence

from hpkit.kueue.model import Strategy
from hpkit_whatif.admission.preempt import Reason, Search, Target, fill_back, is_hopeless, permits
from hpkit_whatif.admission.queue import QueuedWorkload
from hpkit_whatif.admission.tree import QueueNode, TreeNode, Usage

__all__ = ["fair"]

Share = tuple[int, float]
_BELOW_ALL: Share = (0, -1.0)


def fair(search: Search, strategies: Sequence[Strategy]) -> list[Target]:
    """Return the victims that make shares more equal; empty if that doesn't help."""
    node = search.node
    others = _borrowers(search)
    own = _own(search)
    search.hopeless = is_hopeless(search, own)
    search.without_shares = not own and not others
    if search.hopeless or search.without_shares:
        return []
    if not own and not _may_give_way(search, others):
        return []
    # Shares are compared as they will be with the workload.
    node.add(search.usage)
    candidates = _candidates(search, others)
    if own:
        candidates[node] = own
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


def _own(search: Search) -> deque[QueuedWorkload]:
    policy = search.node.spec.preemption.within_cluster_queue
    if policy == "Never":
        return deque()
    there = search.task.queue.evictable(search.contested)
    return deque(each for each in there if permits(policy, search.task, each))


def _borrowers(search: Search) -> list[QueueNode]:
    """Return the other queues that use more than their own of a contested pair."""
    node = search.node
    if node.parent is None or node.spec.preemption.reclaim_within_cohort == "Never":
        return []
    borrowers = node.root.borrowers
    found = dict.fromkeys(each for pair in search.contested for each in borrowers[pair])
    found.pop(node, None)
    return list(found)


def _may_give_way(search: Search, others: Sequence[QueueNode]) -> bool:
    """Return whether any queue could pass a share test; giving up usage only lowers its share."""
    node = search.node
    wanted = dict(search.usage)
    if node.depth > 1 or all(node.usage[p] + wanted.get(p, 0) <= node.nominal[p] for p in search.contested):
        return True
    mine = node.share_with(search.usage)
    return any(other.share() >= mine for other in others if other.depth == 1) or any(o.depth > 1 for o in others)


def _candidates(search: Search, others: Sequence[QueueNode]) -> dict[TreeNode, deque[QueuedWorkload]]:
    """Return the possible victims of each other queue that has any, in order."""
    policy = search.node.spec.preemption.reclaim_within_cohort
    candidates: dict[TreeNode, deque[QueuedWorkload]] = {}
    for queue in others:
        evictable = search.queues[queue].evictable(search.contested)
        theirs = deque(evictable if policy == "Any" else (e for e in evictable if permits(policy, search.task, e)))
        if theirs:
            candidates[queue] = theirs
    return candidates


class _Round:
    """One search: the remaining candidates, and the chosen victims."""

    __slots__ = ("kept", "node", "path", "search", "targets")

    def __init__(self, search: Search, candidates: dict[TreeNode, deque[QueuedWorkload]]) -> None:
        self.search = search
        self.node = search.node
        self.path = set(search.node.ancestors())
        self.targets: list[Target] = []
        self.kept: dict[TreeNode, deque[QueuedWorkload]] = candidates

    def first(self, strategy: Strategy) -> bool:
        """Choose with the first strategy; candidates that fail it are kept for the second."""
        order = _order(self.node, self.path, self.kept)
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
            if mine > before:
                # A queue with a lower initial share passes no test, because giving up usage only lowers its share.
                self.kept.setdefault(queue, deque()).extend(tasks)
                tasks.clear()
            failed: set[Usage] = set()
            while tasks:
                task = tasks.popleft()
                if task.usage not in failed and self._passes(strategy, mine, before, task, theirs):
                    if self._evict(task, "InCohortFairSharing"):
                        return True
                    break
                failed.add(task.usage)
                self.kept.setdefault(queue, deque()).append(task)
        return False

    def second(self) -> bool:
        """Choose among the kept candidates: the first of each queue, once."""
        order = _order(self.node, self.path, self.kept)
        for queue in order:
            own, theirs = self._sides(queue)
            passes = own.share() < theirs.share()
            task = order.candidates[queue].popleft()
            if passes and self._evict(task, "InCohortFairSharing"):
                return True
            order.dropped.add(queue)
        return False

    def _passes(self, strategy: Strategy, mine: Share, before: Share, task: QueuedWorkload, theirs: TreeNode) -> bool:
        if strategy == "LessThanInitialShare":
            return mine < before
        node = task.queue.node
        if node is theirs:
            return mine <= node.share_with(task.usage, -1)
        node.remove(task.usage)
        after = theirs.share()
        node.add(task.usage)
        return mine <= after

    def _evict(self, task: QueuedWorkload, reason: Reason) -> bool:
        """Remove a workload, and return whether there is room now."""
        self.search.release(task)
        self.targets.append((task, reason))
        return self.search.fits_added()

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


def _order(node: QueueNode, path: set[TreeNode], candidates: dict[TreeNode, deque[QueuedWorkload]]) -> _Flat | _Order:
    """Return the queues in the order in which they give way."""
    flat = node.depth <= 1 and all(each.depth <= 1 for each in candidates)
    # Another cohort with no one to give way is passed over all the same.
    return _Flat(node, candidates) if flat else _Order(node, path, candidates)


def _place(node: QueueNode, queue: TreeNode, task: QueuedWorkload) -> tuple[bool, bool, tuple[int, float, int, str]]:
    """Return the place of a queue among those with its share: that of its first candidate."""
    return not task.evicted, queue is node, task.eviction_key


class _Flat:
    """The same for queues of one cohort, in which only the chosen queue's share changes."""

    __slots__ = ("candidates", "dropped", "node")

    def __init__(self, node: QueueNode, candidates: dict[TreeNode, deque[QueuedWorkload]]) -> None:
        self.node = node
        self.candidates = candidates
        self.dropped: set[TreeNode] = set()

    def __iter__(self) -> Iterator[TreeNode]:
        heap = [self._entry(queue) for queue in self.candidates if self._counts(queue)]
        heapq.heapify(heap)
        while heap:
            queue = heap[0][-1]
            yield queue
            if self._counts(queue):
                heapq.heapreplace(heap, self._entry(queue))
            else:
                heapq.heappop(heap)

    def _counts(self, queue: TreeNode) -> bool:
        gives = queue.excess_pairs > 0 or queue is self.node
        return gives and queue not in self.dropped and bool(self.candidates[queue])

    def _entry(self, queue: TreeNode) -> tuple[int, float, tuple[bool, bool, tuple[int, float, int, str]], TreeNode]:
        share = queue.share()
        return -share[0], -share[1], _place(self.node, queue, self.candidates[queue][0]), queue


class _Order:
    """The queues that lose workloads, the one with the highest share first, while shares change."""

    __slots__ = ("candidates", "dropped", "ended", "node", "path")

    def __init__(self, node: QueueNode, path: set[TreeNode], candidates: dict[TreeNode, deque[QueuedWorkload]]) -> None:
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
        highest_queue: TreeNode | None = None
        highest = _BELOW_ALL
        for queue in cohort.queues:
            if queue in self.dropped:
                continue
            if not self.candidates.get(queue) or (not queue.excess_pairs and queue is not self.node):
                self.dropped.add(queue)
                continue
            share = queue.share()
            if share > highest or (
                highest_queue is not None and share == highest and self._before(queue, highest_queue)
            ):
                highest_queue, highest = queue, share
        return highest_queue, highest

    def _before(self, one: TreeNode, other: TreeNode) -> bool:
        """Return whether the first candidate of one queue is before that of another."""
        place = [_place(self.node, each, self.candidates[each][0]) for each in (one, other)]
        return place[0] < place[1]

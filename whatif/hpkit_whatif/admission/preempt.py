"""Finds victims for a workload: common parts of both strategies, and the classic strategy.

Rules: Kueue's `pkg/scheduler/preemption` and `preemption/classical`, version 0.19.2. Usage is removed from and restored
to the tree itself, which is unchanged at the end.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from hpkit.kueue.model import BorrowWithinCohort
from hpkit_whatif.admission.queue import Queue, QueuedWorkload
from hpkit_whatif.admission.tree import QueueNode, TreeNode, Usage

__all__ = ["Reason", "Search", "Target", "classic", "fill_back", "is_hopeless", "permits"]

Reason = Literal["InClusterQueue", "InCohortReclamation", "InCohortFairSharing", "InCohortReclaimWhileBorrowing"]
Target = tuple[QueuedWorkload, Reason]


@dataclass(slots=True)
class Search:
    """A search for room: the workload, its amounts of pairs, and the pairs that lack room.

    places: returns whether the pods also find places; on_release: removes or adds a workload's places. hopeless:
    whether the search failed because of the queue's own limit, which other queues don't affect. without_shares: whether
    the result depends on no share, but only on the workloads on the contested pairs.
    """

    task: QueuedWorkload
    usage: Usage
    contested: frozenset[int]
    queues: Mapping[TreeNode, Queue]
    places: Callable[[], bool] | None = None
    on_release: Callable[[QueuedWorkload, int], None] | None = None
    hopeless: bool = False
    without_shares: bool = False

    @property
    def node(self) -> QueueNode:
        """Return the place of the queue in the tree."""
        return self.task.queue.node

    def release(self, task: QueuedWorkload) -> None:
        """Count as if a workload were gone."""
        task.queue.node.remove(task.usage)
        if self.on_release is not None:
            self.on_release(task, -1)

    def restore(self, task: QueuedWorkload) -> None:
        """Count a workload again."""
        task.queue.node.add(task.usage)
        if self.on_release is not None:
            self.on_release(task, 1)

    def fits_added(self) -> bool:
        """Return whether there is room for an amount that already counts as usage."""
        node = self.node
        for pair, amount in self.usage:
            if amount > 0 and node.available(pair) < 0:
                return False
        return self.places is None or self.places()

    def fits(self, *, borrowing: bool) -> bool:
        """Return whether there is room now; without borrowing, only within the queue's own quota."""
        node = self.node
        for pair, amount in self.usage:
            if not borrowing and node.borrows_with(pair, amount):
                return False
            if amount > node.available(pair) and amount > 0:
                return False
        return self.places is None or self.places()


def is_hopeless(search: Search, own: Iterable[QueuedWorkload]) -> bool:
    """Return whether the queue's limit blocks the task even without its preemptible tasks."""
    node = search.node
    over: dict[int, int] = {}
    for pair, amount in search.usage:
        limit = node.borrowing[pair]
        if limit is not None and node.parent is not None:
            above = amount + node.usage[pair] - node.subtree[pair] - limit
            if above > 0:
                over[pair] = above
    if not over:
        return False
    for task in own:
        for pair, amount in task.usage:
            if pair in over:
                over[pair] -= amount
    return any(above > 0 for above in over.values())


def permits(policy: str, task: QueuedWorkload, victim: QueuedWorkload) -> bool:
    """Return whether a policy lets one workload evict another."""
    if policy == "Any":
        return True
    if policy == "Never":
        return False
    if victim.priority != task.priority or policy == "LowerPriority":
        return victim.priority < task.priority
    return task.created < victim.created


def fill_back(search: Search, targets: list[Target], *, borrowing: bool) -> list[Target]:
    """Return the victims that are required, after all were removed; the others are restored."""
    kept = [targets[-1]]
    for target in reversed(targets[:-1]):
        search.restore(target[0])
        if not search.fits(borrowing=borrowing):
            search.release(target[0])
            kept.append(target)
    for task, _ in kept:
        search.restore(task)
    return kept


@dataclass(frozen=True, slots=True)
class _Candidate:
    task: QueuedWorkload
    common: TreeNode | None
    reason: Reason
    without_borrowing: bool = False


def classic(search: Search) -> list[Target]:
    """Return victims by priority and quota; empty if that doesn't help."""
    search.without_shares = True
    spec = search.node.spec.preemption
    borrow = spec.borrow_within_cohort
    forbidden = borrow is None or borrow.policy == "Never"
    own = _of_own_queue(search)
    search.hopeless = is_hopeless(search, (each.task for each in own))
    if search.hopeless:
        return []
    reclaim, others = _of_other_queues(search)
    candidates = _in_order(reclaim, others, own)
    if not candidates:
        return []
    node = search.node
    if (not reclaim and not others) or (forbidden and any(node.nominal[p] <= node.usage[p] for p in search.contested)):
        attempts = [True]
    elif forbidden and not reclaim:
        attempts = [False, True]
    else:
        attempts = [True, False]
    for borrowing in attempts:
        targets: list[Target] = []
        for candidate in _valid(search, candidates, borrowing=borrowing):
            search.release(candidate.task)
            targets.append((candidate.task, candidate.reason))
            if search.fits(borrowing=borrowing):
                return fill_back(search, targets, borrowing=borrowing)
        for task, _ in targets:
            search.restore(task)
    return []


def _valid(search: Search, candidates: Iterable[_Candidate], *, borrowing: bool) -> Iterator[_Candidate]:
    """Return, one by one as others have gone, those whose queues use more than their own by then."""
    for candidate in candidates:
        if candidate.common is not None:
            if borrowing and candidate.without_borrowing:
                continue
            node: TreeNode | None = candidate.task.queue.node
            while node is not None and node is not candidate.common:
                if node.is_within_nominal(search.contested):
                    break
                node = node.parent
            if node is not candidate.common:
                continue
        yield candidate


def _in_order(*groups: list[_Candidate]) -> list[_Candidate]:
    for group in groups:
        group.sort(key=lambda each: each.task.eviction_key)
    evicted = [each for group in groups for each in group if each.task.evicted]
    return evicted + [each for group in groups for each in group if not each.task.evicted]


def _of_own_queue(search: Search) -> list[_Candidate]:
    policy = search.node.spec.preemption.within_cluster_queue
    if policy == "Never":
        return []
    return [
        _Candidate(candidate, None, "InClusterQueue")
        for candidate in search.task.queue.evictable(search.contested)
        if permits(policy, search.task, candidate)
    ]


def _of_other_queues(search: Search) -> tuple[list[_Candidate], list[_Candidate]]:
    """Return the workloads that the queue can preempt first, and all others."""
    reclaim: list[_Candidate] = []
    others: list[_Candidate] = []
    if search.node.parent is None or search.node.spec.preemption.reclaim_within_cohort == "Never":
        return reclaim, others
    remaining = dict(search.usage)
    advantage = _fits_quota(search.node, remaining)
    below: TreeNode = search.node
    for common in search.node.ancestors():
        _collect(search, common, common, below, reclaim if advantage else others, advantage=advantage)
        advantage = _fits_quota(common, remaining) or advantage
        below = common
    return reclaim, others


def _fits_quota(node: TreeNode, remaining: dict[int, int]) -> bool:
    fits = True
    for pair, amount in remaining.items():
        if node.subtree[pair] < node.usage[pair] + amount:
            fits = False
        remaining[pair] = max(0, amount - node.local_available(pair))
    return fits


def _collect(
    search: Search, cohort: TreeNode, common: TreeNode, skip: TreeNode, candidates: list[_Candidate], *, advantage: bool
) -> None:
    for child in cohort.children:
        if child is skip or child is search.node or child.is_within_nominal(search.contested):
            continue
        if isinstance(child, QueueNode):
            candidates.extend(_of_queue(search, search.queues[child], common, advantage=advantage))
        else:
            _collect(search, child, common, skip, candidates, advantage=advantage)


def _may_borrow_from(borrow: BorrowWithinCohort, task: QueuedWorkload, victim: QueuedWorkload) -> bool:
    """Return whether a workload that will borrow can evict another for it."""
    most = borrow.max_priority_threshold
    low_enough = most is None or victim.priority <= most
    return borrow.policy != "Never" and victim.priority < task.priority and low_enough


def _of_queue(search: Search, queue: Queue, common: TreeNode, *, advantage: bool) -> Iterator[_Candidate]:
    spec = search.node.spec.preemption
    borrow = spec.borrow_within_cohort
    for task in queue.evictable(search.contested):
        if not permits(spec.reclaim_within_cohort, search.task, task):
            continue
        if advantage:
            yield _Candidate(task, common, "InCohortReclamation")
        elif borrow is None or not _may_borrow_from(borrow, search.task, task):
            yield _Candidate(task, common, "InCohortReclamation", without_borrowing=True)
        else:
            yield _Candidate(task, common, "InCohortReclaimWhileBorrowing")

"""In which order the heads of a cycle are processed.

Rules: Kueue's `makeClassicalIterator` and `fair_sharing_iterator.go`, version 0.19.2. Where those leave the order to
chance (all else equal), the queues' order in the model decides here.

Gang scheduling: how long and how often a workload is retried whose pods weren't ready in time. Rules: Kueue's
`pkg/workload/workload.go` (UpdateRequeueState) and `pkg/controller/core/workload_controller.go`, version 0.19.2,
without the jitter of a ten-thousandth.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from hpkit.kueue.model import WaitForPodsReady
from hpkit_whatif.admission.assign import Assignment, Mode
from hpkit_whatif.admission.preempt import Target
from hpkit_whatif.admission.queue import QueuedWorkload
from hpkit_whatif.admission.tree import QueueNode, TreeNode, Usage

__all__ = ["Entry", "backoff_of", "classic_order", "fair_order", "is_retried"]

# Beyond it, any base has passed any limit.
_MOST_DOUBLINGS = 32


def backoff_of(gang: WaitForPodsReady, retries: int) -> float:
    """Return the seconds that a workload waits before a retry; the first retry is number 1."""
    first = float(gang.backoff_base_seconds)
    return (
        first if retries == 1 else min(first * 2 ** min(retries - 1, _MOST_DOUBLINGS), float(gang.backoff_max_seconds))
    )


def is_retried(gang: WaitForPodsReady, retries: int) -> bool:
    """Return whether a workload is retried again after this number of retries."""
    return gang.backoff_limit_count is None or retries < gang.backoff_limit_count


@dataclass(slots=True)
class Entry:
    """A head of this cycle, with its assignment and victims; turn: when it was processed."""

    task: QueuedWorkload
    assignment: Assignment
    usage: Usage
    targets: list[Target] = field(default_factory=list)
    outcome: str = ""
    turn: int = 0

    @property
    def does_nothing(self) -> bool:
        """Return whether processing it changes nothing for the others."""
        if self.assignment.mode == Mode.NO_FIT:
            return True
        reclaim = self.task.queue.node.spec.preemption.reclaim_within_cohort
        return self.assignment.mode != Mode.FIT and not self.targets and reclaim == "Any"


def classic_order(entries: Sequence[Entry]) -> list[Entry]:
    """Return the entries as they are processed without fair sharing."""

    def key(entry: Entry) -> tuple[int, int, float, int]:
        task = entry.task
        return entry.assignment.borrowing, -task.priority, task.created, task.queue.node.order

    return sorted(entries, key=key)


def fair_order(entries: Sequence[Entry], *, version: Callable[[], int]) -> Iterator[Entry]:
    """Return the entries one by one: next is the one whose queue has the smallest share with it.

    version: changes with the usage of the tree; then shares are computed again.
    """
    roots: dict[TreeNode, dict[TreeNode, Entry]] = {}
    for entry in entries:
        node = entry.task.queue.node
        roots.setdefault(node.root, {})[node] = entry
    for root, waiting in roots.items():
        if len(waiting) == 1:
            yield from waiting.values()
        elif all(node.depth <= 1 for node in waiting):
            # Shares don't depend on other queues' usage, so it's enough to sort once.
            yield from sorted(waiting.values(), key=lambda entry: _key(entry, _shares(entry)[0]))
        else:
            yield from _tournament(root, waiting, version)


_Key = tuple[bool, tuple[int, float], int, float, int]


def _key(entry: Entry, shared: tuple[bool, tuple[int, float]]) -> _Key:
    task = entry.task
    return *shared, -task.priority, task.created, task.queue.node.order


def _shares(entry: Entry) -> list[tuple[bool, tuple[int, float]]]:
    """Return, for the queue and each cohort above it below the root, whether it borrows the request, and its share."""
    queue = entry.task.queue.node
    if queue.parent is None:
        return [(False, (0, 0.0))]
    if queue.depth == 1:
        borrows = any(n > 0 and queue.usage[pair] + n > queue.subtree[pair] for pair, n in entry.usage)
        return [(borrows, queue.share_with(entry.usage))]
    node: TreeNode | None = queue
    entry.task.queue.node.add(entry.usage)
    shares = []
    while node is not None and node.parent is not None:
        borrows = any(amount > 0 and node.usage[pair] > node.subtree[pair] for pair, amount in entry.usage)
        shares.append((borrows, node.share()))
        node = node.parent
    entry.task.queue.node.remove(entry.usage)
    return shares


def _tournament(root: TreeNode, waiting: dict[TreeNode, Entry], version: Callable[[], int]) -> Iterator[Entry]:
    keys: dict[TreeNode, list[_Key]] = {}
    keys_version = -1
    while waiting:
        if keys_version != version():
            keys = {node: [_key(entry, each) for each in _shares(entry)] for node, entry in waiting.items()}
            keys_version = version()
        winner = _winner(root, waiting, keys)
        if winner is None:
            return
        yield waiting.pop(winner)


def _winner(cohort: TreeNode, waiting: dict[TreeNode, Entry], keys: dict[TreeNode, list[_Key]]) -> QueueNode | None:
    best: QueueNode | None = None
    for child in cohort.children:
        child_winner = (
            (child if child in waiting else None) if isinstance(child, QueueNode) else _winner(child, waiting, keys)
        )
        if child_winner is None:
            continue
        # The share that counts here is that of this cohort's own child.
        level = child_winner.depth - cohort.depth - 1
        if best is None or keys[child_winner][level] < keys[best][best.depth - cohort.depth - 1]:
            best = child_winner
    return best

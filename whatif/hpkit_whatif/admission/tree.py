"""The arithmetic of the cohort tree: what a node may use, what it uses, and its share of borrowed quota.

Everything is counted per pair of flavor and resource, by the pair's index, in integers. The rules follow Kueue's
`pkg/cache/scheduler/resource_node.go` and `fair_sharing.go`, version 0.19.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from hpkit.kueue.model import ClusterQueue, FlavorQuotas, Model

__all__ = ["Pairs", "QueueNode", "TreeNode", "Usage", "build"]

NEEDS_ROOM = 1000
TOO_MUCH = -1
NOT_NOW = -2

Usage = Sequence[tuple[int, int]]
"""Amounts by pair."""


class Pairs:
    """The index of every pair of flavor and resource of a model."""

    __slots__ = ("flavor_of", "flavors", "index", "names", "resource_of", "resources")

    def __init__(self, model: Model) -> None:
        self.index: dict[tuple[str, str], int] = {}
        self.names: list[tuple[str, str]] = []
        self.resources: dict[str, int] = {}
        self.resource_of: list[int] = []
        self.flavors: dict[str, int] = {}
        self.flavor_of: list[int] = []
        for queue in model.queues:
            for group in queue.resource_groups:
                for flavor in group.flavors:
                    for resource in group.covered_resources:
                        self._add(flavor.name, resource)
        for cohort in model.cohorts:
            for flavor in cohort.flavors:
                for resource in flavor.resources:
                    self._add(flavor.name, resource)

    def __len__(self) -> int:
        return len(self.names)

    def _add(self, flavor: str, resource: str) -> None:
        if (flavor, resource) not in self.index:
            self.index[flavor, resource] = len(self.names)
            self.names.append((flavor, resource))
            self.resource_of.append(self.resources.setdefault(resource, len(self.resources)))
            self.flavor_of.append(self.flavors.setdefault(flavor, len(self.flavors)))


class TreeNode:
    """A cohort or queue: quota, usage and derived amounts, by pair.

    subtree: quota of all nodes below, without unlendable quota; local: quota that is never lent to the parent;
    potential: the most that it could ever use; excess: by resource, usage above the subtree's quota; lendable: by
    resource, what the children of this node could borrow, which is the basis of their shares.
    """

    __slots__ = (
        "_share",
        "borrowers",
        "borrowing",
        "changes",
        "children",
        "depth",
        "excess",
        "excess_pairs",
        "height",
        "lendable",
        "local",
        "name",
        "nominal",
        "order",
        "parent",
        "potential",
        "queues",
        "resource_of",
        "root",
        "subtree",
        "usage",
        "weight",
    )

    def __init__(self, name: str, pairs: Pairs, weight: float) -> None:
        size = len(pairs)
        self.name = name
        self.order = 0
        self.weight = weight
        self.parent: TreeNode | None = None
        self.root: TreeNode = self
        self.children: list[TreeNode] = []
        self.queues: list[QueueNode] = []
        self.depth = 0
        self.height = 0
        self.resource_of = pairs.resource_of
        self.nominal = [0] * size
        self.borrowing: list[int | None] = [None] * size
        self.local = [0] * size
        self.subtree = [0] * size
        self.potential = [0] * size
        self.usage = [0] * size
        self.excess = [0] * len(pairs.resources)
        self.excess_pairs = 0
        self._share: tuple[int, float] | None = None
        # Of a root: the queues that use more than their own, by pair.
        self.borrowers: list[dict[QueueNode, None]] = []
        # For a root and for queues: number of starts, ends and evictions, by flavor.
        self.changes = [0] * len(pairs.flavors)
        self.lendable = [0] * len(pairs.resources)

    def ancestors(self) -> Iterator[TreeNode]:
        """Return the parent, its parent and so on up to the root."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    def available(self, pair: int) -> int:
        """Return the remaining quota of this node; negative after quotas were lowered."""
        parent = self.parent
        used = self.usage[pair]
        if parent is None:
            return self.subtree[pair] - used
        left = parent.available(pair) if parent.parent is not None else parent.subtree[pair] - parent.usage[pair]
        local = self.local[pair]
        limit = self.borrowing[pair]
        if limit is not None:
            above = used - local
            most = self.subtree[pair] - local + limit - (above if above > 0 else 0)  # noqa: FURB136 - twice as fast
            if most < left:
                left = most
        return left + local - used if local > used else left

    def local_available(self, pair: int) -> int:
        """Return the remaining part of the quota that is never lent."""
        return max(0, self.local[pair] - self.usage[pair])

    def add(self, usage: Usage) -> None:
        """Use amounts; what exceeds the local part shows up at the parent."""
        for pair, amount in usage:
            if amount:
                self._change(pair, amount)

    def remove(self, usage: Usage) -> None:
        """Return amounts."""
        for pair, amount in usage:
            if amount:
                self._change(pair, -amount)

    def _change(self, pair: int, delta: int) -> None:
        node: TreeNode | None = self
        while node is not None and delta:
            before = node.usage[pair]
            after = before + delta
            node.usage[pair] = after
            quota = node.subtree[pair]
            was = before - quota
            now = after - quota
            if was > 0 or now > 0:
                node.exceed(pair, was, now)
            local = node.local[pair]
            if local:
                delta = max(0, after - local) - max(0, before - local)
            node = node.parent

    def exceed(self, pair: int, was: int, now: int) -> None:
        """Note that so much more than the quota is used, and was before."""
        self._share = None
        self.excess[self.resource_of[pair]] += (now if now > 0 else 0) - (was if was > 0 else 0)  # noqa: FURB136
        if (was > 0) != (now > 0):
            self.excess_pairs += 1 if now > 0 else -1
            self.flip(pair, borrows=now > 0)

    def flip(self, pair: int, *, borrows: bool) -> None:
        """Record that usage rises above or falls to its own quota; relevant for queues only."""

    def is_within_nominal(self, pairs: Iterable[int]) -> bool:
        """Return whether no pair is used beyond the subtree's quota."""
        return all(self.usage[pair] <= self.subtree[pair] for pair in pairs)

    def share(self) -> tuple[int, float]:
        """Return the share as something to compare: infinite ones are above all others, among themselves by ratio."""
        share = self._share
        if share is None:
            ratio = self.ratio()
            infinite = self.weight == 0.0 and ratio > 0.0
            self._share = share = (1, ratio) if infinite else (0, ratio / (self.weight or 1.0))
        return share

    def share_with(self, usage: Usage, times: int = 1) -> tuple[int, float]:
        """Return the share with an additional amount (times -1: with less), for a child of the root."""
        parent = self.parent
        if parent is None:
            return 0, 0.0
        excess = self.excess.copy()
        for pair, amount in usage:
            was = self.usage[pair] - self.subtree[pair]
            now = was + times * amount
            if was > 0 or now > 0:
                excess[self.resource_of[pair]] += (now if now > 0 else 0) - (was if was > 0 else 0)  # noqa: FURB136
        ratio = _highest(excess, parent.lendable)
        return (1, ratio) if self.weight == 0.0 and ratio > 0.0 else (0, ratio / (self.weight or 1.0))

    def ratio(self) -> float:
        """Return 1000 × borrowed ÷ lendable, for the resource with the highest ratio."""
        parent = self.parent
        if parent is None or not self.excess_pairs:
            return 0.0
        return _highest(self.excess, parent.lendable)

    def weighted_share(self) -> float:
        """Return the share as Kueue reports it, before it rounds it up: infinite for weight 0 that borrows."""
        ratio = self.ratio()
        if ratio == 0.0:
            return 0.0
        return float("inf") if self.weight == 0.0 else ratio / self.weight


def _highest(excess: Sequence[int], lendable: Sequence[int]) -> float:
    most = 0.0
    for above, there in zip(excess, lendable, strict=True):
        if above > 0 and there > 0:
            ratio = above * 1000.0 / there
            if ratio > most:
                most = ratio
    return most


class QueueNode(TreeNode):
    """A queue in the tree, with the settings that decide about its workloads."""

    __slots__ = ("spec",)

    def __init__(self, spec: ClusterQueue, pairs: Pairs) -> None:
        super().__init__(spec.name, pairs, spec.fair_weight)
        self.spec = spec

    def flip(self, pair: int, *, borrows: bool) -> None:
        """Update the root's list of borrowers."""
        if borrows:
            self.root.borrowers[pair][self] = None
        else:
            del self.root.borrowers[pair][self]

    def borrows_with(self, pair: int, amount: int) -> bool:
        """Return whether it uses more than its own quota with an additional amount."""
        return self.nominal[pair] < self.usage[pair] + amount

    def borrow_level(self, pair: int, amount: int) -> tuple[int, bool]:
        """Return the height of the lowest subtree with room for the amount, and whether there is more above it."""
        if self.parent is None or not self.borrows_with(pair, amount):
            return 0, self.parent is not None
        if self.parent.parent is None:
            return self.parent.height, False
        remaining = amount - self.local_available(pair)
        node: TreeNode = self.parent
        while True:
            if node.subtree[pair] >= node.usage[pair] + remaining:
                return node.height, node.parent is not None
            remaining -= node.local_available(pair)
            if node.parent is None:
                return node.height, False
            node = node.parent

    def outlook(self, usage: Usage, *, fair: bool) -> tuple[bool, tuple[int, ...]]:
        """Return whether there is room for an additional amount, and the result of each pair.

        The choice depends only on these results. A pair's number is the borrowing level, plus `NEEDS_ROOM` if victims
        are required, or a negative number if they can't help: the amount is more than could ever be used, or the queue
        may evict no one for it.
        """
        fits = True
        levels: list[int] = []
        in_cohort = self.parent is not None
        for pair, amount in usage:
            if amount > self.potential[pair]:
                return False, (*levels, TOO_MUCH)
            level, lies_above = 0, in_cohort
            if in_cohort and self.nominal[pair] < self.usage[pair] + amount:
                level, lies_above = self.borrow_level(pair, amount)
            if amount and amount > self.available(pair):
                if not self.may_take(pair, amount, lies_above=lies_above, fair=fair):
                    return False, (*levels, NOT_NOW)
                fits = False
                level += NEEDS_ROOM
            levels.append(level)
        return fits, tuple(levels)

    def may_take(self, pair: int, amount: int, *, lies_above: bool, fair: bool) -> bool:
        """Return whether the queue may search for victims for an amount."""
        if self.nominal[pair] >= amount or lies_above:
            return True
        preemption = self.spec.preemption
        borrow = preemption.borrow_within_cohort
        by_share = fair and preemption.reclaim_within_cohort != "Never"
        return by_share or (borrow is not None and borrow.policy != "Never")


def build(model: Model, pairs: Pairs) -> tuple[dict[str, QueueNode], dict[str, TreeNode]]:
    """Return the queues and cohorts of a model as trees without usage."""
    cohorts: dict[str, TreeNode] = {}
    lending: dict[TreeNode, list[int | None]] = {}
    for cohort in model.cohorts:
        cohorts[cohort.name] = node = TreeNode(cohort.name, pairs, cohort.fair_weight)
        lending[node] = _set_quotas(node, cohort.flavors, pairs)
    for cohort in model.cohorts:
        if cohort.parent is not None:
            _attach(cohorts[cohort.name], _cohort(cohorts, cohort.parent, pairs))
    queues: dict[str, QueueNode] = {}
    for order, queue in enumerate(model.queues):
        queues[queue.name] = queue_node = QueueNode(queue, pairs)
        queue_node.order = order
        flavors = [flavor for group in queue.resource_groups for flavor in group.flavors]
        lending[queue_node] = _set_quotas(queue_node, flavors, pairs)
        if queue.cohort is not None:
            parent = _cohort(cohorts, queue.cohort, pairs)
            _attach(queue_node, parent)
            parent.queues.append(queue_node)
    for node in (*cohorts.values(), *queues.values()):
        if node.parent is None:
            node.borrowers = [{} for _ in range(len(pairs))]
            _sum_up(node, lending)
            _look_down(node, node)
    return queues, cohorts


def _cohort(cohorts: dict[str, TreeNode], name: str, pairs: Pairs) -> TreeNode:
    if name not in cohorts:
        cohorts[name] = TreeNode(name, pairs, 1.0)
    return cohorts[name]


def _attach(node: TreeNode, parent: TreeNode) -> None:
    node.parent = parent
    parent.children.append(node)


def _set_quotas(node: TreeNode, flavors: Iterable[FlavorQuotas], pairs: Pairs) -> list[int | None]:
    lending: list[int | None] = [None] * len(pairs)
    for flavor in flavors:
        for resource, quota in flavor.resources.items():
            pair = pairs.index[flavor.name, resource]
            node.nominal[pair] = quota.nominal
            node.borrowing[pair] = quota.borrowing_limit
            lending[pair] = quota.lending_limit
    return lending


def _sum_up(node: TreeNode, lending: dict[TreeNode, list[int | None]]) -> None:
    node.subtree = list(node.nominal)
    node.height = min(1, len(node.children))
    for child in node.children:
        _sum_up(child, lending)
        if not isinstance(child, QueueNode):
            node.height = max(node.height, child.height + 1)
        for pair, quota in enumerate(child.subtree):
            node.subtree[pair] += quota - child.local[pair]
    limits = lending.get(node)
    if limits is not None:
        node.local = [
            0 if limit is None else max(0, quota - limit) for quota, limit in zip(node.subtree, limits, strict=True)
        ]


def _look_down(node: TreeNode, root: TreeNode) -> None:
    node.root = root
    parent = node.parent
    if parent is None:
        node.potential = list(node.subtree)
    else:
        node.depth = parent.depth + 1
        for pair, above in enumerate(parent.potential):
            most = node.local[pair] + above
            limit = node.borrowing[pair]
            node.potential[pair] = most if limit is None else min(most, node.subtree[pair] + limit)
    for pair, potential in enumerate(node.potential):
        node.lendable[node.resource_of[pair]] += potential
    for child in node.children:
        _look_down(child, root)

"""Assigns flavors to a workload: Kueue's `pkg/scheduler/flavorassigner`, version 0.19.2.

The result is an `Assignment`: the flavors of each pod set, how well each fits, and the usage of each pair.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from hpkit.kueue.model import FlavorFungibility, PodSet, PodSetAssignment, Workload
from hpkit_whatif.admission.check import reject_pod_sets
from hpkit_whatif.admission.queue import QueuedWorkload
from hpkit_whatif.admission.topology import Grid
from hpkit_whatif.admission.tree import Pairs, QueueNode, Usage

__all__ = ["Asked", "Assignment", "Chosen", "Mode", "Request", "Resolver", "Simulate", "assign", "scaled_counts"]


_MOST_REMEMBERED = 64


class Mode(IntEnum):
    """How well something fits, from the worst to the best."""

    NO_FIT = 0
    NO_CANDIDATES = 1
    PREEMPT = 2
    RECLAIM = 3
    FIT = 4


Simulate = Callable[[QueuedWorkload, int, int], tuple[Mode, int]]
"""Who could be evicted for an amount of one pair: the mode, and the level of borrowing afterward."""


@dataclass(frozen=True, slots=True)
class GroupRequest:
    """The request of one pod set to one resource group: amounts per pod by index in `pairs`, for each flavor.

    only: whether the pods can use just one flavor.
    """

    group: int
    flavors: tuple[str, ...]
    pairs: tuple[tuple[int, ...], ...]
    amounts: tuple[int, ...]
    resources: tuple[str, ...]
    only: bool


@dataclass(frozen=True, slots=True)
class PodSetRequest:
    """The request of one pod set; `uncovered`: a resource that the queue doesn't have."""

    spec: PodSet
    groups: tuple[GroupRequest, ...]
    uncovered: str | None


Request = tuple[PodSetRequest, ...]


@dataclass(slots=True)
class Asked:
    """The requests of all workloads of a shape to their queue.

    flavors: the indices of the flavors that they can use. no_choice: whether each resource has only one flavor, and
    whether a workload without victims reserves nothing. partial: whether fewer pods are enough. amounts: of each pair,
    if there is one pod set and one flavor for each resource. known: cached results, by the outlook of the queue
    (`QueueNode.outlook`).
    """

    request: Request
    flavors: tuple[int, ...]
    no_choice: bool
    partial: bool
    amounts: Usage | None
    assignments: dict[tuple[int, ...], Assignment] = field(default_factory=dict)


@dataclass(slots=True)
class Chosen:
    """A pod set's flavors: of each pair the amount and the mode."""

    name: str
    count: int
    flavors: dict[str, str] = field(default_factory=dict)
    usage: dict[str, int] = field(default_factory=dict)
    modes: dict[int, Mode] = field(default_factory=dict)
    fits: bool = True
    failed: bool = False
    domains: tuple[tuple[str, int], ...] = ()

    @property
    def mode(self) -> Mode:
        """Return the worst mode; modes that differ only in candidates count as one."""
        if self.fits:
            return Mode.FIT
        if self.failed or not self.modes:
            return Mode.NO_FIT
        return Mode.FIT if min(self.modes.values()) == Mode.FIT else Mode.PREEMPT


@dataclass(slots=True)
class Assignment:
    """A workload's possible assignment: `mode` is the worst of its pod sets, `borrowing` the highest level."""

    pod_sets: list[Chosen] = field(default_factory=list)
    usage: dict[int, int] = field(default_factory=dict)
    pairs: set[int] = field(default_factory=set)
    borrowing: int = 0
    mode: Mode = Mode.FIT
    reason: str | None = None
    tried: list[dict[int, int]] = field(default_factory=list)
    placed: tuple[object, ...] = ()
    _result: tuple[PodSetAssignment, ...] | None = None
    _amounts: Usage | None = None

    @property
    def waits_for(self) -> str:
        """Return Kueue's reason for not being admitted with it."""
        return (self.reason if self.mode == Mode.NO_FIT else None) or "WaitingForQuota"

    def contested(self) -> frozenset[int]:
        """Return the pairs for which someone must be evicted."""
        return frozenset(
            [pair for each in self.pod_sets for pair, mode in each.modes.items() if Mode.NO_FIT < mode < Mode.FIT]
        )

    def result(self) -> tuple[PodSetAssignment, ...]:
        """Return the workload's assignment, computed after everything is chosen."""
        if self._result is None:
            self._result = tuple(
                PodSetAssignment(pod_set.name, pod_set.count, pod_set.flavors, pod_set.usage, pod_set.domains)
                for pod_set in self.pod_sets
            )
        return self._result

    def amounts(self) -> Usage:
        """Return the usage of each pair, computed after everything is chosen."""
        if self._amounts is None:
            self._amounts = tuple(self.usage.items())
        return self._amounts


class Resolver:
    """Converts the requests of a queue's workloads into indices, once for each shape."""

    __slots__ = ("_by_identity", "_group_of", "_groups", "_known", "_levels", "_pairs", "_topologies", "_walks_plainly")

    def __init__(self, node: QueueNode, pairs: Pairs, topologies: Mapping[str, Grid]) -> None:
        self._known: dict[object, Asked] = {}
        # Tasks of one kind share pod sets, so the key is computed only once.
        self._by_identity: dict[int, tuple[tuple[PodSet, ...], int, object, Asked]] = {}
        self._pairs = pairs
        self._groups = node.spec.resource_groups
        self._topologies = topologies
        self._levels = tuple(dict.fromkeys(level for grid in topologies.values() for level in grid.levels))
        rules = node.spec.fungibility
        self._walks_plainly = (
            node.spec.preemption.reclaim_within_cohort == "Any"
            and rules.when_can_preempt == "TryNextFlavor"
            # Which of a flavor's resources counts as the worst hangs on the level after evictions there.
            and rules.preference == "BorrowingOverPreemption"
        )
        self._group_of: dict[str, int] = {}
        for index, group in enumerate(self._groups):
            for resource in group.covered_resources:
                self._group_of.setdefault(resource, index)

    def __call__(self, spec: Workload) -> tuple[object, Asked, tuple[int, ...]]:
        """Return the shape's key, and the requests of a workload of this shape."""
        last = self._by_identity.get(id(spec.pod_sets))
        if last is not None and last[0] is spec.pod_sets and last[1] == spec.priority:
            return last[2], last[3], last[3].flavors
        key = (spec.priority, *map(_key, spec.pod_sets))
        resolved = self._known.get(key)
        if resolved is None:
            reject_pod_sets(spec, self._levels)
            resolved = self._known[key] = self._asked(tuple(self._pod_set(each) for each in spec.pod_sets))
        if len(self._by_identity) >= _MOST_REMEMBERED:
            self._by_identity.clear()
        self._by_identity[id(spec.pod_sets)] = spec.pod_sets, spec.priority, key, resolved
        return key, resolved, resolved.flavors

    def _asked(self, request: Request) -> Asked:
        groups = [group for each in request for group in each.groups]
        pairs = {pair for group in groups for flavor in group.pairs for pair in flavor}
        only = all(group.only for group in groups)
        amounts: Usage | None = None
        if only and len(request) == 1 and request[0].uncovered is None and not self._is_placed(groups):
            count = request[0].spec.count
            amounts = tuple(
                (pair, amount * count)
                for group in groups
                for flavor in group.pairs
                for pair, amount in zip(flavor, group.amounts, strict=False)
            )
        return Asked(
            request=request,
            flavors=tuple(sorted({self._pairs.flavor_of[pair] for pair in pairs})),
            no_choice=only and self._walks_plainly,
            partial=any(each.spec.min_count is not None for each in request),
            amounts=amounts,
        )

    def _is_placed(self, groups: Sequence[GroupRequest]) -> bool:
        return any(flavor in self._topologies for group in groups for flavor in group.flavors)

    def _pod_set(self, spec: PodSet) -> PodSetRequest:
        amounts = dict(spec.per_pod)
        if "pods" in self._group_of:
            amounts["pods"] = 1
        uncovered = next((name for name, amount in amounts.items() if amount and name not in self._group_of), None)
        by_group: dict[int, dict[str, int]] = {}
        for name in sorted(amounts):
            if name in self._group_of:
                by_group.setdefault(self._group_of[name], {})[name] = amounts[name]
        return PodSetRequest(
            spec, tuple(self._group(index, found, spec) for index, found in by_group.items()), uncovered
        )

    def _group(self, index: int, amounts: dict[str, int], spec: PodSet) -> GroupRequest:
        flavors = tuple(each.name for each in self._groups[index].flavors)
        pairs = tuple(
            tuple(self._pairs.index[flavor, name] for name in amounts) if self._admits(spec, flavor) else ()
            for flavor in flavors
        )
        return GroupRequest(
            group=index,
            flavors=flavors,
            pairs=pairs,
            amounts=tuple(amounts.values()),
            resources=tuple(amounts),
            only=sum(map(bool, pairs)) == 1,
        )

    def _admits(self, spec: PodSet, flavor: str) -> bool:
        """Return whether the pods can use a flavor; a topology's flavors accept only pods that request its levels."""
        all_topology = all(each.name in self._topologies for group in self._groups for each in group.flavors)
        fits = all_topology or (flavor in self._topologies) == (spec.topology is not None)
        grid = self._topologies.get(flavor)
        has_level = grid is None or grid.has_level(spec.topology)
        return fits and has_level and (spec.flavors is None or flavor in spec.flavors)


def _key(spec: Any) -> object:
    # Not as a PodSet: compiled code would reject a fractional count here, without stating its pod set.
    per_pod = frozenset(spec.per_pod.items())
    return spec.name, spec.count, per_pod, spec.min_count, spec.flavors, spec.topology


def scaled_counts(request: Request, step: int, steps: int) -> list[int]:
    """Return the remaining pods of each pod set, after so many steps down to the minimum."""
    counts = []
    for pod_set in request:
        spec = pod_set.spec
        least = spec.count if spec.min_count is None else spec.min_count
        counts.append(spec.count - (spec.count - least) * step // steps)
    return counts


def assign(
    task: QueuedWorkload, request: Request, counts: Sequence[int] | None, *, fair: bool, simulate: Simulate
) -> Assignment:
    """Choose flavors for a workload, with its whole counts or smaller ones."""
    assignment = Assignment()
    for index, wanted in enumerate(request):
        count = wanted.spec.count if counts is None else counts[index]
        chosen = _Walk(task, index, assignment, fair=fair, simulate=simulate).pod_set(wanted, count)
        assignment.pod_sets.append(chosen)
        if chosen.failed:
            break
    assignment.mode = min((each.mode for each in assignment.pod_sets), default=Mode.NO_FIT)
    if assignment.mode != Mode.NO_FIT:
        assignment.reason = None
    return assignment


# Severity of reasons: among alternatives, the least severe counts; among joint requirements, the most severe.
_GRAVITY = {None: 0, "TopologyPlacementFailed": 1, "WaitingForQuota": 2, "ExceedsMaxQuota": 3, "NoMatchingFlavor": 4}


def _graver(one: str | None, other: str | None) -> str | None:
    return one if _GRAVITY[one] >= _GRAVITY[other] else other


class _Walk:
    """The walk of one pod set over the flavors of each resource group that it requests."""

    __slots__ = ("assignment", "fair", "index", "node", "simulate", "task")

    def __init__(
        self, task: QueuedWorkload, index: int, assignment: Assignment, *, fair: bool, simulate: Simulate
    ) -> None:
        self.task = task
        self.index = index
        self.node = task.queue.node
        self.assignment = assignment
        self.fair = fair
        self.simulate = simulate

    def pod_set(self, request: PodSetRequest, count: int) -> Chosen:
        chosen = Chosen(request.spec.name, count)
        tried: dict[int, int] = {}
        if request.uncovered is not None:
            self.assignment.reason = "NoMatchingFlavor"
            return self._failed(chosen)
        chosen_flavors: list[tuple[GroupRequest, int, list[tuple[Mode, int]]]] = []
        for group in request.groups:
            best = self._group(group, count)
            if isinstance(best, str):
                self.assignment.reason = _graver(self.assignment.reason, best)
                return self._failed(chosen)
            flavor, mode, modes, last = best
            chosen.fits = chosen.fits and mode == Mode.FIT
            tried[group.group] = last
            chosen_flavors.append((group, flavor, modes))
        for group, flavor, modes in chosen_flavors:
            self._take(chosen, group, flavor, modes, count)
        self.assignment.tried.append(tried)
        return chosen

    def _failed(self, chosen: Chosen) -> Chosen:
        chosen.failed = True
        chosen.fits = False
        self.assignment.tried.append({})
        return chosen

    def _take(
        self, chosen: Chosen, group: GroupRequest, flavor: int, modes: list[tuple[Mode, int]], count: int
    ) -> None:
        usage = self.assignment.usage
        rows = zip(group.resources, group.amounts, group.pairs[flavor], modes, strict=True)
        for resource, per_pod, pair, (mode, level) in rows:
            amount = per_pod * count
            chosen.flavors[resource] = group.flavors[flavor]
            chosen.usage[resource] = amount
            chosen.modes[pair] = mode
            usage[pair] = usage.get(pair, 0) + amount
            self.assignment.pairs.add(pair)
            self.assignment.borrowing = max(self.assignment.borrowing, level)

    def _group(self, group: GroupRequest, count: int) -> tuple[int, Mode, list[tuple[Mode, int]], int] | str:
        """Return the best flavor, its mode, that of each pair, and the flavor to continue after; or why none fits."""
        rules = self.node.spec.fungibility
        tried = self.task.tried
        begin = tried[self.index].get(group.group, -1) + 1 if self.index < len(tried) else 0
        best: tuple[int, tuple[Mode, int], list[tuple[Mode, int]]] | None = None
        last = begin - 1
        why: str | None = "NoMatchingFlavor"
        for flavor in range(begin, len(group.flavors)):
            last = flavor
            if not group.pairs[flavor]:
                continue
            modes: list[tuple[Mode, int]] = []
            worst, reason = self._flavor(group, flavor, count, modes, rules)
            if worst[0] == Mode.NO_FIT:
                if why is None or _GRAVITY[reason] < _GRAVITY[why]:
                    why = reason
                continue
            if not _goes_on(worst, rules):
                best = flavor, worst, modes
                break
            if best is None or _better(worst, best[1], rules):
                best = flavor, worst, modes
        if best is None:
            return why or "WaitingForQuota"
        return best[0], best[1][0], best[2], -1 if last == len(group.flavors) - 1 else last

    def _flavor(
        self, group: GroupRequest, flavor: int, count: int, modes: list[tuple[Mode, int]], rules: FlavorFungibility
    ) -> tuple[tuple[Mode, int], str | None]:
        worst = (Mode.FIT, 0)
        for pair, per_pod in zip(group.pairs[flavor], group.amounts, strict=True):
            mode, level, reason = self._pair(pair, per_pod * count)
            if mode == Mode.NO_FIT:
                return (mode, level), reason
            if _better(worst, (mode, level), rules):
                worst = mode, level
            modes.append((mode, level))
        return worst, None

    def _pair(self, pair: int, more: int) -> tuple[Mode, int, str | None]:
        node = self.node
        amount = self.assignment.usage.get(pair, 0) + more
        if amount > node.potential[pair]:
            return Mode.NO_FIT, 0, "ExceedsMaxQuota"
        level, lies_above = node.borrow_level(pair, amount)
        if amount <= max(0, node.available(pair)):
            return Mode.FIT, level, None
        if node.may_take(pair, amount, lies_above=lies_above, fair=self.fair):
            mode, level = self.simulate(self.task, pair, amount)
            return mode, level, None
        return Mode.NO_FIT, level, "WaitingForQuota"


def _goes_on(mode: tuple[Mode, int], rules: FlavorFungibility) -> bool:
    if mode[0] <= Mode.NO_CANDIDATES:
        return True
    if mode[0] in (Mode.PREEMPT, Mode.RECLAIM) and rules.when_can_preempt == "TryNextFlavor":
        return True
    return mode[1] > 0 and rules.when_can_borrow == "TryNextFlavor"


def _better(mine: tuple[Mode, int], theirs: tuple[Mode, int], rules: FlavorFungibility) -> bool:
    """Return whether one mode with its borrowing level is preferred to another."""
    if Mode.NO_FIT in (mine[0], theirs[0]):
        return mine[0] != Mode.NO_FIT
    if (mine[0] == Mode.NO_CANDIDATES) != (theirs[0] == Mode.NO_CANDIDATES):
        return theirs[0] == Mode.NO_CANDIDATES
    if rules.preference == "PreemptionOverBorrowing":
        return mine[1] < theirs[1] if mine[1] != theirs[1] else mine[0] > theirs[0]
    return mine[0] > theirs[0] if mine[0] != theirs[0] else mine[1] < theirs[1]

"""Checks a model and its workloads once, when they are passed in, so that other code doesn't need to.

Kueue's API server rejects the same (`pkg/webhooks/clusterqueue_webhook.go`, `cohort_webhook.go`, `workload_webhook.go`,
and the enums and minimums of its CRDs), version 0.19.2.
"""

from collections.abc import Collection, Container, Iterable, Iterator
from math import isfinite
from typing import get_args

from hpkit.kueue.model import (
    BorrowWithinCohort,
    ClusterQueue,
    Cohort,
    FlavorFungibility,
    FlavorQuotas,
    Model,
    Policy,
    Preemption,
    Strategy,
    Topology,
    Workload,
)

__all__ = ["reject_admission", "reject_model", "reject_pod_sets"]

_POLICIES = get_args(Policy)
_LOWER = ("Never", "LowerPriority")
_STRATEGIES = get_args(Strategy)
_QUEUEING = ("BestEffortFIFO", "StrictFIFO")
_FUNGIBILITY = ("MayStopSearch", "TryNextFlavor")
_PREFERENCES = ("BorrowingOverPreemption", "PreemptionOverBorrowing")
_MODES = ("required", "preferred", "unconstrained")


def reject_model(model: Model) -> None:
    """Raise ValueError with all that is wrong in a model, a line each."""
    found = [*_model(model)]
    if found:
        raise ValueError("\n".join(found))


def reject_pod_sets(workload: Workload, levels: Collection[str]) -> None:
    """Raise ValueError with all problems of a workload's pod sets; levels: the levels of the model's topologies."""
    found = [f"workload {workload.name}: {said}" for said in _pod_sets(workload, levels)]
    if found:
        raise ValueError("\n".join(found))


def reject_admission(workload: Workload, pairs: Container[tuple[str, str]], leaves: Container[str] | None) -> None:
    """Raise ValueError with all problems of the quota that a workload holds.

    pairs: the model's flavors and resources. leaves: the leaves of its topologies, None without any.
    """
    found = [f"workload {workload.name}: {said}" for said in _admission(workload, pairs, leaves)]
    if found:
        raise ValueError("\n".join(found))


def _model(model: Model) -> Iterator[str]:
    yield from _twice("queues", (queue.name for queue in model.queues))
    yield from _twice("cohorts", (cohort.name for cohort in model.cohorts))
    yield from _below_itself(model.cohorts)
    for cohort in model.cohorts:
        where = f"cohort {cohort.name}"
        yield from _weight(where, cohort.fair_weight)
        yield from _twice(f"{where}: flavors", (flavor.name for flavor in cohort.flavors))
        yield from _quotas(where, cohort.flavors)
    for queue in model.queues:
        yield from _queue(queue)
    for strategy in model.fair_sharing or ():
        yield from _disallowed("the model", "fair_sharing", strategy, _STRATEGIES)
    yield from _topologies(model.topologies)


def _queue(queue: ClusterQueue) -> Iterator[str]:
    where = f"queue {queue.name}"
    yield from _weight(where, queue.fair_weight)
    yield from _disallowed(where, "queueing_strategy", queue.queueing_strategy, _QUEUEING)
    yield from _preemption(where, queue.preemption)
    yield from _fungibility(where, queue.fungibility)
    yield from _twice(f"{where}: flavors", (each.name for group in queue.resource_groups for each in group.flavors))
    covered: list[str] = []
    for group in queue.resource_groups:
        if _is_text(group.covered_resources):
            yield f"{where}: covered_resources is the text {group.covered_resources}, and must be a tuple"
            continue
        covered += group.covered_resources
        yield from _quotas(where, group.flavors)
        for flavor in group.flavors:
            for resource in flavor.resources.keys() - set(group.covered_resources):
                yield f"{where}: the resource group of flavor {flavor.name} does not cover {resource}"
    yield from _twice(f"{where}: resources", covered)


def _preemption(where: str, preemption: Preemption) -> Iterator[str]:
    yield from _disallowed(where, "within_cluster_queue", preemption.within_cluster_queue, _POLICIES)
    yield from _disallowed(where, "reclaim_within_cohort", preemption.reclaim_within_cohort, _POLICIES)
    borrow: BorrowWithinCohort | None = preemption.borrow_within_cohort
    if borrow is not None:
        yield from _disallowed(where, "borrow_within_cohort", borrow.policy, _LOWER)


def _fungibility(where: str, rules: FlavorFungibility) -> Iterator[str]:
    yield from _disallowed(where, "when_can_borrow", rules.when_can_borrow, _FUNGIBILITY)
    yield from _disallowed(where, "when_can_preempt", rules.when_can_preempt, _FUNGIBILITY)
    yield from _disallowed(where, "preference", rules.preference, _PREFERENCES)


def _quotas(where: str, flavors: Iterable[FlavorQuotas]) -> Iterator[str]:
    for flavor in flavors:
        for resource, quota in flavor.resources.items():
            for quota_name, amount in (
                ("nominal", quota.nominal),
                ("borrowing_limit", quota.borrowing_limit),
                ("lending_limit", quota.lending_limit),
            ):
                if amount is not None and not _is_amount(amount):
                    yield f"{where}: {quota_name} of {resource} of {flavor.name} is {amount}; {_WANTED}"


def _topologies(topologies: Iterable[Topology]) -> Iterator[str]:
    yield from _twice("topologies: flavors", (flavor for topology in topologies for flavor in topology.flavors))
    for topology in topologies:
        if not topology.levels:
            yield "a topology has no levels"
        yield from _twice("topologies: levels", topology.levels)
        yield from _twice("topologies: nodes", (node.name for node in topology.nodes))
        for node in topology.nodes:
            for resource, amount in node.allocatable.items():
                if not _is_amount(amount):
                    yield f"node {node.name}: {resource} is {amount}; {_WANTED}"


def _pod_sets(workload: Workload, levels: Collection[str]) -> Iterator[str]:
    if not workload.pod_sets:
        yield "it has no pod sets"
    yield from _twice("pod sets", (pod_set.name for pod_set in workload.pod_sets))
    for pod_set in workload.pod_sets:
        where = f"pod set {pod_set.name}"
        for what, amount in (("count", pod_set.count), ("min_count", pod_set.min_count), *pod_set.per_pod.items()):
            if amount is not None and not _is_amount(amount):
                yield f"{where}: {what} is {amount}; {_WANTED}"
        if pod_set.min_count is not None and pod_set.min_count > pod_set.count:
            yield f"{where}: min_count is {pod_set.min_count}, more than its count of {pod_set.count}"
        if _is_text(pod_set.flavors):
            yield f"{where}: flavors is the text {pod_set.flavors}, and must be a set"
        topology = pod_set.topology
        if topology is None:
            continue
        yield from _disallowed(where, "topology", topology.mode, _MODES)
        # Without topologies, pods aren't placed, so levels have no meaning.
        if levels and topology.mode != "unconstrained" and topology.level not in levels:
            yield f"{where}: no topology has a level {topology.level}; there are {', '.join(levels)}"


def _admission(workload: Workload, pairs: Container[tuple[str, str]], leaves: Container[str] | None) -> Iterator[str]:
    admission = workload.admission
    if admission is None:
        return
    if not isfinite(admission.admitted):
        yield f"admitted is {admission.admitted}; it must be a number of seconds"
    for assignment in admission.pod_sets:
        where = f"pod set {assignment.name}"
        for resource, flavor in assignment.flavors.items():
            if (flavor, resource) not in pairs:
                yield f"{where}: it runs on {flavor}, which has no quota of {resource}"
        for what, amount in (("count", assignment.count), *assignment.usage.items(), *assignment.domains):
            if not _is_amount(amount):
                yield f"{where}: {what} is {amount}; {_WANTED}"
        for leaf, _ in assignment.domains:
            if leaves is not None and leaf not in leaves:
                yield f"{where}: it runs on {leaf}, which no topology has"


_WANTED = "it must be a whole number, 0 or more"


def _is_amount(amount: object) -> bool:
    return isinstance(amount, int) and amount >= 0


def _is_text(value: object) -> bool:
    """Return whether a text is given where a list is expected: its letters would be read as entries."""
    return isinstance(value, str)


def _weight(where: str, weight: float) -> Iterator[str]:
    if not (isfinite(weight) and weight >= 0):
        yield f"{where}: fair_weight is {weight}; it must be a number, 0 or more"


def _disallowed(where: str, what: str, value: str, allowed: tuple[str, ...]) -> Iterator[str]:
    if value not in allowed:
        yield f'{where}: {what} is "{value}"; it is one of {", ".join(allowed)}'


def _twice(noun: str, names: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            yield f"{noun}: there are two {name}"
        seen.add(name)


def _below_itself(cohorts: Iterable[Cohort]) -> Iterator[str]:
    parents = {cohort.name: cohort.parent for cohort in cohorts}
    reported: set[str] = set()
    for name in parents:
        chain = [name]
        while (above := parents.get(chain[-1])) is not None and above not in chain:
            chain.append(above)
        if above == name and name not in reported:
            reported.update(chain)
            yield f"cohort {name} is below itself: {' → '.join([*chain, name])}"

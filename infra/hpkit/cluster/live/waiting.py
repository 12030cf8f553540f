"""Explains as text why a task waits, from Kueue's conditions."""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from hpkit.cluster.live.model import Queue, Task, without_basics
from hpkit.cluster.live.parse import number
from hpkit.kueue.model import UNCONSTRAINED
from hpkit.plan.capacity import INSTANCE_TYPE_KEY
from hpkit.plan.pods import may_go_to
from hpkit.text.formatting import amount

__all__ = [
    "HELD",
    "NEVER",
    "amount",
    "counted",
    "deactivation",
    "is_crowded",
    "message_words",
    "preemption",
    "preemptor",
    "sized",
    "topology_mismatch",
    "waiting_reason",
]

_GIB: Final = 1024**3
_IN_BYTES: Final = ("memory", "ephemeral-storage")
# Messages of Kueue 0.19 (pkg/scheduler/flavorassigner: fitsResourceQuota, and pkg/scheduler: the requeue reasons).
_TOO_LARGE: Final = re.compile(
    r"insufficient quota for (?P<resource>\S+) in flavor (?P<flavor>\S+), previously considered podsets requests "
    r"\((?P<before>\S+)\) \+ current podset request \((?P<request>\S+)\) > maximum capacity \((?P<maximum>\S+)\)"
)
_NO_ROOM: Final = re.compile(
    r"insufficient unused quota for (?P<resource>\S+) in flavor (?P<flavor>\S+), (?P<missing>\S+) more needed"
)
_NO_FLAVOR: Final = re.compile(r"flavor \S+ doesn't match node affinity|untolerated taint .* in flavor")
_NOT_COUNTED: Final = re.compile(r"resource (?P<resource>\S+) unavailable in ClusterQueue")
# pkg/scheduler/flavorassigner/tas_flavorassigner.go, and pkg/cache/scheduler/tas_flavor_snapshot.go.
_TOPOLOGY: Final = re.compile(
    r'Flavor "(?P<flavor>[^"]+)" (?:does not support|supports (?P<only>only)) TopologyAwareScheduling'
)
_CROWDED: Final = re.compile(
    r'topology "[^"]+" (?:allows to fit only (?P<fit>\d+) out of|doesn\'t allow to fit any of) (?P<asked>\d+) pod'
)
_KEYS: Final = (INSTANCE_TYPE_KEY,)
NEVER: Final = "it can never run: "
HELD: Final = "; Kueue admits it once quota is free, and it holds quota while its pods wait without end"
_FIRST_DECISION: Final = timedelta(seconds=30)
# preemptionMessage of pkg/scheduler/preemption.
_PREEMPTOR: Final = re.compile(r"\(UID: (?P<uid>[^,)]+)")
_PREEMPTOR_QUEUE: Final = re.compile(r"preemptor path: (?:/[^/;\s]+)*/(?P<queue>[^/;\s]+)")
_WHY_PREEMPTED: Final = {
    "InClusterQueue": "a task of its own team with a higher priority needed the quota",
    "InCohortReclamation": "the team that lent the quota reclaimed it",
    "InCohortFairSharing": "another team had less than its fair share of the lent capacity",
    "InCohortReclaimWhileBorrowing": "the team that lent the quota reclaimed it for a task that also borrows",
}
_NOT_READY: Final = "its pods weren't all ready in time (gang scheduling)"
_WHY_EVICTED: Final = {
    "PodsReadyTimeout": _NOT_READY,
    "NodeFailures": "its nodes failed",
    "AdmissionCheck": "an admission check rejected it",
    "ClusterQueueStopped": "its ClusterQueue was stopped",
    "LocalQueueStopped": "its LocalQueue was stopped",
}
_WHY_DEACTIVATED: Final = {
    "RequeuingLimitExceeded": f"{_NOT_READY}, and `gangScheduling.requeuingStrategy` allows no more retries",
    "MaximumExecutionTimeExceeded": "it ran longer than its label kueue.x-k8s.io/max-exec-time-seconds allows",
    "AdmissionCheck": "an admission check rejected it",
}
# Texts for the reasons in messages; the reason is removed when the task is admitted again (workload.go, "Previously:
# ").
_PREEMPTED_BY_MESSAGE: Final = {
    "due to reclamation within the cohort while borrowing": "InCohortReclaimWhileBorrowing",
    "due to reclamation within the cohort": "InCohortReclamation",
    "due to Fair Sharing within the cohort": "InCohortFairSharing",
    "due to prioritization in the ClusterQueue": "InClusterQueue",
}
_PREVIOUSLY: Final = "Previously: "


def counted(value: Decimal, resource: str) -> str:
    """Return an amount of a resource with its name."""
    return f"{sized(value, resource)} {resource}"


def sized(value: Decimal, resource: str) -> str:
    """Return an amount of a resource; of one that is counted in bytes, in GiB."""
    return f"{amount(value / _GIB)} GiB" if resource in _IN_BYTES else amount(value)


def waiting_reason(task: Task, queue: Queue | None, now: datetime, never: str = "") -> str:
    """Return why a task waits; queue is its ClusterQueue, None where no queue serves it; never: as in message_words."""
    if queue is None:
        return f"it has no queue: LocalQueue {task.local_queue or '(none named)'} doesn't exist in {task.namespace}"
    if not queue.active:
        return f"its queue admits nothing: {queue.problem}"
    return message_words(task, now, never)


def message_words(task: Task, now: datetime, never: str = "") -> str:
    """Return why a task waits, from its own conditions; never: why no node can ever hold its pods, if so."""
    reserved = task.conditions.get("QuotaReserved")
    if reserved is not None and reserved.status:
        return "it has quota, and is waiting for its nodes to start or its pods to be placed"
    message = "" if reserved is None else reserved.message
    words = _quota_words(task, message)
    if never:
        words = NEVER + (never.removesuffix(HELD) if NEVER in words else never)
    again = _eviction(task) or preemption(task)
    if again:
        return f"{again}; now {words}" if words else again
    return words or message or _undecided(task, now)


def _undecided(task: Task, now: datetime) -> str:
    """Return a text about a task without a message from Kueue, which decides within seconds while it runs."""
    waits = now - task.created
    if waits < _FIRST_DECISION:
        return "Kueue hasn't evaluated it yet"
    return (
        f"Kueue hasn't evaluated it for {int(waits.total_seconds())} s, so it may not be running. Check `kubectl get "
        f"pods -n kueue-system`, then the events in `kubectl describe workload {task.name} -n {task.namespace}`"
    )


def _quota_words(task: Task, message: str) -> str:
    """Return the message's reason per flavor; if a request never fits, freed quota doesn't help."""
    never: dict[str, dict[str, str]] = {}
    for match in _TOO_LARGE.finditer(message):
        asked = number(match["before"]) + number(match["request"])
        never.setdefault(match["flavor"], {})[match["resource"]] = (
            f"{counted(asked, match['resource'])} of {match['flavor']}, but the team's quota and what it can borrow "
            f"together are {sized(number(match['maximum']), match['resource'])}"
        )
    short: dict[str, list[str]] = {}
    for match in _NO_ROOM.finditer(message):
        if match["flavor"] not in never:
            short.setdefault(match["flavor"], []).append(
                f"{sized(number(match['missing']), match['resource'])} more {match['resource']}"
            )
    if short:
        # Kueue decides again when quota becomes free, but not when another task takes some.
        return ", or ".join(
            f"at least {' and '.join(dict.fromkeys(parts))} of {name} must become free" for name, parts in short.items()
        )
    reasons = [each[name] for each in never.values() for name in without_basics(each)]
    if not reasons:
        return _topology_words(task, message)
    return "; ".join(filter(None, (f"{NEVER}it requests {', or '.join(reasons)}", _mismatch(task, message))))


def is_crowded(task: Task) -> bool:
    """Return whether Kueue finds quota, but no nodes with room, by topology-aware scheduling."""
    reserved = task.conditions.get("QuotaReserved")
    return reserved is not None and _CROWDED.search(reserved.message) is not None


def _topology_words(task: Task, message: str) -> str:
    """Return the message's reason about nodes."""
    crowded = _CROWDED.search(message)
    if crowded and not any(pods.topology for pods in task.pod_sets):
        return f"quota is free, but only {crowded['fit'] or 0} of {crowded['asked']} pods find a node with room"
    if crowded:
        return (
            f"only {crowded['fit'] or 0} of {crowded['asked']} pods fit as close together as requested; for free "
            "nodes, run `hpkit cluster status --topology`"
        )
    if not_counted := _NOT_COUNTED.search(message):
        return f"{NEVER}its queue doesn't count {not_counted['resource']}"
    if mismatch := _mismatch(task, message):
        return f"{NEVER}{mismatch}"
    if _NO_FLAVOR.search(message):
        return f"{NEVER}its node selector, affinity or tolerations exclude every flavor of its queue"
    return ""


def _mismatch(task: Task, message: str) -> str:
    """Return the message's reason about flavors that the topology request of pods excludes; or "".

    Kueue compares topologies before node selectors, so the message also names flavors to which the pods can't go. Task
    governance names flavors after instance types.
    """
    closed = {
        each["flavor"]: bool(each["only"])
        for each in _TOPOLOGY.finditer(message)
        if any(may_go_to(pods.spec, {INSTANCE_TYPE_KEY: each["flavor"]}, _KEYS) for pods in task.pod_sets)
    }
    return topology_mismatch(list(closed), asks=not any(closed.values())) if closed else ""


def topology_mismatch(flavors: Sequence[str], *, asks: bool) -> str:
    """Return why Kueue doesn't admit pods that could go to some flavors, and a fix; asks: they request a topology."""
    names = " or ".join(flavors)
    if asks:
        return (
            f"its pods request a topology, but EC2 reports no network position for {names}. Remove the topology "
            "annotation, or select an instance type with network layers"
        )
    return (
        f"its pods request no topology, and on {names}, the queue admits only pods that request one. Add the "
        f'annotation `{UNCONSTRAINED}: "true"` to its pod template, or select another instance type'
    )


def _last_preemption(task: Task) -> tuple[str, str] | None:
    """Return reason and message of a task's last preemption, which Kueue keeps when the task is admitted again."""
    condition = task.conditions.get("Preempted")
    if condition is None:
        return None
    if condition.status:
        return condition.reason, condition.message
    if not condition.message.startswith(_PREVIOUSLY):
        return None
    reason = next((name for words, name in _PREEMPTED_BY_MESSAGE.items() if words in condition.message), "")
    return reason, condition.message.removeprefix(_PREVIOUSLY)


def preemption(task: Task) -> str:
    """Return how often a task was preempted, and why the last time, as text; or ""."""
    found, count = _last_preemption(task), task.evictions.get("Preempted", 0)
    if found is None:
        return ""
    times = f" {count} times, most recently" if count > 1 else ","
    return f"it was preempted{times} because {_WHY_PREEMPTED.get(*found)}"


def _eviction(task: Task) -> str:
    """Return why a pending task was last evicted as text; empty if it wasn't, or was preempted.

    Source: Kueue 0.19, reasons of WorkloadEvicted in workload_types.go, and reconcileNotReadyTimeout.
    """
    latest = task.conditions.get("Evicted")
    if latest is None or not latest.status or latest.reason not in _WHY_EVICTED:
        return ""
    events = f"; for the cause, run `kubectl get events -n {task.namespace}`"
    return (
        f"it was evicted, because {_WHY_EVICTED[latest.reason]}{events if latest.reason == 'PodsReadyTimeout' else ''}"
    )


def deactivation(task: Task) -> str:
    """Return why a task's Workload is inactive, and how to run the task again.

    Source: Kueue 0.19, triggerDeactivation and SetDeactivationTarget; the reason is `DeactivatedDueTo` and the cause.
    """
    found = task.conditions.get("Evicted")
    cause = "" if found is None else found.reason.removeprefix("DeactivatedDueTo")
    if cause not in _WHY_DEACTIVATED:
        return "it was stopped manually: spec.active of its Workload is false"
    patch = f"""kubectl patch workload {task.name} -n {task.namespace} --type merge -p '{{"spec":{{"active":true}}}}'"""
    return (
        f"Kueue deactivated it, because {_WHY_DEACTIVATED[cause]}. Fix the cause, then submit it again, or have an "
        f"administrator run `{patch}`"
    )


def preemptor(task: Task) -> tuple[str | None, str | None]:
    """Return UID and ClusterQueue of the Workload for which a task was last preempted; the queue outlives it."""
    found = _last_preemption(task)
    matches = [found and pattern.search(found[1]) for pattern in (_PREEMPTOR, _PREEMPTOR_QUEUE)]
    uid, queue = (match[1] if match else None for match in matches)
    return uid, queue

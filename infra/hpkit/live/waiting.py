"""Why a task waits, in words: Kueue's conditions, read."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

from hpkit.live.model import Queue, Task

__all__ = ["amount", "counted", "preemption", "preemptor", "sized", "waiting_reason"]

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
# preemptionMessage of pkg/scheduler/preemption.
_PREEMPTOR: Final = re.compile(r"\(UID: (?P<uid>[^,)]+)")
_WHY_PREEMPTED: Final = {
    "InClusterQueue": "a task of its own team with a higher priority needed the quota",
    "InCohortReclamation": "the team that had lent the quota needed it back",
    "InCohortFairSharing": "another team had less than its fair share of what is lent",
    "InCohortReclaimWhileBorrowing": "the team that had lent the quota needed it back while borrowing itself",
}


def amount(value: Decimal) -> str:
    """Return an amount as people write it: whole where it is, else with at most two decimals."""
    return str(int(value)) if value == value.to_integral_value() else f"{value:.2f}".rstrip("0").rstrip(".")


def counted(value: Decimal, resource: str) -> str:
    """Return an amount of a resource with its name."""
    return f"{sized(value, resource)} {resource}"


def sized(value: Decimal, resource: str) -> str:
    """Return an amount of a resource; of one that is counted in bytes, in GiB."""
    return f"{amount(value / _GIB)} GiB" if resource in _IN_BYTES else amount(value)


def waiting_reason(task: Task, queue: Queue | None) -> str:
    """Return why a task waits; queue is its ClusterQueue, None where no queue serves it."""
    if queue is None:
        return f"no queue serves it: LocalQueue {task.local_queue or '(none named)'} is not in {task.namespace}"
    if not queue.active:
        return f"its queue admits nothing: {queue.message or 'not active'}"
    reserved = task.conditions.get("QuotaReserved")
    if reserved is not None and reserved.status:
        return "it has quota, and waits for its nodes to be provisioned or its pods to be placed"
    message = "" if reserved is None else reserved.message
    words = _quota_words(message)
    again = preemption(task)
    if again:
        return f"{again}; now {words}" if words else again
    return words or message or "Kueue has not looked at it yet"


def _quota_words(message: str) -> str:
    """Return what a message says of each flavor that was tried."""
    never = [
        f"{each['request']} {each['resource']} of {each['flavor']}, where quota and borrowing together are "
        f"{each['maximum']}"
        for each in _TOO_LARGE.finditer(message)
    ]
    short = [
        f"{each['missing']} more {each['resource']} of {each['flavor']} must become free"
        for each in _NO_ROOM.finditer(message)
    ]
    if short:
        return ", or ".join(dict.fromkeys(short))
    return f"it can never run: it asks for {', or '.join(dict.fromkeys(never))}" if never else ""


def preemption(task: Task) -> str:
    """Return why a task was last preempted, in words; empty where it was not."""
    found = task.conditions.get("Preempted")
    if found is None or not found.status:
        return ""
    return f"it was preempted, since {_WHY_PREEMPTED.get(found.reason, found.message)}"


def preemptor(task: Task) -> str | None:
    """Return the UID of the Workload for which a task was last preempted, None where it was not."""
    found = task.conditions.get("Preempted")
    match = None if found is None or not found.status else _PREEMPTOR.search(found.message)
    return None if match is None else match["uid"]

"""The one waiter: statuses classified once, looks with jitter, progress shown, time-outs and cancel honoured."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any, Final

from provider.task import Task

__all__ = ["FAILED", "MODIFYING", "READY", "kind_of", "wait"]

MODIFYING: Final = frozenset({"Creating", "Updating", "Deleting", "SystemUpdating", "RollingBack"})
READY: Final = frozenset({"InService", "Created", "Updated"})
FAILED: Final = frozenset(
    {
        "Failed",
        "CreateFailed",
        "CreateRollbackFailed",
        "UpdateFailed",
        "UpdateRollbackFailed",
        "DeleteFailed",
        "DeleteRollbackFailed",
    }
)
_LEAST: Final = 0.15


def kind_of(status: str | None) -> str:
    """Classify a status: modifying, ready, failed or gone; what is unknown to this kit counts as modifying."""
    if status is None or status == "Deleted":
        return "gone"
    if status in READY:
        return "ready"
    return "failed" if status in FAILED else "modifying"


def wait(
    task: Task,
    look: Callable[[], Any],
    *,
    settled: Callable[[Any], bool],
    progress: Callable[[Any], str],
    most: float,
    share: float,
) -> Any:
    """Look until it is settled; `most` is the longest pause between two looks, in seconds.

    A pause is a share of the time waited so far: what takes seconds and what takes minutes is seen equally soon after.
    A small share suits what there is one of; what there are hundreds of at once would be throttled with it.
    """
    began = time.monotonic()
    while True:
        seen = look()
        task.progress(progress(seen))
        if settled(seen):
            return seen
        pause = min(most, max(_LEAST, share * (time.monotonic() - began)))
        task.pause(pause * random.uniform(0.6, 1.2))  # noqa: S311 - jitter, not a secret

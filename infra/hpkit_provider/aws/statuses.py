"""Classifies the statuses of SageMaker's objects."""

from __future__ import annotations

from typing import Final, Literal

__all__ = ["StatusKind", "classify_status"]

StatusKind = Literal["modifying", "ready", "failed", "deleted"]

_READY: Final = frozenset({"InService", "Created", "Updated"})
_FAILED: Final = frozenset(
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


def classify_status(status: str | None) -> StatusKind:
    """Classify a status, None for a missing object; unknown ones count as modifying."""
    if status is None or status == "Deleted":
        return "deleted"
    if status in _READY:
        return "ready"
    return "failed" if status in _FAILED else "modifying"

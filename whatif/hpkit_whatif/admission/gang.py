"""Gang scheduling: how long and how often a workload is retried whose pods weren't ready in time.

Rules: Kueue's `pkg/workload/workload.go` (UpdateRequeueState) and `pkg/controller/core/workload_controller.go`, version
0.19.2, without the jitter of a ten-thousandth.
"""

from __future__ import annotations

from hpkit.kueue.model import WaitForPodsReady

__all__ = ["backoff_of", "is_retried"]

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

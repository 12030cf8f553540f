"""Waiting for a change to settle: polls with jitter, progress shown, time-outs and cancel honoured."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Final, TypeVar

from hpkit_provider.engine.call import EngineCall

__all__ = ["wait"]

T = TypeVar("T")
_MIN_POLL_SECONDS: Final = 0.15


def wait(
    call: EngineCall,
    poll: Callable[[], T],
    *,
    settled: Callable[[T], bool],
    progress: Callable[[T], str],
    max_seconds: float,
    fraction: float,
) -> T:
    """Poll until it's settled; `max_seconds` is the longest pause between two polls.

    A pause is a fraction of the time waited so far, so that short and long changes are noticed equally soon after. A
    small fraction suits a single resource; hundreds of resources polled at once would be throttled with it.
    """
    started = time.monotonic()
    while True:
        seen = poll()
        call.progress(progress(seen))
        if settled(seen):
            return seen
        pause = min(max_seconds, max(_MIN_POLL_SECONDS, fraction * (time.monotonic() - started)))
        call.pause(pause * random.uniform(0.6, 1.2))  # noqa: S311 - jitter, not a secret

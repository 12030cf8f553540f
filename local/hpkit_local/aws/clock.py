"""Time, as something that can be handed in: the wall clock, or one that a test moves."""

from __future__ import annotations

import time
from typing import Protocol

__all__ = ["Clock", "ManualClock", "WallClock"]


class Clock(Protocol):
    """The endpoint's source of time."""

    def now(self) -> float:
        """Seconds since the epoch."""
        ...


class WallClock:
    """Real time: a transition that fell due while the server was down is applied at the next start."""

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()


class ManualClock:
    """A clock that stands still until it's moved, so that a test sees every intermediate status."""

    def __init__(self, start: float = 1_800_000_000.0) -> None:
        self._now = start

    def now(self) -> float:
        """Seconds since the epoch, as last set."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Move time on."""
        self._now += seconds

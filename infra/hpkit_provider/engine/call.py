"""One operation under way: its clock, its way to be cancelled, its line in the engine's status column, its waits."""

import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, TypeVar

from hpkit_provider.engine.errors import CancelledError, TimedOutError

__all__ = ["EngineCall", "Log", "silent", "wait"]

Log = Callable[[str, str, bool, str], None]  # severity, message, ephemeral, urn
_GROWTH = 1.7


def silent(severity: str, message: str, ephemeral: bool, urn: str) -> None:
    """Discard log messages."""


@dataclass
class EngineCall:
    """The context of every step of an operation; if `best_effort`, no result is better than a late one."""

    urn: str
    seconds: float
    cancel: threading.Event
    log: Log = silent
    best_effort: bool = False
    started: float = field(default_factory=time.monotonic)
    status: str = "working"
    changed: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        """Seconds until the time-out."""
        return self.started + self.seconds - time.monotonic()

    def mark_changed(self) -> None:
        """Record that something was just changed: earlier results are outdated."""
        self.changed = time.monotonic()

    def max_age(self, age: float) -> float:
        """Return the maximum age of a result that still includes the last change."""
        return max(0.0, min(age, time.monotonic() - self.changed))

    def progress(self, text: str) -> None:
        """Show where the operation is, in the status column."""
        if text != self.status:
            self.status = text
            self.log("info", text, True, self.urn)

    def warn(self, text: str) -> None:
        """Show a permanent message."""
        self.log("warning", text, False, self.urn)

    def pause(self, seconds: float) -> None:
        """Wait; a cancelled run or a time-out ends the wait with its error."""
        if self.left <= 0:
            raise TimedOutError(
                f"not finished after {self.seconds:.0f} s (last: {self.status}). To fix: run `pulumi up` again, "
                "which continues from here; or set longer customTimeouts for the resource."
            )
        if self.cancel.wait(min(seconds, max(self.left, 0.01))):
            raise CancelledError(
                f"canceled (last: {self.status}); the change continues in AWS, so run `pulumi up` again"
            )

    def delays(self, first: float, maximum: float) -> Iterator[float]:
        """Yield growing delays with jitter, so that many operations don't call at the same time."""
        delay = first
        while True:
            yield delay * random.uniform(0.6, 1.2)  # noqa: S311 - jitter, not a secret
            delay = min(delay * _GROWTH, maximum)


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

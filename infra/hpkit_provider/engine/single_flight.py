"""Single flight: if many threads need the same result, one makes the call, and all others share it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

__all__ = ["Answer", "SingleFlight"]

T = TypeVar("T")


@dataclass(frozen=True)
class Answer(Generic[T]):
    """A result, and the time of its call."""

    value: T
    started: float


class SingleFlight(Generic[T]):
    """A call that several threads need: a thread that asks during a call shares the result of the next one."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._answer: Answer[T] | None = None
        self._in_flight = False

    def get(self, fetch: Callable[[], T], *, not_before: float) -> Answer[T]:
        """Return the result of a call that was made at `not_before` or later."""
        with self._condition:
            while True:
                if self._answer is not None and self._answer.started >= not_before:
                    return self._answer
                if not self._in_flight:
                    self._in_flight = True
                    break
                self._condition.wait(timeout=1.0)
        started = time.monotonic()
        try:
            answer = Answer(fetch(), started)
        except BaseException:
            with self._condition:
                self._in_flight = False
                self._condition.notify_all()
            raise
        with self._condition:
            self._answer = answer
            self._in_flight = False
            self._condition.notify_all()
        return answer

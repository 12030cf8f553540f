"""Answers that many operations share: one list call serves everyone who waits for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

__all__ = ["Answer", "Shared"]

T = TypeVar("T")


@dataclass(frozen=True)
class Answer(Generic[T]):
    """What was seen, and when the look began."""

    value: T
    started: float


class Shared(Generic[T]):
    """A look that several threads need: whoever comes while one is under way takes part in the next."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._answer: Answer[T] | None = None
        self._busy = False

    def get(self, fetch: Callable[[], T], *, not_before: float) -> Answer[T]:
        """Return an answer to a look that began at `not_before` or later."""
        with self._condition:
            while True:
                if self._answer is not None and self._answer.started >= not_before:
                    return self._answer
                if not self._busy:
                    self._busy = True
                    break
                self._condition.wait(timeout=1.0)
        started = time.monotonic()
        try:
            answer = Answer(fetch(), started)
        except BaseException:
            with self._condition:
                self._busy = False
                self._condition.notify_all()
            raise
        with self._condition:
            self._answer = answer
            self._busy = False
            self._condition.notify_all()
        return answer

"""What one run of the engine knows of clusters' instance groups: those the program has, those that are to go.

The engine deletes after it has updated, and tells a deletion nothing of the program. The cluster, which it compares
in every run, says here which groups the program has; whoever deletes one asks here first.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from provider.task import Task

__all__ = ["RunGroups"]

_TURN_SECONDS = 0.3


class RunGroups:
    """Groups by the ARN of their cluster; safe for many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._declared: dict[str, frozenset[str]] = {}
        self._leaving: dict[str, set[str]] = defaultdict(set)
        self._turns: dict[str, threading.Lock] = defaultdict(threading.Lock)

    def declare(self, arn: str, names: Iterable[str]) -> None:
        """Take note of all groups that the program has in a cluster."""
        with self._lock:
            self._declared[arn] = frozenset(names)

    def declared(self, arn: str) -> frozenset[str] | None:
        """Return the groups that the program has in a cluster; None when this run did not look at the cluster."""
        with self._lock:
            return self._declared.get(arn)

    def leaving(self, arn: str) -> frozenset[str]:
        """Return all groups that wait to be deleted."""
        with self._lock:
            return frozenset(self._leaving[arn])

    @contextmanager
    def turn(self, task: Task, arn: str, name: str) -> Iterator[None]:
        """Wait for one's turn to change the cluster; whoever has it may take all that are leaving along."""
        with self._lock:
            self._leaving[arn].add(name)
            lock = self._turns[arn]
        try:
            while not lock.acquire(blocking=False):
                task.progress("waiting for other groups to be deleted")
                task.pause(_TURN_SECONDS)
            try:
                yield
            finally:
                lock.release()
        finally:
            with self._lock:
                self._leaving[arn].discard(name)

"""What one run of the engine knows about clusters' instance groups: declared ones, and those to be deleted.

The engine deletes after it has updated, and a deletion learns nothing about the program. The engine compares the
cluster in every run, and the cluster then records here which groups the program has. The deletion of a group checks
this first.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from hpkit_provider.engine.call import EngineCall

__all__ = ["DeclaredGroups"]

_LOCK_POLL_SECONDS: Final = 0.3


class DeclaredGroups:
    """Groups by the ARN of their cluster; safe for many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._declared: dict[str, frozenset[str]] = {}
        self._deleting: dict[str, set[str]] = defaultdict(set)
        self._cluster_locks: dict[str, threading.Lock] = defaultdict(threading.Lock)

    def declare(self, arn: str, group_names: Iterable[str]) -> None:
        """Record all groups that the program has in a cluster."""
        with self._lock:
            self._declared[arn] = frozenset(group_names)

    def declared(self, arn: str) -> frozenset[str] | None:
        """Return the groups that the program has in a cluster; None if this run didn't compare the cluster."""
        with self._lock:
            return self._declared.get(arn)

    def deleting(self, arn: str) -> frozenset[str]:
        """Return all groups that wait to be deleted."""
        with self._lock:
            return frozenset(self._deleting[arn])

    @contextmanager
    def exclusive(self, call: EngineCall, arn: str, name: str) -> Iterator[None]:
        """Lock the cluster to delete a group; its holder can also delete all groups that wait for it."""
        with self._lock:
            self._deleting[arn].add(name)
            lock = self._cluster_locks[arn]
        try:
            while not lock.acquire(blocking=False):
                call.progress("waiting for other groups to be deleted")
                call.pause(_LOCK_POLL_SECONDS)
            try:
                yield
            finally:
                lock.release()
        finally:
            with self._lock:
                self._deleting[arn].discard(name)

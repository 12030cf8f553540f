"""Quotas that a run is going to shrink, announced by the engine's diffs before any change begins.

The engine runs only so many changes at once (`pulumi up --parallel`), in an order of its own: those that grow may
keep every place while those that would give them room wait for one. So whoever waits may carry a shrink out itself;
the quota's own step finds it done.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Set
from dataclasses import dataclass

from provider.task import Task

__all__ = ["Shrink", "Shrinks"]


@dataclass
class Shrink:
    """One announced shrink; `give` carries it out."""

    name: str
    kinds: frozenset[str]
    resource: str
    give: Callable[[Task], object]
    begun: bool = False
    failure: str = ""


class Shrinks:
    """The announced shrinks of one cluster that have not landed yet, by name of the quota."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[str, Shrink] = {}

    def announce(self, shrink: Shrink) -> None:
        """Take note of a shrink; what was known of that quota is out of date."""
        with self._lock:
            self._open[shrink.name] = shrink

    def begin(self, name: str) -> None:
        """Hear that the quota's own step is under way: nobody else needs to do it."""
        with self._lock:
            if name in self._open:
                self._open[name].begun = True

    def land(self, name: str) -> None:
        """Hear that the quota has shrunk, or is not going to."""
        with self._lock:
            self._open.pop(name, None)

    def fail(self, name: str, reason: str) -> None:
        """Hear that the quota's own step has failed: this run will not make that room any more."""
        with self._lock:
            if name in self._open:
                self._open[name].failure = reason

    def vanish(self, resource: str) -> None:
        """Hear that a quota, known by its ARN, is deleted."""
        with self._lock:
            self._open = {name: shrink for name, shrink in self._open.items() if shrink.resource != resource}

    def before(self, kinds: Set[str]) -> list[Shrink]:
        """Return the shrinks of any of these instance types that have not landed."""
        with self._lock:
            return [shrink for shrink in self._open.values() if shrink.kinds & kinds]

    def claim(self, kinds: Set[str]) -> Shrink | None:
        """Return a shrink whose own step has not begun, for the caller to carry out; each is handed out once."""
        with self._lock:
            for shrink in self._open.values():
                if shrink.kinds & kinds and not shrink.begun:
                    shrink.begun = True
                    return shrink
        return None

"""Quotas that a run is going to decrease, announced by the engine's diffs before any change begins.

The engine runs only a few changes at once (`pulumi up --parallel`), in any order. Increases can occupy every slot while
the decreases that would free capacity for them wait for one. So a waiting increase can carry out a decrease itself; the
quota's regular step then finds it done.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Set
from dataclasses import dataclass

from hpkit_provider.engine.call import EngineCall

__all__ = ["PendingDecrease", "PendingDecreases"]


@dataclass
class PendingDecrease:
    """One announced decrease; `apply` carries it out."""

    name: str
    instance_types: frozenset[str]
    arn: str
    apply: Callable[[EngineCall], object]
    started: bool = False
    failure: str = ""


class PendingDecreases:
    """The announced decreases of one cluster that have not completed yet, by name of the quota."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pending: dict[str, PendingDecrease] = {}

    def announce(self, decrease: PendingDecrease) -> None:
        """Record a decrease; earlier data about that quota is outdated."""
        with self._lock:
            self._pending[decrease.name] = decrease

    def start(self, name: str) -> None:
        """Record that the quota's own step is running, so that no other does it."""
        with self._lock:
            if name in self._pending:
                self._pending[name].started = True

    def complete(self, name: str) -> None:
        """Record that the quota has decreased, or is not going to."""
        with self._lock:
            self._pending.pop(name, None)

    def fail(self, name: str, reason: str) -> None:
        """Record that the quota's own step has failed: this run will not free that capacity any more."""
        with self._lock:
            if name in self._pending:
                self._pending[name].failure = reason

    def deleted(self, arn: str) -> None:
        """Record that a quota is deleted."""
        with self._lock:
            self._pending = {name: decrease for name, decrease in self._pending.items() if decrease.arn != arn}

    def of_types(self, instance_types: Set[str]) -> list[PendingDecrease]:
        """Return the decreases of any of these instance types that have not completed."""
        with self._lock:
            return [decrease for decrease in self._pending.values() if decrease.instance_types & instance_types]

    def claim(self, instance_types: Set[str]) -> PendingDecrease | None:
        """Return a decrease whose own step has not started, for the caller to apply; each is handed out once."""
        with self._lock:
            for decrease in self._pending.values():
                if decrease.instance_types & instance_types and not decrease.started:
                    decrease.started = True
                    return decrease
        return None

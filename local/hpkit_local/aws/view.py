"""The state of an endpoint as its controllers read it, from any thread: documents of all that exists."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from hpkit_local.aws.api import OPERATIONS
from hpkit_local.aws.backend import Backend, Context, Record
from hpkit_local.aws.controllers import Snapshot

__all__ = ["BackendView", "part"]

Part = Callable[[Snapshot, Context], None]
_parts: list[Part] = []


def part(function: Part) -> Part:
    """Register what a service adds to a snapshot, called for each region."""
    _parts.append(function)
    return function


@dataclass(frozen=True)
class BackendView:
    """The view of a backend; while `held`, nothing in it changes."""

    _backend: Backend

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the backend's lock, so that several reads are consistent; callbacks wait meanwhile."""
        with self._backend.locked():
            yield

    @property
    def latency_factor(self) -> float:
        """Return how long changes take: 1 as on AWS, 0 no time."""
        return self._backend.settings.latency_factor

    def snapshot(self) -> Snapshot:
        """Return what exists."""
        existing = Snapshot({}, {}, {}, {}, [], {}, {}, {}, set())
        with self.held():
            for ctx in self.contexts():
                for add in _parts:
                    add(existing, ctx)
        return existing

    def contexts(self) -> Iterator[Context]:
        """Yield the context of the endpoint's region and of others that have records; call it in `held`."""
        regions = dict.fromkeys((self._backend.settings.region, *self._backend.regions))
        return (self._backend.context(region) for region in regions)

    def call(self, region: str, service: str, operation: str, **parameters: Any) -> Record:
        """Call an operation, not from a callback; ServiceError if it is rejected."""
        with self.held():
            self._backend.settle()
            self._backend.touched("own")
            try:
                return OPERATIONS[service, operation](self._backend.context(region), parameters)
            finally:
                self._backend.save()

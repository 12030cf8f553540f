"""The scenario's clock on a real scheduler: after each event, the scheduler becomes idle before the next event.

Nothing can change between two events, so idle hours are skipped.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

from hpkit_whatif.admission import Admitted, Event, Preempted, Workload

__all__ = ["Scheduler", "apart", "run"]

# Far below any value in a scenario, so that no two events happen at the same time.
_SUBMIT_STEP = 1e-4
_RUN_STEP = 1e-6
Tell = Callable[[Event], None]


class Scheduler(Protocol):
    """A running scheduler: workloads go in, decisions come out."""

    def submit(self, workload: Workload) -> None:
        """Add a waiting workload to its queue."""

    def finish(self, name: str) -> None:
        """End a workload that runs."""

    def settle(self) -> list[Admitted | Preempted]:
        """Wait until the scheduler is idle; return its decisions since the last call, in order."""


def apart(workloads: Iterable[Workload]) -> Iterator[Workload]:
    """Return the workloads at distinct times.

    The simulator handles simultaneous events in one cycle, and a real scheduler as they arrive. If all events are
    slightly apart, both make the same decisions.
    """
    for number, workload in enumerate(workloads):
        run = None if workload.run is None else workload.run + number * _RUN_STEP
        yield replace(workload, created=workload.created + number * _SUBMIT_STEP, run=run)


def run(
    scheduler: Scheduler,
    workloads: Iterable[Workload],
    *,
    until: float | None,
    on_event: Tell,
    wait_for: Callable[[float], None] = lambda _time: None,
) -> float:
    """Run workloads, in the order of creation, to their end or until a time; return when the last event was.

    wait_for: called with the time of each event before it happens, and returns when it may.
    """
    return _Clock(scheduler, until, on_event, wait_for).run(iter(workloads))


@dataclass(slots=True)
class _Clock:
    scheduler: Scheduler
    until: float | None
    on_event: Tell
    wait_for: Callable[[float], None]
    now: float = 0.0
    workloads: dict[str, Workload] = field(default_factory=dict)
    running: dict[str, int] = field(default_factory=dict)
    ends: list[tuple[float, int, str]] = field(default_factory=list)
    numbers: itertools.count[int] = field(default_factory=itertools.count)

    def run(self, workloads: Iterator[Workload]) -> float:
        coming = next(workloads, None)
        while True:
            end = self._next_end()
            begin = None if coming is None else coming.created
            times = [each for each in (end, begin) if each is not None]
            if not times or (self.until is not None and min(times) > self.until):
                return self.now
            self.now = min(times)
            self.wait_for(self.now)
            if coming is not None and coming.created == self.now:
                self._submit(coming)
                coming = next(workloads, None)
            else:
                self._finish(heapq.heappop(self.ends)[2])
            for change in self.scheduler.settle():
                self._take_up(change)

    def _next_end(self) -> float | None:
        while self.ends and self.running.get(self.ends[0][2]) != self.ends[0][1]:
            heapq.heappop(self.ends)
        return self.ends[0][0] if self.ends else None

    def _submit(self, workload: Workload) -> None:
        self.workloads[workload.name] = workload
        self.scheduler.submit(workload)
        self.on_event(Event(self.now, "Submitted", workload.name))

    def _finish(self, name: str) -> None:
        del self.running[name], self.workloads[name]
        self.scheduler.finish(name)
        self.on_event(Event(self.now, "Finished", name))

    def _take_up(self, change: Admitted | Preempted) -> None:
        if isinstance(change, Preempted):
            del self.running[change.name]
            self.on_event(Event(self.now, "Preempted", change.name, change.reason, change.by))
            return
        number = self.running[change.name] = next(self.numbers)
        lasts = self.workloads[change.name].run
        if lasts is not None:
            heapq.heappush(self.ends, (self.now + lasts, number, change.name))
        self.on_event(Event(self.now, "Admitted", change.name, pod_sets=change.pod_sets))

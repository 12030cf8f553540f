"""The simulator of Kueue's admission, where it is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from hpkit.extensions import extension
from hpkit.kueue.events import CycleResult, Event
from hpkit.kueue.model import Model, PodSetAssignment, Workload

__all__ = ["Simulator", "simulator"]


class Simulator(Protocol):
    """The simulator's interface for hpkit; `hpkit_whatif.admission.Simulator` documents each method."""

    def run_cycle(self) -> CycleResult:
        """Run one cycle."""

    def run_until_quiet(self) -> CycleResult:
        """Run cycles until nothing changes."""

    def run_clock(self, arrivals: Iterable[Workload], *, on_event: Callable[[Event], None]) -> object:
        """Run the clock until nothing is left to happen."""

    def running(self) -> dict[str, tuple[PodSetAssignment, ...]]:
        """Return the running workloads with their assignments."""


def simulator(model: Model, workloads: Iterable[Workload], *, now: float = 0.0) -> Simulator:
    """Return the simulator of a model with workloads that run or wait; now: seconds since the epoch.

    Raises ToolError, with how to install it, where the simulator is not installed.
    """
    make: Callable[..., Simulator] = extension("simulator")
    return make(model, workloads, now=now)

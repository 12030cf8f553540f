"""Kueue's decisions about workloads, as the simulator and a real Kueue report them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal, Protocol

from hpkit.extensions import extension
from hpkit.kueue.model import Model, PodSetAssignment, Workload

__all__ = ["Admitted", "CycleResult", "Event", "Pending", "Preempted", "simulator"]


@dataclass(frozen=True, slots=True)
class Admitted:
    """A workload that got quota, with its flavors."""

    name: str
    pod_sets: tuple[PodSetAssignment, ...]


@dataclass(frozen=True, slots=True)
class Preempted:
    """A workload that must go: Kueue's reason, and the workload that it's for."""

    name: str
    reason: str
    by: str


@dataclass(frozen=True, slots=True)
class Pending:
    """A workload that waits. reason: Kueue's, None before it was looked at; parked: set aside for now."""

    name: str
    reason: str | None
    parked: bool


@dataclass(slots=True)
class CycleResult:
    """The result of one cycle, or of all until nothing changed.

    flapping: workloads that would be evicted repeatedly.
    """

    admitted: list[Admitted] = field(default_factory=list)
    preempted: list[Preempted] = field(default_factory=list)
    flapping: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a workload, with its time.

    kind: Submitted, Admitted, Preempted, TimedOut, Deactivated or Finished. TimedOut: its pods weren't ready in time;
    Deactivated: and it isn't retried. detail: why it was preempted; by: for whom. pod_sets: the assignment of an
    admitted one.
    """

    time: float
    kind: Literal["Submitted", "Admitted", "Preempted", "TimedOut", "Deactivated", "Finished"]
    workload: str
    detail: str = ""
    by: str = ""
    pod_sets: tuple[PodSetAssignment, ...] = ()


class _Simulator(Protocol):
    """The simulator's interface for hpkit; `hpkit_whatif.admission.Simulator` documents each method."""

    def run_cycle(self) -> CycleResult:
        """Run one cycle."""

    def run_until_quiet(self) -> CycleResult:
        """Run cycles until nothing changes."""

    def run_clock(self, arrivals: Iterable[Workload], *, on_event: Callable[[Event], None]) -> object:
        """Run the clock until nothing is left to happen."""

    def running(self) -> dict[str, tuple[PodSetAssignment, ...]]:
        """Return the running workloads with their assignments."""


def simulator(model: Model, workloads: Iterable[Workload], *, now: float = 0.0) -> _Simulator:
    """Return the simulator of a model with workloads that run or wait; now: seconds since the epoch.

    Raises ToolError, with how to install it, where the simulator is not installed.
    """
    make: Callable[..., _Simulator] = extension("simulator")
    return make(model, workloads, now=now)

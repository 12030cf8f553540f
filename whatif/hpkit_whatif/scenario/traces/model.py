"""What every trace has in common."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

__all__ = ["Shape", "Tally", "TraceTask"]


@dataclass(frozen=True, slots=True)
class TraceTask:
    """A task as a trace has it.

    group: whose it was in the trace's own words: an organization, a virtual cluster, a quality of service. submit: in
    seconds, from where the trace counts. run: seconds. gpus: of a pod, a fraction where pods shared one. place: its
    line. CPUs and memory are left to follow pro rata: the trace's machines had others for each GPU.
    """

    place: str
    name: str
    group: str
    submit: float
    run: float
    pods: int
    gpus: float


@dataclass(frozen=True, slots=True)
class Shape:
    """What the tasks become: pods on an instance type, with at most so many accelerators each."""

    instance_type: str
    accelerators: int


@dataclass(slots=True)
class Tally:
    """What was left out or changed on the way, by reason, with the line where it first was."""

    counts: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)

    def add(self, reason: str, place: str) -> None:
        """Count one."""
        self.counts[reason] += 1
        self.first.setdefault(reason, place)

    def lines(self) -> list[str]:
        """Return a sentence for each reason, the most frequent first."""
        return [f"{reason} ({count:,}; first: {self.first[reason]})" for reason, count in self.counts.most_common()]

"""Types that all traces share."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

__all__ = ["Shape", "Tally", "TraceTask"]


@dataclass(frozen=True, slots=True)
class TraceTask:
    """A task in a trace.

    group: its owner in the trace: an organization, a virtual cluster, a quality of service. submit: seconds since the
    trace's start. run: seconds. gpus: per pod, a fraction if pods shared a GPU. place: its line. CPUs and memory are
    filled in pro rata, because the trace's machines had other ratios to GPUs.
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
    """The target of tasks: pods on an instance type, with a maximum number of accelerators each."""

    instance_type: str
    accelerators: int


@dataclass(slots=True)
class Tally:
    """What was omitted or changed, by reason, with the first line."""

    counts: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)

    def add(self, reason: str, place: str) -> None:
        """Count one."""
        self.counts[reason] += 1
        self.first.setdefault(reason, place)

    def lines(self) -> list[str]:
        """Return a sentence for each reason, the most frequent first."""
        return [f"{reason} ({count:,}; first: {self.first[reason]})" for reason, count in self.counts.most_common()]

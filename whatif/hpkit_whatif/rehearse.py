"""Runs a scenario on a real scheduler: its requests, its clock, and the comparison with the simulator.

The scenario's clock on a real scheduler: after each event, the scheduler becomes idle before the next event. Nothing
can change between two events, so idle hours are skipped.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Protocol

from hpkit.cluster.live.differences import differences
from hpkit.cluster.live.model import Observed
from hpkit.cluster.live.parse import queue_of
from hpkit.plan.model import Plan
from hpkit_whatif.admission import Admitted, Event, PodSetAssignment, Preempted, Workload

__all__ = ["Scheduler", "apart", "event_differences", "object_differences", "policy_request", "quota_requests", "run"]

Document = dict[str, Any]
# Far below any value in a scenario, so that no two events happen at the same time.
_SUBMIT_STEP = 1e-4
_RUN_STEP = 1e-6
Tell = Callable[[Event], None]
Live = Mapping[str, Any]


def quota_requests(plan: Plan) -> list[Document]:
    """Return the parameters of CreateComputeQuota of each team, without cluster, description and tags."""
    return [
        {
            "Name": team.quota_name,
            "ActivationState": team.spec.activation_state,
            "ComputeQuotaTarget": {"TeamName": team.name, "FairShareWeight": team.spec.fair_share_weight},
            "ComputeQuotaConfig": _as_api(team.quota_config),
        }
        for team in plan.teams
    ]


def policy_request(plan: Plan) -> Document | None:
    """Return the SchedulerConfig of CreateClusterSchedulerConfig; None without a policy."""
    policy = plan.policy
    if policy is None:
        return None
    classes = [{"Name": each.name, "Weight": each.weight} for each in policy.priority_classes]
    return {
        "FairShare": policy.fair_share,
        "IdleResourceSharing": policy.idle_resource_sharing,
        **({"PriorityClasses": classes} if classes else {}),
    }


def _as_api(value: Any) -> Any:
    """Return a value whose names begin in upper case."""
    if isinstance(value, dict):
        return {f"{name[0].upper()}{name[1:]}": _as_api(each) for name, each in value.items()}
    return [_as_api(each) for each in value] if isinstance(value, list) else value


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


def object_differences(plan: Plan, objects: Iterable[Live]) -> list[str]:
    """Return where ClusterQueues or WorkloadPriorityClasses, as the API server has them, differ from the plan."""
    by_kind: dict[str, list[Live]] = {}
    for document in objects:
        by_kind.setdefault(document["kind"], []).append(document)
    observed = Observed(
        time=datetime.now(UTC),
        queues=tuple(map(queue_of, by_kind.get("ClusterQueue", ()))),
        priority_classes={each["metadata"]["name"]: each["value"] for each in by_kind.get("WorkloadPriorityClass", ())},
        unread=frozenset({"nodepools"}),
    )
    return list(differences(observed, plan))


def event_differences(real: Iterable[Event], simulated: Iterable[Event]) -> list[str]:
    """Return the differences, one line per task and time; empty if both did the same.

    Compares when tasks are admitted, on which flavors and nodes, and when they are preempted, for which task and why.
    The order of simultaneous events isn't compared, because a scheduler can decide them in one cycle or in two.
    """
    ours, theirs = _by_moment(simulated), _by_moment(real)
    return [
        f"{moment[1]} at {_clock(moment[0])}: Kueue {_describe(theirs.get(moment))}, simulated: "
        f"{_describe(ours.get(moment))}"
        for moment in sorted(ours.keys() | theirs.keys())
        if ours.get(moment) != theirs.get(moment)
    ]


def _by_moment(events: Iterable[Event]) -> dict[tuple[int, str], list[str]]:
    events_by_moment: dict[tuple[int, str], list[str]] = {}
    for event in events:
        if event.kind != "Submitted":
            events_by_moment.setdefault((round(event.time), event.workload), []).append(_words(event))
    return events_by_moment


def _words(event: Event) -> str:
    if event.kind == "Preempted":
        return f"preempts it for {event.by or 'nobody'} ({event.detail})"
    if event.kind == "Finished":
        return "lets it end"
    return f"admits it on {', '.join(map(_place, event.pod_sets)) or 'nothing'}"


def _place(assignment: PodSetAssignment) -> str:
    flavors = "+".join(sorted(set(assignment.flavors.values())))
    nodes = " ".join(f"{name}×{pods}" for name, pods in sorted(assignment.domains))
    return f"{assignment.count} × {flavors}" + (f" ({nodes})" if nodes else "")


def _describe(words: Sequence[str] | None) -> str:
    return " and ".join(words) if words else "ignores it"


def _clock(seconds: int) -> str:
    hours, rest = divmod(seconds, 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}"

"""Finds differences between a scheduler and the simulator, event by event."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hpkit_whatif.admission import Event, PodSetAssignment

__all__ = ["event_differences"]


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

"""Divides the instance-hours of a cluster among its teams and tasks.

At each moment, the instances of a type are: used within the team's quota, borrowed, idle quota, or unallocated.
Tasks can reserve more than there are instances, while nodes start; then all of them share the existing ones.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import NamedTuple

from hpkit.cluster.usage.history import History, TaskSpan

__all__ = ["Hours", "TeamHours", "account"]

# Instances are counted in whole billionths, so that sums over many events stay exact.
_UNIT = 10**9
_HOUR = 3600.0


@dataclass(slots=True)
class TeamHours:
    """A team's instance-hours of a type. lent: idle quota that others used, in proportion to the idle quota of all."""

    own: float = 0.0
    borrowed: float = 0.0
    lent: float = 0.0
    idle: float = 0.0


@dataclass(frozen=True, slots=True)
class Hours:
    """Instance-hours of one instance type. total = the teams' own, borrowed and idle hours + unallocated.

    tasks: hours of each admission. starting: hours that tasks reserved without instances, which aren't in total.
    """

    instance_type: str
    total: float
    unallocated: float
    starting: float
    teams: Mapping[str, TeamHours]
    tasks: Sequence[tuple[TaskSpan, float]]


def account(history: History, *, begin: float, end: float) -> list[Hours]:
    """Return the instance-hours of each instance type between two times, in seconds since 1970."""
    types = {node.instance_type for node in history.nodes} | {task.instance_type for task in history.tasks}
    events: dict[str, list[_Event]] = {name: [] for name in types}
    for node in history.nodes:
        first, last = max(begin, node.begin), end if node.end is None else min(end, node.end)
        if first < last:
            events[node.instance_type] += _Event(first, "nodes", _UNIT), _Event(last, "nodes", -_UNIT)
    for number, task in enumerate(history.tasks):
        first, last = max(begin, task.begin), end if task.end is None else min(end, task.end)
        if first < last and task.instances:
            amount = round(task.instances * _UNIT)
            events[task.instance_type] += (
                _Event(first, "used", amount, task.team, number),
                _Event(last, "used", -amount, task.team, number),
            )
    for name in types:
        events[name] += _quota_changes(history, name, begin, end)
    by_time = {name: sorted(events[name], key=itemgetter(0)) for name in sorted(types)}
    return [_of_type(name, changes, history, begin, end) for name, changes in by_time.items()]


class _Event(NamedTuple):
    """A change of a type's nodes, of a team's quota, or of what it uses; task: the number of the admission."""

    time: float
    what: str
    change: int
    team: str = ""
    task: int = -1


def _quota_changes(history: History, instance_type: str, begin: float, end: float) -> Iterator[_Event]:
    """Yield changes of quotas; those of the first reading also apply before it."""
    current: dict[str, int] = {}
    first = min(history.read, default=end)
    for span in history.quotas:
        is_first = span.begin <= first
        if span.instance_type == instance_type and (is_first or span.begin < end):
            amount = round(span.instances * _UNIT)
            moment = begin if is_first else max(begin, span.begin)
            yield _Event(moment, "quota", amount - current.get(span.team, 0), span.team)
            current[span.team] = amount


@dataclass(slots=True)
class _Team:
    """What a team uses and has now, how much of both is borrowed and idle, and its hours until the last change."""

    used: int = 0
    quota: int = 0
    borrowed: int = 0
    idle: int = 0
    since: tuple[float, float, float] = (0.0, 0.0, 0.0)
    hours: TeamHours = field(default_factory=TeamHours)

    def until(self, backed: float, lent: float, idle: float) -> None:
        """Add the hours since the last change; each is the integral of the share of it that counts."""
        since, total = self.since, self.hours
        hours = (backed - since[0]) / _UNIT
        total.own += (self.used - self.borrowed) * hours
        total.borrowed += self.borrowed * hours
        total.lent += self.idle * (lent - since[1]) / _UNIT
        total.idle += self.idle * (idle - since[2]) / _UNIT
        self.since = (backed, lent, idle)

    def change(self, *, used: int = 0, quota: int = 0) -> None:
        """Change what it uses or has."""
        self.used += used
        self.quota += quota
        over = self.used - self.quota
        self.borrowed, self.idle = (over, 0) if over > 0 else (0, -over)


def _of_type(name: str, events: list[_Event], history: History, begin: float, end: float) -> Hours:
    """Integrate over the events of one type; each takes the same time, however many teams there are.

    backed, lent, idle: integrals of the part of used quota that instances back, of idle quota that others use, and of
    idle quota that nobody uses.
    """
    teams: defaultdict[str, _Team] = defaultdict(_Team)
    nodes = used = borrowed = idle_quota = 0
    backed = lent = idle = total = unallocated = starting = 0.0
    started: dict[int, float] = {}
    tasks: list[tuple[TaskSpan, float]] = []
    now = begin
    for event in [*events, _Event(end, "end", 0)]:
        hours, now = (event.time - now) / _HOUR, event.time
        if hours > 0:
            share = 1.0 if used <= nodes else nodes / used
            lent_quota = min(share * borrowed, idle_quota)
            share_lent = lent_quota / idle_quota if idle_quota else 0.0
            # Rounding can make the difference negative.
            free, rest = max(0.0, nodes - share * used), idle_quota - lent_quota
            share_idle = 1.0 if rest <= free else free / rest
            backed += share * hours
            lent += share_lent * hours
            idle += (1 - share_lent) * share_idle * hours
            total += nodes / _UNIT * hours
            unallocated += max(0.0, free - rest * share_idle) / _UNIT * hours
            starting += (1 - share) * used / _UNIT * hours
        if event.what == "nodes":
            nodes += event.change
        elif event.team:
            team = teams[event.team]
            team.until(backed, lent, idle)
            borrowed, idle_quota = borrowed - team.borrowed, idle_quota - team.idle
            if event.what == "quota":
                team.change(quota=event.change)
            else:
                team.change(used=event.change)
                used += event.change
            borrowed, idle_quota = borrowed + team.borrowed, idle_quota + team.idle
        if event.task in started:
            task = history.tasks[event.task]
            tasks.append((task, task.instances * (backed - started[event.task])))
        elif event.task >= 0:
            started[event.task] = backed
    for team in teams.values():
        team.until(backed, lent, idle)
    return Hours(name, total, unallocated, starting, {key: team.hours for key, team in teams.items()}, tasks)

"""The result of a scenario as data: per task, per team, for the cluster, and over time.

All amounts are in instances: a task counts as the part of its instance type that it uses, by its most used resource.
Times are seconds from the scenario's start.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Final, TypedDict

__all__ = [
    "QUEUED",
    "Admission",
    "ClusterReport",
    "Eviction",
    "Report",
    "Series",
    "Simulation",
    "Skipped",
    "TaskReport",
    "TeamReport",
]

QUEUED: Final = "Queued"
"""Instead of a reason of Kueue's, of a task that it has not looked at yet."""
_WORDS: Final = {
    QUEUED: "other tasks in its queue come first",
    "WaitingForQuota": "too little quota is free",
    "WaitingForPreemptedWorkloads": "the tasks that it preempts are still stopping",
    "PodsReadyTimeout": "its pods weren't ready in time, and Kueue retries it later",
    "WaitingForPodsReady": "the pods of admitted tasks aren't all ready yet (blockAdmission)",
    "TopologyPlacementFailed": "its pods don't fit on nodes that are close enough",
    "ExceedsMaxQuota": "it requests more than its team can ever have",
    "NoMatchingFlavor": "its team has no quota for what it requests",
}


class AdmissionData(TypedDict):
    """When a task was admitted; nodes: pods by node."""

    time: float
    borrowed: Annotated[dict[str, float], "Instances borrowed from each team; the empty name: that no team reserved."]
    nodes: dict[str, int]


class EvictionData(TypedDict):
    """A preemption."""

    time: float
    by: str
    byTeam: str
    reason: str
    lost: Annotated[float, "Seconds of work."]


class TaskData(TypedDict):
    """A task; times are seconds from the start of the scenario."""

    name: str
    team: str
    instanceType: str
    instances: float
    priority: int
    submit: float
    admitted: float | None
    finished: float | None
    wait: float
    admissions: list[AdmissionData]
    preempted: list[EvictionData]
    lost: float
    never: Annotated[str | None, "Why it can never run."]
    waitsFor: Annotated[str | None, "Kueue's reason, if it waits at the end."]


class TaskCounts(TypedDict):
    """A team's tasks by result."""

    submitted: int
    admitted: int
    finished: int
    waiting: int
    never: int


class InstanceHours(TypedDict):
    """Instance-hours of a team."""

    used: float
    borrowed: float
    lent: float
    lost: float
    idleGuarantee: float


class Waits(TypedDict):
    """Waits in seconds."""

    median: float
    p95: float
    max: float


class MostInstances(TypedDict):
    """The most instances at any time."""

    used: float
    waitedFor: float


class TeamData(TypedDict):
    """A team's tasks together."""

    name: str
    guarantee: float
    fairShareWeight: int
    tasks: TaskCounts
    instanceHours: InstanceHours
    service: Annotated[float | None, "Part of the requested instance-hours that ran and wasn't lost; null: no tasks."]
    wait: Waits
    mostInstances: MostInstances
    preempted: int
    preempts: int


class ClusterData(TypedDict):
    """The cluster as a whole."""

    capacity: float
    utilization: float
    idleGuarantee: float
    waitedInstanceHours: float
    waitCostUsd: Annotated[float | None, "null: a price is unknown."]
    waitCostPricedIn: list[str]
    fairness: float
    preemptions: int
    flapping: Annotated[list[str], "Tasks that are preempted repeatedly."]


class SkippedData(TypedDict):
    """A task that was left out."""

    place: str
    name: str
    team: str
    why: str


class TeamSeries(TypedDict):
    """Average instances in each step."""

    used: list[float]
    waiting: list[float]


class Timeline(TypedDict):
    """Instances over time; step: seconds."""

    step: float
    teams: dict[str, TeamSeries]


class Simulation(TypedDict):
    """The results of a scenario's tasks on a stack."""

    stack: str
    scenario: str
    end: float
    warnings: list[str]
    cluster: ClusterData
    teams: list[TeamData]
    tasks: list[TaskData]
    omittedTasks: int
    lateTasks: int
    skippedTasks: int
    skipped: list[SkippedData]
    timeline: Timeline


@dataclass(frozen=True, slots=True)
class Eviction:
    """A preemption: when, for which task of which team, Kueue's reason, and the seconds of work that it cost."""

    time: float
    by: str
    by_team: str
    reason: str
    lost: float


@dataclass(frozen=True, slots=True)
class Admission:
    """An admission of a task. nodes: pods by node, if topology places them.

    borrowed: number of instances per lender ("" for unreserved ones), by the most used resource. Kueue doesn't record
    the lender: here it's the team with the most idle quota, and loans never exceed a team's idle quota.
    """

    time: float
    borrowed: dict[str, float] = field(default_factory=dict)
    nodes: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class TaskReport:
    """The result of a task.

    admissions: one more after each preemption, none if it never ran. wait: all time in the queue. never: why it can
    never run, or won't, because nothing more happens. waits_for: Kueue's reason, if it waits at the end.
    """

    name: str
    team: str
    instance_type: str
    instances: float
    priority: int
    submit: float
    admissions: list[Admission] = field(default_factory=list)
    finished: float | None = None
    wait: float = 0.0
    evictions: list[Eviction] = field(default_factory=list)
    never: str | None = None
    waits_for: str | None = None

    @property
    def admitted(self) -> float | None:
        """Return when it was first admitted, None if it never was."""
        return self.admissions[0].time if self.admissions else None

    @property
    def why(self) -> str:
        """Return as text why it doesn't run; empty if it does or did."""
        if self.never is not None:
            return f"never runs: it {self.never}"
        return "" if self.waits_for is None else f"waits: {reason_in_words(self.waits_for)}"

    @property
    def lost(self) -> float:
        """Return the seconds of work that preemptions cost it."""
        return sum(each.lost for each in self.evictions)

    def as_dict(self) -> TaskData:
        """Return it as JSON has it."""
        return {
            "name": self.name,
            "team": self.team,
            "instanceType": self.instance_type,
            "instances": _round(self.instances),
            "priority": self.priority,
            "submit": self.submit,
            "admitted": self.admitted,
            "finished": self.finished,
            "wait": self.wait,
            "admissions": [
                {
                    "time": admission.time,
                    "borrowed": {team: _round(amount) for team, amount in admission.borrowed.items()},
                    "nodes": dict(admission.nodes),
                }
                for admission in self.admissions
            ],
            "preempted": [
                {"time": e.time, "by": e.by, "byTeam": e.by_team, "reason": e.reason, "lost": e.lost}
                for e in self.evictions
            ],
            "lost": self.lost,
            "never": self.never,
            "waitsFor": self.waits_for,
        }


@dataclass(frozen=True, slots=True)
class TeamReport:
    """The results of a team's tasks.

    guarantee: its quota. used, borrowed, lent, lost, idle: instance-hours; lent is what others borrowed from it, idle
    its unused quota. never_tasks: the names of tasks that never run. service: of the instance-hours during which its
    tasks waited or ran, the part during which they ran and kept their work; None without any. used_most, waiting_most:
    the most instances that were used, and that tasks waited for, at any time.
    """

    name: str
    guarantee: float
    weight: int
    submitted: int
    admitted: int
    finished: int
    waiting: int
    never_tasks: tuple[str, ...]
    used: float
    borrowed: float
    lent: float
    lost: float
    idle: float
    service: float | None
    wait_median: float
    wait_p95: float
    wait_most: float
    used_most: float
    waiting_most: float
    evicted: int
    evicts: int

    @property
    def never(self) -> int:
        """Return how many of its tasks can never run."""
        return len(self.never_tasks)

    def as_dict(self) -> TeamData:
        """Return it as JSON has it."""
        return {
            "name": self.name,
            "guarantee": _round(self.guarantee),
            "fairShareWeight": self.weight,
            "tasks": {
                "submitted": self.submitted,
                "admitted": self.admitted,
                "finished": self.finished,
                "waiting": self.waiting,
                "never": self.never,
            },
            "instanceHours": {
                "used": _round(self.used),
                "borrowed": _round(self.borrowed),
                "lent": _round(self.lent),
                "lost": _round(self.lost),
                "idleGuarantee": _round(self.idle),
            },
            "service": None if self.service is None else _round(self.service),
            "wait": {"median": self.wait_median, "p95": self.wait_p95, "max": self.wait_most},
            "mostInstances": {"used": _round(self.used_most), "waitedFor": _round(self.waiting_most)},
            "preempted": self.evicted,
            "preempts": self.evicts,
        }


@dataclass(frozen=True, slots=True)
class ClusterReport:
    """The cluster as a whole.

    capacity: instances. utilization: the part of it that was used over time; idle_guarantee: the part of the teams'
    quotas that no one used. waited: instance-hours that tasks waited for; wait_cost: their list price in US dollars,
    None if a price isn't known; priced_in: other regions whose prices replace those of the stack's region; prices: all
    regions whose prices are used, with their dates. fairness: Jain's index of the teams' service, 1 if all are equal.
    """

    capacity: float
    utilization: float
    idle_guarantee: float
    waited: float
    wait_cost: float | None
    priced_in: tuple[str, ...]
    prices: str
    fairness: float
    preemptions: int
    flapping: tuple[str, ...]

    def as_dict(self) -> ClusterData:
        """Return it as JSON has it."""
        return {
            "capacity": _round(self.capacity),
            "utilization": _round(self.utilization),
            "idleGuarantee": _round(self.idle_guarantee),
            "waitedInstanceHours": _round(self.waited),
            "waitCostUsd": None if self.wait_cost is None else round(self.wait_cost, 2),
            "waitCostPricedIn": list(self.priced_in),
            "fairness": _round(self.fairness),
            "preemptions": self.preemptions,
            "flapping": list(self.flapping),
        }


@dataclass(frozen=True, slots=True)
class Series:
    """Averages over steps of equal length: instances in use, and instances that tasks wait for."""

    used: tuple[float, ...]
    waiting: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Skipped:
    """A task that was left out: where it was written, and why it can never run, as the rest of a sentence."""

    place: str
    name: str
    team: str
    why: str

    def as_dict(self) -> SkippedData:
        """Return it as JSON has it."""
        return {"place": self.place, "name": self.name, "team": self.team, "why": f"It {self.why}."}


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a scenario on a stack.

    tasks: the first ones, in the order of submission; `omitted` is the number of others. step: seconds per step of the
    series, which are by team. warnings: why the stack couldn't behave as reported. late: number of tasks submitted
    after the scenario's end, which aren't in any figure. impossible: number of omitted tasks that can never run;
    skipped: the first of them.
    """

    stack: str
    scenario: str
    end: float
    cluster: ClusterReport
    teams: tuple[TeamReport, ...]
    tasks: tuple[TaskReport, ...]
    omitted: int
    step: float
    series: dict[str, Series]
    warnings: tuple[str, ...] = ()
    late: int = 0
    impossible: int = 0
    skipped: tuple[Skipped, ...] = ()

    def team(self, name: str) -> TeamReport:
        """Return a team's part; KeyError for one that the stack lacks."""
        for team in self.teams:
            if team.name == name:
                return team
        raise KeyError(name)

    def as_dict(self) -> Simulation:
        """Return it as JSON has it."""
        return {
            "stack": self.stack,
            "scenario": self.scenario,
            "end": self.end,
            "warnings": list(self.warnings),
            "cluster": self.cluster.as_dict(),
            "teams": [team.as_dict() for team in self.teams],
            "tasks": [task.as_dict() for task in self.tasks],
            "omittedTasks": self.omitted,
            "lateTasks": self.late,
            "skippedTasks": self.impossible,
            "skipped": [each.as_dict() for each in self.skipped],
            "timeline": {
                "step": self.step,
                "teams": {
                    name: {"used": [_round(v) for v in series.used], "waiting": [_round(v) for v in series.waiting]}
                    for name, series in self.series.items()
                },
            },
        }


def reason_in_words(reason: str) -> str:
    """Return the meaning of a Kueue reason as text."""
    return _WORDS.get(reason, reason)


def _round(value: float) -> float:
    return round(value, 4)

"""The result of a scenario as data: per task, per team, for the cluster, and over time.

All amounts are in instances: a task counts as the part of its instance type that it uses, by its most used resource.
Times are seconds from the scenario's start.
"""

from dataclasses import dataclass, field
from typing import Annotated, Final

from pydantic import Field, PlainSerializer, computed_field

from hpkit.text.document import Document

__all__ = [
    "PAUSED",
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

Figure = Annotated[float, PlainSerializer(lambda value: round(value, 4), return_type=float)]
QUEUED: Final = "Queued"
"""Instead of a reason of Kueue's, of a task that it has not looked at yet."""
PAUSED: Final = "Paused"
"""Instead of a reason of Kueue's, of a task whose team is paused."""
_WORDS: Final = {
    QUEUED: "other tasks in its queue come first",
    PAUSED: "its team is paused (activationState: Disabled)",
    "WaitingForQuota": "too little quota is free",
    "WaitingForPreemptedWorkloads": "the tasks that it preempts are still stopping",
    "PodsReadyTimeout": "its pods weren't ready in time, and Kueue retries it later",
    "WaitingForPodsReady": "the pods of admitted tasks aren't all ready yet (blockAdmission)",
    "TopologyPlacementFailed": "its pods don't fit on nodes that are close enough",
    "ExceedsMaxQuota": "it requests more than its team can ever have",
    "NoMatchingFlavor": "its team has no quota for what it requests",
}


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

    borrowed: number of instances per lender ("" for unallocated ones), by the most used resource. Kueue doesn't record
    the lender: here it's the team with the most idle quota, and loans never exceed a team's idle quota.
    """

    time: float
    borrowed: dict[str, Figure] = field(default_factory=dict)
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
    instances: Figure
    priority: int
    submit: float
    admissions: list[Admission] = field(default_factory=list)
    finished: float | None = None
    wait: float = 0.0
    evictions: list[Eviction] = field(default_factory=list)
    never: str | None = None
    waits_for: str | None = None

    @computed_field  # type: ignore[prop-decorator]
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

    @computed_field  # type: ignore[prop-decorator]
    @property
    def lost(self) -> float:
        """Return the seconds of work that preemptions cost it."""
        return sum(each.lost for each in self.evictions)


@dataclass(frozen=True, slots=True)
class TeamReport:
    """The results of a team's tasks.

    quota: in instances. used, borrowed, lent, lost, idle: instance-hours; lent is what others borrowed from it, idle
    its unused quota. never_tasks: the names of tasks that never run. service: of the instance-hours during which its
    tasks waited or ran, the part during which they ran and kept their work; None without any. used_most, waiting_most:
    the most instances that were used, and that tasks waited for, at any time.
    """

    name: str
    quota: Figure
    fair_share_weight: int
    submitted: int
    admitted: int
    finished: int
    waiting: int
    never_tasks: tuple[str, ...]
    used: Figure
    borrowed: Figure
    lent: Figure
    lost: Figure
    idle: Figure
    service: Figure | None
    wait_median: float
    wait_p95: float
    wait_most: float
    used_most: Figure
    waiting_most: Figure
    evicted: int
    evicts: int

    @property
    def never(self) -> int:
        """Return how many of its tasks can never run."""
        return len(self.never_tasks)


@dataclass(frozen=True, slots=True)
class ClusterReport:
    """The cluster as a whole.

    capacity: instances. utilization: the part of it that was used over time; idle_quota: the part of the teams'
    quotas that no one used. waited: instance-hours that tasks waited for; wait_cost: their list price in US dollars,
    None if a price isn't known; priced_in: other regions whose prices replace the stack's region; prices: all
    regions whose prices are used, with their dates. fairness: Jain's index of the teams' service, 1 if all are equal.
    """

    capacity: Figure
    utilization: Figure
    idle_quota: Figure
    waited: Figure
    wait_cost: Figure | None
    priced_in: tuple[str, ...]
    prices: str
    fairness: Figure
    preemptions: int
    flapping: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Series:
    """Averages over steps of equal length: instances in use, and instances that tasks wait for."""

    used: tuple[Figure, ...]
    waiting: tuple[Figure, ...]


@dataclass(frozen=True, slots=True)
class Skipped:
    """A task that was left out: where it was written, and why it can never run, as the rest of a sentence."""

    place: str
    name: str
    team: str
    why: str


class Simulation(Document):
    """The results of a scenario's tasks on a stack."""

    stack: str
    scenario: str
    end: float
    warnings: list[str]
    cluster: ClusterReport
    teams: list[TeamReport]
    tasks: list[TaskReport]
    omitted_tasks: int = Field(validation_alias="omitted")
    late_tasks: int = Field(validation_alias="late")
    skipped_tasks: int = Field(validation_alias="impossible")
    skipped: list[Skipped]
    step: float = Field(description="Seconds per step of the series.")
    series: dict[str, Series]


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
        """Return a team's part; KeyError if the stack has no such team."""
        for team in self.teams:
            if team.name == name:
                return team
        raise KeyError(name)


def reason_in_words(reason: str) -> str:
    """Return the meaning of a Kueue reason as text."""
    return _WORDS.get(reason, reason)

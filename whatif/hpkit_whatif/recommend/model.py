"""A recommendation and its goals, as data."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Final, Literal, TypeVar

from pydantic import Field, PlainSerializer, computed_field

from hpkit.errors import SelectionError
from hpkit.text.document import Document
from hpkit.text.formatting import figure, percent, span
from hpkit.text.spelling import hint
from hpkit_whatif.scenario.model import duration
from hpkit_whatif.simulate.report import Report, TeamReport

__all__ = [
    "CapacityChange",
    "Confidence",
    "Goal",
    "GoalResult",
    "Recommendation",
    "TeamResult",
    "ValueChange",
    "parse_goal",
]

Measure = Literal["p50", "p95", "max", "preemptions", "lost", "utilization", "fairness"]
GRAMMAR: Final = (
    "p50|p95|max wait of TEAM|all < DURATION",
    "preemptions of TEAM|all < N",
    "lost work of TEAM|all < N (instance-hours)",
    "utilization > N%",
    "fairness > N",
)
T = TypeVar("T")
"""Forms of a goal. `<=` and `>=` are accepted too."""

_GOAL = re.compile(
    r"(?:(?P<quantile>p50|p95|max)\s+wait\s+of\s+(?P<waiting>\S+)"
    r"|(?P<what>preemptions|lost\s+work)\s+of\s+(?P<whose>\S+)"
    r"|(?P<cluster>utili[sz]ation|fairness))"
    r"\s*(?P<sign><=|>=|<|>)\s*(?P<limit>\S.*?)\s*\Z"
)
_NUMBER = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?)\s*(?P<unit>%|h|instance-hours?)?\Z")
# By how much a figure may miss a limit of nothing before that counts as a whole miss.
_SCALES: Final[dict[Measure, float]] = {
    "p50": 60.0, "p95": 60.0, "max": 60.0, "preemptions": 1.0, "lost": 1.0, "utilization": 0.01, "fairness": 0.01,
}  # fmt: skip
_LEAST_MISS: Final = 1e-6
# So much worse than a goal that is missed by its limit is a task that can never run.
_NEVER_MISS: Final = 1000.0
_WAITS: Final[tuple[Measure, ...]] = ("p50", "p95", "max")


@dataclass(frozen=True, slots=True)
class Goal:
    """A goal for a run.

    team: None for all. limit: seconds of waiting, number of preemptions, instance-hours of lost work, or a fraction for
    utilization and fairness. upper: whether the limit is a maximum; strict: whether the limit itself misses the goal.
    """

    text: str
    measure: Measure
    team: str | None
    limit: float
    upper: bool
    strict: bool

    def value(self, report: Report) -> float:
        """Return a run's figure; for waits of all teams, the worst team's; for other values of all teams, the sum.

        A task that can never run waits forever, even if the goal is about a percentile of its team's tasks.
        """
        if self.measure == "utilization":
            return report.cluster.utilization
        if self.measure == "fairness":
            return report.cluster.fairness
        values = [_of_team(self.measure, team) for team in self._about(report)]
        return max(values, default=0.0) if self.measure in _WAITS else sum(values)

    def met(self, value: float) -> bool:
        """Return whether a figure meets the goal."""
        if value == self.limit:
            return not self.strict
        return (value < self.limit) == self.upper

    def miss(self, value: float) -> float:
        """Return by how much of the limit a figure misses the goal; 0 where it is met."""
        if self.met(value):
            return 0.0
        if value == math.inf:
            return _NEVER_MISS
        return max(_LEAST_MISS, abs(value - self.limit) / max(self.limit, _SCALES[self.measure]))

    def missed_by(self, report: Report) -> float:
        """Return by how much a run misses the goal: the more of its tasks can never run, the more."""
        never = sum(team.never for team in self._about(report)) if self.measure in _WAITS else 0
        return self.miss(self.value(report)) * max(1, never)

    def _about(self, report: Report) -> list[TeamReport]:
        return [team for team in report.teams if self.team in (None, team.name)]

    def shown(self, value: float) -> str:
        """Write a figure in the goal's unit."""
        if self.measure in _WAITS:
            return "never" if value == math.inf else span(value)
        if self.measure == "utilization":
            return percent(value)
        return f"{value:.2f}" if self.measure == "fairness" else figure(value)


def _of_team(measure: Measure, team: TeamReport) -> float:
    if team.never and measure in _WAITS:
        return math.inf
    figures = {
        "p50": team.wait_median,
        "p95": team.wait_p95,
        "max": team.wait_most,
        "preemptions": float(team.evicted),
        "lost": team.lost,
    }
    return figures[measure]


def parse_goal(text: str, teams: Iterable[str]) -> Goal:
    """Return a parsed goal. Raises SelectionError for an invalid goal, an impossible goal, or a missing team."""
    match = _GOAL.match(" ".join(text.split()))
    if match is None:
        raise SelectionError(f"`{text}` isn't a goal. To fix: use one of: {'; '.join(GRAMMAR)}")
    measure = _measure(match)
    team = _team(text, match["waiting"] or match["whose"], list(teams))
    upper = match["sign"].startswith("<")
    if upper == (measure in ("utilization", "fairness")):
        right = ">" if upper else "<"
        raise SelectionError(f"`{text}`: this goal would ask for a worse result. To fix: write `{right}`")
    goal = Goal(
        " ".join(text.split()), measure, team, _limit(text, measure, match["limit"]), upper, "=" not in match["sign"]
    )
    _reject_unreachable(goal)
    return goal


def _measure(match: re.Match[str]) -> Measure:
    if match["quantile"]:
        quantiles: dict[str, Measure] = {"p50": "p50", "p95": "p95", "max": "max"}
        return quantiles[match["quantile"]]
    if match["what"]:
        return "preemptions" if match["what"] == "preemptions" else "lost"
    return "fairness" if match["cluster"] == "fairness" else "utilization"


def _team(text: str, name: str | None, teams: list[str]) -> str | None:
    # If a team is named `all`, the goal is about that team.
    if name is None or (name == "all" and name not in teams):
        return None
    if name not in teams:
        raise SelectionError(f"`{text}`: there is no team {name}; {hint(name, teams)}")
    return name


def _limit(text: str, measure: Measure, written: str) -> float:
    if measure in _WAITS:
        try:
            return duration(written)
        except ValueError as error:
            raise SelectionError(f"`{text}`: {error}") from None
    number = _NUMBER.match(written)
    units = {"utilization": ("%",), "lost": (None, "h", "instance-hour", "instance-hours")}.get(measure, (None,))
    if number is None or number["unit"] not in units:
        expected = {"utilization": "a percentage such as 80%", "lost": "instance-hours such as 2.5"}.get(
            measure, "a number such as 0.9" if measure == "fairness" else "a number such as 3"
        )
        raise SelectionError(f"`{text}`: `{written}` must be {expected}")
    return float(number["number"]) / (100 if measure == "utilization" else 1)


def _reject_unreachable(goal: Goal) -> None:
    """Raise SelectionError for a goal that no run can meet, regardless of the policy."""
    if goal.upper:
        if goal.strict and goal.limit == 0:
            raise SelectionError(f"`{goal.text}`: the value can't be less than 0. To fix: write `<=`")
        return
    most = "100%" if goal.measure == "utilization" else "1"
    if goal.limit > 1:
        raise SelectionError(f"`{goal.text}`: the value can't be more than {most}")
    if goal.strict and goal.limit == 1:
        raise SelectionError(f"`{goal.text}`: the value can't be more than {most}. To fix: write `>=`")


def _pair(pair: tuple[T, T]) -> dict[str, T]:
    """Return a value now, and as recommended."""
    return {"before": pair[0], "after": pair[1]}


_Pair = Annotated[tuple[float, float], PlainSerializer(_pair, return_type=dict[str, float])]
# JSON has no number for a wait without end.
_Figure = Annotated[
    float, PlainSerializer(lambda value: None if value == math.inf else value, return_type=float | None)
]


@dataclass(frozen=True, slots=True)
class ValueChange:
    """A value of the file to change; path as `--vary` writes it."""

    path: str
    label: str
    before: int | str
    after: int | str


@dataclass(frozen=True, slots=True)
class GoalResult:
    """A goal, and the values that it is about: in each draw, as the file is and as recommended."""

    goal: Annotated[Goal, PlainSerializer(lambda goal: goal.text, return_type=str)]
    before: tuple[_Figure, ...]
    after: tuple[_Figure, ...]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def met(self) -> int:
        """Return in how many draws it is met as recommended."""
        return sum(self.goal.met(value) for value in self.after)


@dataclass(frozen=True, slots=True)
class TeamResult:
    """A team's gains and losses: means over the draws; waits in seconds, used and lost in instance-hours.

    never: tasks that can never run.
    """

    name: str
    quota: _Pair
    service: Annotated[tuple[float | None, float | None], PlainSerializer(_pair, return_type=dict[str, float | None])]
    wait_median: _Pair
    wait_p95: _Pair
    used: _Pair
    lost: _Pair
    preempted: _Pair
    never: _Pair


@dataclass(frozen=True, slots=True)
class Confidence:
    """The confidence in the result: how many draws meet every goal, among the searched ones and among others.

    drawn: whether the scenario has random draws; otherwise every draw is the same, and there is one.
    """

    drawn: bool
    met: int
    draws: int
    other_met: int
    other_draws: int


@dataclass(frozen=True, slots=True)
class CapacityChange:
    """The least expensive instances found that meet the goals; without changes, the existing ones.

    monthly: additional cost in US dollars a month on demand (negative: savings); None if a price isn't known.
    priced_in: other regions whose prices replace the stack's region. prices: all regions whose prices are
    used, with their dates. compared: whether the prices of all types that could be added or removed are known, so that
    it's the least expensive. teams: each team's gains and losses compared with the current file.
    """

    met: bool
    changes: tuple[ValueChange, ...]
    teams: tuple[TeamResult, ...]
    instances: tuple[tuple[str, int, int], ...]
    monthly: Decimal | None
    priced_in: tuple[str, ...]
    prices: str
    compared: bool
    warnings: tuple[str, ...]
    texts: Annotated[Mapping[str, str], Field(exclude=True)]
    patch: str


class Recommendation(Document):
    """Values that meet the goals, or come nearest to them.

    texts: the changed files as recommended, by name; patch: the change to them. tried: number of simulated policies;
    rejected: number of policies that the validator rejects. fixed: values that couldn't be varied, with the reason.
    warnings: new warnings of the validator.
    """

    stack: str
    scenario: str
    file: str
    met: bool
    goals: tuple[GoalResult, ...]
    changes: tuple[ValueChange, ...]
    teams: tuple[TeamResult, ...]
    cluster: Annotated[
        tuple[dict[str, float], dict[str, float]], PlainSerializer(_pair, return_type=dict[str, dict[str, float]])
    ]
    confidence: Confidence
    capacity: CapacityChange | None
    tried: int
    rejected: int
    fixed: tuple[str, ...]
    warnings: tuple[str, ...]
    texts: Annotated[Mapping[str, str], Field(exclude=True)]
    patch: str


def team_results(before: tuple[Report, ...], after: tuple[Report, ...]) -> tuple[TeamResult, ...]:
    """Return each team's gains and losses between two policies, with the same tasks in each draw."""
    return tuple(_team_result(team.name, before, after) for team in before[0].teams)


def _team_result(name: str, before: tuple[Report, ...], after: tuple[Report, ...]) -> TeamResult:
    sides = (before, after)
    waits = [_mean_wait(side, name) for side in sides]
    services = [_mean([report.team(name).service for report in side]) for side in sides]

    def mean_figure(figure: str) -> tuple[float, float]:
        first, second = (_mean([getattr(report.team(name), figure) for report in side]) or 0.0 for side in sides)
        return first, second

    return TeamResult(
        name=name,
        quota=mean_figure("quota"),
        service=(services[0], services[1]),
        wait_median=(waits[0][0], waits[1][0]),
        wait_p95=(waits[0][1], waits[1][1]),
        used=mean_figure("used"),
        lost=mean_figure("lost"),
        preempted=mean_figure("evicted"),
        never=mean_figure("never"),
    )


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def cluster_results(before: tuple[Report, ...], after: tuple[Report, ...]) -> tuple[dict[str, float], dict[str, float]]:
    """Return the cluster's values under two policies, on average over the draws."""
    return _means(before), _means(after)


def _means(reports: Sequence[Report]) -> dict[str, float]:
    """Return the values of the cluster over all seeds, on average."""
    count = len(reports)
    return {
        "utilization": sum(each.cluster.utilization for each in reports) / count,
        "fairness": sum(each.cluster.fairness for each in reports) / count,
        "preemptions": sum(each.cluster.preemptions for each in reports) / count,
        "never": sum(team.never for each in reports for team in each.teams) / count,
        "waited": sum(each.cluster.waited for each in reports) / count,
    }


def _mean_wait(reports: Sequence[Report], team: str) -> tuple[float, float]:
    """Return a team's median wait and that of 95 of 100, over all seeds, on average."""
    found = [report.team(team) for report in reports]
    count = len(found)
    return sum(each.wait_median for each in found) / count, sum(each.wait_p95 for each in found) / count

"""A recommendation, as data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Generic, TypedDict, TypeVar

from hpkit_whatif.recommend.goals import Goal
from hpkit_whatif.simulate.report import Report

__all__ = [
    "CapacityChange",
    "Confidence",
    "GoalResult",
    "Recommendation",
    "RecommendedPolicy",
    "TeamResult",
    "ValueChange",
]

T = TypeVar("T")


class _Pair(TypedDict, Generic[T]):
    """Now, and as recommended."""

    before: T
    after: T


class _Goal(TypedDict):
    goal: str
    before: Annotated[list[float | None], "One figure for each draw; null: it never ends."]
    after: list[float | None]
    metIn: Annotated[int, "Draws that meet the goal as recommended."]


class _Change(TypedDict):
    path: str
    before: int | str
    after: int | str


class _Team(TypedDict):
    team: str
    guarantee: _Pair[float]
    service: _Pair[float | None]
    waitMedian: _Pair[float]
    waitP95: _Pair[float]
    usedInstanceHours: _Pair[float]
    lostInstanceHours: _Pair[float]
    preempted: _Pair[float]
    never: _Pair[float]


class _Draws(TypedDict):
    draws: int
    met: int


class _Confidence(TypedDict):
    drawn: Annotated[bool, "Whether the scenario has random draws."]
    searched: _Draws
    others: _Draws


class _Instances(TypedDict):
    instanceType: str
    before: int
    after: int


class _Capacity(TypedDict):
    met: bool
    changes: list[_Change]
    teams: list[_Team]
    instances: list[_Instances]
    monthlyUsd: Annotated[str | None, "Additional cost; null: a price is unknown."]
    pricedIn: list[str]
    pricesKnown: bool
    warnings: list[str]
    patch: str


class RecommendedPolicy(TypedDict):
    """Values that meet the goals, or the nearest ones."""

    stack: str
    scenario: str
    file: str
    met: bool
    goals: list[_Goal]
    changes: list[_Change]
    teams: list[_Team]
    cluster: _Pair[dict[str, float]]
    confidence: _Confidence
    capacity: _Capacity | None
    tried: int
    refused: int
    fixed: list[str]
    warnings: list[str]
    patch: str


@dataclass(frozen=True, slots=True)
class ValueChange:
    """A value of the file to change; path as `--vary` writes it."""

    path: str
    label: str
    before: int | str
    after: int | str


@dataclass(frozen=True, slots=True)
class GoalResult:
    """A goal, and the figures that it is about: in each draw, as the file is and as recommended."""

    goal: Goal
    before: tuple[float, ...]
    after: tuple[float, ...]

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
    guarantee: tuple[float, float]
    service: tuple[float | None, float | None]
    wait_median: tuple[float, float]
    wait_p95: tuple[float, float]
    used: tuple[float, float]
    lost: tuple[float, float]
    preempted: tuple[float, float]
    never: tuple[float, float]


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
    priced_in: other regions whose prices replace those of the stack's region. prices: all regions whose prices are
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
    texts: Mapping[str, str]
    patch: str


@dataclass(frozen=True, slots=True)
class Recommendation:
    """Values that meet the goals, or come nearest to them.

    texts: the changed files as recommended, by name; patch: the change to them. tried: number of simulated policies;
    refused: number of policies that the validator rejects. fixed: values that couldn't be varied, with the reason.
    warnings: new warnings of the validator.
    """

    stack: str
    scenario: str
    file: str
    met: bool
    goals: tuple[GoalResult, ...]
    changes: tuple[ValueChange, ...]
    teams: tuple[TeamResult, ...]
    cluster: tuple[dict[str, float], dict[str, float]]
    confidence: Confidence
    capacity: CapacityChange | None
    tried: int
    refused: int
    fixed: tuple[str, ...]
    warnings: tuple[str, ...]
    texts: Mapping[str, str]
    patch: str

    def as_dict(self) -> RecommendedPolicy:
        """Return it as JSON has it."""
        return {
            "stack": self.stack,
            "scenario": self.scenario,
            "file": self.file,
            "met": self.met,
            "goals": [
                {
                    "goal": result.goal.text,
                    "before": _figures(result.before),
                    "after": _figures(result.after),
                    "metIn": result.met,
                }
                for result in self.goals
            ],
            "changes": [_change(result) for result in self.changes],
            "teams": [_team(result) for result in self.teams],
            "cluster": _pair(self.cluster),
            "confidence": {
                "drawn": self.confidence.drawn,
                "searched": {"draws": self.confidence.draws, "met": self.confidence.met},
                "others": {"draws": self.confidence.other_draws, "met": self.confidence.other_met},
            },
            "capacity": None if self.capacity is None else _capacity(self.capacity),
            "tried": self.tried,
            "refused": self.refused,
            "fixed": list(self.fixed),
            "warnings": list(self.warnings),
            "patch": self.patch,
        }


def _figures(values: tuple[float, ...]) -> list[float | None]:
    """Return figures as JSON has them: a wait without end is none."""
    return [None if value == math.inf else value for value in values]


def _change(change: ValueChange) -> _Change:
    return {"path": change.path, "before": change.before, "after": change.after}


def _pair(values: tuple[T, T]) -> _Pair[T]:
    return {"before": values[0], "after": values[1]}


def _team(team: TeamResult) -> _Team:
    return {
        "team": team.name,
        "guarantee": _pair(team.guarantee),
        "service": _pair(team.service),
        "waitMedian": _pair(team.wait_median),
        "waitP95": _pair(team.wait_p95),
        "usedInstanceHours": _pair(team.used),
        "lostInstanceHours": _pair(team.lost),
        "preempted": _pair(team.preempted),
        "never": _pair(team.never),
    }


def _capacity(capacity: CapacityChange) -> _Capacity:
    return {
        "met": capacity.met,
        "changes": [_change(each) for each in capacity.changes],
        "teams": [_team(each) for each in capacity.teams],
        "instances": [
            {"instanceType": kind, "before": before, "after": after} for kind, before, after in capacity.instances
        ],
        "monthlyUsd": None if capacity.monthly is None else str(capacity.monthly.quantize(Decimal("0.01"))),
        "pricedIn": list(capacity.priced_in),
        "pricesKnown": capacity.compared,
        "warnings": list(capacity.warnings),
        "patch": capacity.patch,
    }


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
        guarantee=mean_figure("guarantee"),
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
    """Return the cluster's figures under two policies, on average over the draws."""
    return _means(before), _means(after)


def _means(reports: Sequence[Report]) -> dict[str, float]:
    """Return the figures of the cluster over all seeds, on average."""
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

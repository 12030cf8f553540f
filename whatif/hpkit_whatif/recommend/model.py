"""A recommendation, as data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, TypeVar

from pydantic import Field, PlainSerializer, computed_field

from hpkit.text.document import Document
from hpkit_whatif.recommend.goals import Goal
from hpkit_whatif.simulate.report import Report

__all__ = [
    "CapacityChange",
    "Confidence",
    "GoalResult",
    "Recommendation",
    "TeamResult",
    "ValueChange",
]

T = TypeVar("T")


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
    guarantee: _Pair
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
    texts: Annotated[Mapping[str, str], Field(exclude=True)]
    patch: str


class Recommendation(Document):
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
    cluster: Annotated[
        tuple[dict[str, float], dict[str, float]], PlainSerializer(_pair, return_type=dict[str, dict[str, float]])
    ]
    confidence: Confidence
    capacity: CapacityChange | None
    tried: int
    refused: int
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

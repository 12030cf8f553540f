"""Goals for a simulated run: parsing, checking, and the distance of a run from them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from hpkit.errors import SelectionError
from hpkit.text.formatting import figure, percent, span
from hpkit.text.spelling import hint
from hpkit_whatif.scenario.model import duration
from hpkit_whatif.simulate.report import Report, TeamReport

__all__ = ["GRAMMAR", "Goal", "Measure", "parse_goal"]

Measure = Literal["p50", "p95", "max", "preemptions", "lost", "utilization", "fairness"]
GRAMMAR: Final = (
    "p50|p95|max wait of TEAM|all < DURATION",
    "preemptions of TEAM|all < N",
    "lost work of TEAM|all < N (instance-hours)",
    "utilization > N%",
    "fairness > N",
)
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
        raise SelectionError(f"`{text}` isn't a goal. What to do: use one of: {'; '.join(GRAMMAR)}")
    measure = _measure(match)
    team = _team(text, match["waiting"] or match["whose"], list(teams))
    upper = match["sign"].startswith("<")
    if upper == (measure in ("utilization", "fairness")):
        right = ">" if upper else "<"
        raise SelectionError(f"`{text}`: this goal would ask for a worse result. What to do: write `{right}`")
    goal = Goal(
        " ".join(text.split()), measure, team, _limit(text, measure, match["limit"]), upper, "=" not in match["sign"]
    )
    _refuse_unreachable(goal)
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


def _refuse_unreachable(goal: Goal) -> None:
    """Raise SelectionError for a goal that no run can meet, regardless of the policy."""
    if goal.upper:
        if goal.strict and goal.limit == 0:
            raise SelectionError(f"`{goal.text}`: the value can't be less than 0. What to do: write `<=`")
        return
    most = "100%" if goal.measure == "utilization" else "1"
    if goal.limit > 1:
        raise SelectionError(f"`{goal.text}`: the value can't be more than {most}")
    if goal.strict and goal.limit == 1:
        raise SelectionError(f"`{goal.text}`: the value can't be more than {most}. What to do: write `>=`")

"""A report as a self-contained page: no scripts, fonts, or requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from jinja2 import Environment

from hpkit.text.formatting import borrowed, figure, percent, span
from hpkit.text.html import html_templates
from hpkit_whatif.simulate.report import Report, TeamReport

__all__ = ["MOST_ROWS", "as_html"]

MOST_ROWS = 500
"""So many tasks the page lists, the first ones."""

_WIDTH, _HEIGHT = 720, 90
_ABOVE = 16
_TICKS = 6


@dataclass(frozen=True, slots=True)
class _Chart:
    """A team's timeline as an SVG: areas for usage and waiting, a line for the guarantee, times below."""

    name: str
    label: str
    used: str
    waiting: str
    guarantee: float
    top: str
    ticks: tuple[tuple[float, str], ...]


def as_html(report: Report) -> str:
    """Return the page of a report; it lists the first tasks and counts the rest."""
    charts = [_chart(report, team) for team in report.teams]
    listed_tasks = report.tasks[:MOST_ROWS]
    instance_types = {task.instance_type for task in listed_tasks}
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            report=report,
            charts=charts,
            tasks=listed_tasks,
            asks="Asks" if len(instance_types) != 1 else f"Asks, {min(instance_types)}",
            several=len(instance_types) > 1,
            hidden=len(report.tasks) + report.omitted - len(listed_tasks),
            longest=max([team.wait_p95 for team in report.teams] + [1.0]),
            width=_WIDTH,
            height=_HEIGHT,
            above=_ABOVE,
        )
    )


@cache
def _environment() -> Environment:
    environment = html_templates("hpkit_whatif.simulate")
    environment.filters.update(span=span, amount=figure, percent=percent, borrowed=lambda each: borrowed(each.borrowed))
    return environment


def _chart(report: Report, team: TeamReport) -> _Chart:
    series, guarantee = report.series[team.name], team.guarantee
    both = [used + waiting for used, waiting in zip(series.used, series.waiting, strict=True)]
    top = max([*both, guarantee, 1.0])
    end = max(report.end, 1.0)
    label = (
        f"{team.name}: {figure(team.used_most)} instances in use at most, "
        f"{figure(team.waiting_most)} waited for at most, {figure(guarantee)} guaranteed"
    )
    ticks = tuple((_WIDTH * index / _TICKS, span(end * index / _TICKS)) for index in range(_TICKS + 1))
    zeros = [0.0] * len(both)
    return _Chart(
        team.name,
        label,
        _area(zeros, series.used, top),
        _area(series.used, both, top),
        round(_HEIGHT * (1 - guarantee / top), 1),
        figure(top),
        ticks,
    )


def _area(low: Sequence[float], high: Sequence[float], top: float) -> str:
    """Return the path of the area between two step lines, or ""."""
    if all(a == b for a, b in zip(low, high, strict=True)):
        return ""
    step = _WIDTH / len(high)
    there = [(index * step, (index + 1) * step, value) for index, value in enumerate(high)]
    back = [(index * step, (index + 1) * step, value) for index, value in reversed(list(enumerate(low)))]
    points = [part for a, b, value in there for part in ((a, value), (b, value))]
    points += [part for a, b, value in back for part in ((b, value), (a, value))]
    return "M" + "L".join(f"{x:.1f},{_HEIGHT * (1 - y / top):.1f}" for x, y in points) + "Z"

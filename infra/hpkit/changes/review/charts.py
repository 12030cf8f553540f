"""Bars of the page's charts: before and after of the same thing, as parts of the widest bar in percent."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from hpkit.changes.plan_diff import TeamChange
from hpkit.changes.review.formatting import as_fraction, quantity
from hpkit.changes.review.model import StackReview
from hpkit.plan.capacity import Amount

__all__ = ["Bar", "Chart", "capacity_chart", "team_charts"]

_MOST: Final = 30


@dataclass(frozen=True, slots=True)
class Bar:
    """Two bars for one item, in percent of the widest; text contains the figures."""

    label: str
    before: float
    after: float
    text: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart with its title; left_out counts bars that would not have been readable."""

    title: str
    bars: tuple[Bar, ...]
    left_out: int = 0


def team_charts(teams: Iterable[TeamChange]) -> Iterator[Chart]:
    """Return one chart per instance type: each changed team's guarantee, before and after."""
    by_type: dict[str, list[tuple[str, Amount | None, Amount | None]]] = {}
    for team in teams:
        for share in team.shares:
            if share.guarantee.changed:
                by_type.setdefault(share.instance_type, []).append(
                    (team.name, share.guarantee.before, share.guarantee.after)
                )
    for kind in sorted(by_type):
        yield _chart(f"Guarantee of {kind}, in instances", by_type[kind])


def capacity_chart(stack: StackReview) -> Chart | None:
    """Return guaranteed capacity by type, before and after; None where the side has none."""
    changes = stack.diff.capacity if stack.diff else ()
    rows = [(each.instance_type, each.guaranteed.before, each.guaranteed.after) for each in changes]
    return _chart("Guaranteed capacity, in instances", rows) if rows else None


def _chart(title: str, rows: Sequence[tuple[str, Amount | None, Amount | None]]) -> Chart:
    shown = rows[:_MOST]
    widest = max(
        (max(as_fraction(before), as_fraction(after)) for _, before, after in shown), default=Fraction(0)
    ) or Fraction(1)
    bars = tuple(
        Bar(
            label,
            round(float(as_fraction(before) / widest * 100), 1),
            round(float(as_fraction(after) / widest * 100), 1),
            f"{quantity(before)} → {quantity(after)}" if before != after else quantity(after),
        )
        for label, before, after in shown
    )
    return Chart(title, bars, len(rows) - len(shown))

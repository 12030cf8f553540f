"""Instance-hours and their cost, by team, project, job or instance type; the rows' costs sum to the total's cents."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from hpkit.cluster.usage.account import Hours

__all__ = ["GROUPINGS", "Row", "Usage", "usage_report"]

_IDLE, _UNALLOCATED, _NO_PROJECT = "(idle quota)", "(unallocated)", "(no project)"


@dataclass(frozen=True, slots=True)
class Row:
    """Instance-hours of a team, project, job or instance type. None: not divided that way.

    used: own and borrowed. hours: used, idle and unallocated, for which `cost` is, in US dollars. unpriced: hours of
    types without a known price, which aren't in cost.
    """

    name: str
    team: str
    used: float
    borrowed: float | None
    lent: float | None
    idle: float | None
    unallocated: float | None
    hours: float
    cost: Decimal
    unpriced: float


@dataclass(frozen=True, slots=True)
class Usage:
    """The rows, those with most hours first, their total, and what readers must know about them."""

    by: str
    begin: float
    end: float
    rows: tuple[Row, ...]
    total: Row
    notes: tuple[str, ...]


class _Sum:
    """The hours of a row so far."""

    def __init__(self) -> None:
        self.parts: defaultdict[str, float] = defaultdict(float)
        self.types: defaultdict[str, float] = defaultdict(float)

    def add(self, instance_type: str, **parts: float) -> None:
        """Add hours of a type. All parts except `lent` and `borrowed`, which is part of `used`, are for this row."""
        for name, hours in parts.items():
            self.parts[name] += hours
            if name not in ("lent", "borrowed"):
                self.types[instance_type] += hours


_Key = tuple[str, str]
_Sums = defaultdict[_Key, _Sum]


def _by_team(hours: Iterable[Hours], sums: _Sums) -> None:
    for use in hours:
        for team, own in use.teams.items():
            used = own.own + own.borrowed
            sums[team, team].add(use.instance_type, used=used, borrowed=own.borrowed, lent=own.lent, idle=own.idle)
        sums[_UNALLOCATED, ""].add(use.instance_type, unallocated=use.unallocated)


def _by_instance_type(hours: Iterable[Hours], sums: _Sums) -> None:
    for use in hours:
        teams = use.teams.values()
        borrowed = sum(team.borrowed for team in teams)
        sums[use.instance_type, ""].add(
            use.instance_type,
            used=sum(team.own for team in teams) + borrowed,
            borrowed=borrowed,
            lent=sum(team.lent for team in teams),
            idle=sum(team.idle for team in teams),
            unallocated=use.unallocated,
        )


def _by_task(hours: Iterable[Hours], sums: _Sums, *, project: bool) -> None:
    for use in hours:
        for task, used in use.tasks:
            name = (task.project or _NO_PROJECT) if project else task.job
            sums[name, task.team].add(use.instance_type, used=used)
        sums[_IDLE, ""].add(use.instance_type, idle=sum(team.idle for team in use.teams.values()))
        sums[_UNALLOCATED, ""].add(use.instance_type, unallocated=use.unallocated)


GROUPINGS: Final[Mapping[str, Callable[[Iterable[Hours], _Sums], None]]] = {
    "team": _by_team,
    "project": lambda hours, sums: _by_task(hours, sums, project=True),
    "job": lambda hours, sums: _by_task(hours, sums, project=False),
    "instance-type": _by_instance_type,
}
_DIVIDED: Final = {
    "team": ("borrowed", "lent", "idle", "unallocated"),
    "project": ("idle", "unallocated"),
    "job": ("idle", "unallocated"),
    "instance-type": ("borrowed", "lent", "idle", "unallocated"),
}


def usage_report(
    hours: Sequence[Hours],
    *,
    by: str,
    begin: float,
    end: float,
    price: Callable[[str], Decimal | None],
    notes: Iterable[str] = (),
) -> Usage:
    """Return the report. price: US dollars for an hour of an instance type; None if it isn't known."""
    prices = {each.instance_type: price(each.instance_type) for each in hours}
    sums: _Sums = defaultdict(_Sum)
    GROUPINGS[by](hours, sums)
    rows = [
        (key, one, _cost(one, prices))
        for key, one in sums.items()
        if any(one.parts.values()) or key[0] not in (_IDLE, _UNALLOCATED)
    ]
    rows.sort(key=lambda row: (row[0][0].startswith("("), -sum(row[1].types.values()), row[0]))
    whole = _Sum()
    for _, one, _ in rows:
        for name, value in one.parts.items():
            whole.parts[name] += value
        for name, value in one.types.items():
            whole.types[name] += value
    total = sum(Decimal(each.total) * (prices[each.instance_type] or 0) for each in hours)
    cents = int((100 * total).to_integral_value()) if total else 0
    costs = _cents([cost for *_, cost in rows], cents)
    divided = _DIVIDED[by]
    return Usage(
        by,
        begin,
        end,
        tuple(_row(key, one, cost, prices, divided) for (key, one, _), cost in zip(rows, costs, strict=True)),
        _row(("total", ""), whole, cents, prices, divided),
        (*notes, *_notes(hours, prices)),
    )


def _cost(one: _Sum, prices: Mapping[str, Decimal | None]) -> float:
    """Return cents."""
    return 100 * sum(hours * float(prices[name] or 0) for name, hours in one.types.items())


def _row(key: _Key, one: _Sum, cents: int, prices: Mapping[str, Decimal | None], divided: Sequence[str]) -> Row:
    parts = {name: one.parts[name] for name in divided}
    return Row(
        *key,
        used=one.parts["used"],
        borrowed=parts.get("borrowed"),
        lent=parts.get("lent"),
        idle=parts.get("idle"),
        unallocated=parts.get("unallocated"),
        hours=sum(one.types.values()),
        cost=Decimal(cents) / 100,
        unpriced=sum(value for name, value in one.types.items() if prices[name] is None),
    )


def _cents(costs: Sequence[float], total: int) -> list[int]:
    """Round to whole cents so that the sum is the total: the largest remainders are rounded up."""
    floors = [math.floor(cost) for cost in costs]
    order = sorted(range(len(costs)), key=lambda index: floors[index] - costs[index])
    for index in order[: max(0, total - sum(floors))]:
        floors[index] += 1
    return floors


def _notes(hours: Sequence[Hours], prices: Mapping[str, Decimal | None]) -> Iterable[str]:
    for use in hours:
        if prices[use.instance_type] is None and use.total:
            yield (
                f"no price of {use.instance_type} is known, so the cost lacks its {use.total:,.1f} instance-hours; "
                "`hpkit catalog refresh` reads prices from AWS"
            )
        if use.starting:
            yield (
                f"tasks reserved {use.starting:,.1f} instance-hours of {use.instance_type} without a node, and they "
                "aren't counted"
            )
    yield "costs are on-demand prices of instances, without Spot, training plans, Savings Plans, credits and taxes"

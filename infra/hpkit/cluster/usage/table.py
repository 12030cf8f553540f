"""The usage of a cluster as the cells of a table."""

from typing import Final

from hpkit.cluster.usage.report import Usage

__all__ = ["HEAD", "usage_rows"]

HEAD: Final = ("used", "borrowed", "lent", "idle", "unallocated", "hours", "cost in USD")


def usage_rows(usage: Usage) -> list[tuple[str, ...]]:
    """Return the cells of each row, with the total last; a column that a row isn't divided by has `–`."""
    return [
        (
            row.name,
            *([row.team] if usage.by in ("job", "project") else []),
            *(_hours(value) for value in (row.used, row.borrowed, row.lent, row.idle, row.unallocated, row.hours)),
            f"{row.cost:,.2f}" + (" + ?" if row.unpriced else ""),
        )
        for row in (*usage.rows, usage.total)
    ]


def _hours(value: float | None) -> str:
    return "–" if value is None else f"{value:,.2f}"

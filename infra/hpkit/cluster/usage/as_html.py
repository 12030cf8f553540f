"""The usage of a cluster as a page: a bar for each row, and the table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from hpkit.cluster.usage.page import Section, page
from hpkit.cluster.usage.report import Row, Usage

__all__ = ["HEAD", "usage_html", "usage_rows"]

HEAD: Final = ("used", "borrowed", "lent", "idle", "not reserved", "hours", "cost in USD")
_MOST_BARS: Final = 40
_WIDTH, _BAR, _LINE = 720, 14, 34
_STYLE: Final = (
    "text{font:11px system-ui,sans-serif;fill:#57606a}.used{fill:#0550ae}.borrowed{fill:#bc4c00}.idle{fill:#8c959f}"
    ".unreserved{fill:none;stroke:#8c959f}"
    "@media(prefers-color-scheme:dark){text{fill:#9ea7b3}.used{fill:#58a6ff}.borrowed{fill:#ffa657}}"
)


def usage_rows(usage: Usage) -> list[tuple[str, ...]]:
    """Return the cells of each row, with the total last; a column that a row isn't divided by has `–`."""
    return [
        (
            row.name,
            *([row.team] if usage.by in ("job", "project") else []),
            *(_hours(value) for value in (row.used, row.borrowed, row.lent, row.idle, row.unreserved, row.hours)),
            f"{row.cost:,.2f}" + (" + ?" if row.unpriced else ""),
        )
        for row in (*usage.rows, usage.total)
    ]


def _hours(value: float | None) -> str:
    return "–" if value is None else f"{value:,.2f}"


def usage_html(title: str, summary: str, usage: Usage) -> str:
    """Return the page of `hpkit cluster usage`."""
    rows = usage_rows(usage)
    names = (usage.by, "team") if usage.by in ("job", "project") else (usage.by,)
    columns = frozenset(range(len(names), len(names) + len(HEAD)))
    shown = usage.rows[:_MOST_BARS]
    title_of_bars = (
        "Instance-hours" if len(shown) == len(usage.rows) else f"Instance-hours, the first {len(shown)} rows"
    )
    return page(
        title,
        summary,
        (
            Section(title_of_bars, drawing=_bars(shown)),
            Section("Hours and cost", head=(*names, *HEAD), rows=rows, numbers=columns),
            Section("Notes", lines=usage.notes),
        ),
    )


def _bars(rows: Sequence[Row]) -> str:
    """Return a bar for each row: used, borrowed, idle and not reserved, in this order."""
    longest = max((row.hours for row in rows), default=0.0) or 1.0
    height = _LINE * len(rows) + _LINE
    label = "Instance-hours: blue is used, orange is borrowed, gray is idle quota, an outline is reserved by nobody"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
        f'role="img" aria-label="{label}"><title>{label}</title><style>{_STYLE}</style>'
        f'<text x="0" y="11">{label}</text>{"".join(_bar(row, _LINE * (1 + n), longest) for n, row in enumerate(rows))}'
        "</svg>"
    )


def _bar(row: Row, top: int, longest: float) -> str:
    name = escape(f"{row.name} of {row.team}" if row.team not in ("", row.name) else row.name)
    return f'<text x="0" y="{top + 11}">{name}: {row.hours:,.2f}</text>' + "".join(_parts(row, top + _BAR, longest))


def _parts(row: Row, top: int, longest: float) -> Iterator[str]:
    left = 0.0
    borrowed = row.borrowed or 0.0
    parts = (
        ("used", row.used - borrowed),
        ("borrowed", borrowed),
        ("idle", row.idle or 0.0),
        ("unreserved", row.unreserved or 0.0),
    )
    for name, hours in parts:
        if hours > 0:
            width = _WIDTH * hours / longest
            yield f'<rect class="{name}" x="{left:.1f}" y="{top}" width="{width:.1f}" height="{_BAR}"/>'
            left += width

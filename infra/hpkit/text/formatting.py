"""Times, amounts and shares in words; data as JSON; rows in columns."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

__all__ = ["aligned", "amount", "borrowed", "json_text", "percent", "span"]

_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def span(seconds: float | None) -> str:
    """Write a time of so many seconds: `0s`, `45s`, `12m`, `3h20m`, `2d4h`."""
    if seconds is None:
        return "–"
    whole = round(seconds)
    if whole < _MINUTE:
        return f"{whole}s"
    if whole < _HOUR:
        return f"{whole // _MINUTE}m" + (f"{whole % _MINUTE}s" if whole % _MINUTE else "")
    if whole < _DAY:
        return f"{whole // _HOUR}h" + (f"{whole % _HOUR // _MINUTE}m" if whole % _HOUR >= _MINUTE else "")
    return f"{whole // _DAY}d" + (f"{whole % _DAY // _HOUR}h" if whole % _DAY >= _HOUR else "")


def amount(value: float) -> str:
    """Write a number of instances, or of instance-hours."""
    return f"{value:,.1f}".removesuffix(".0") if abs(value) >= 0.05 or not value else f"{value:.2g}"


def borrowed(lenders: Mapping[str, float]) -> str:
    """Write how many instances are borrowed of whom; those that no team reserved are of none."""
    return ", ".join(f"{amount(much)} of {team or 'no team'}" for team, much in lenders.items()) or "–"


def percent(part: float | None) -> str:
    """Write a part of one."""
    return "–" if part is None else f"{100 * part:.0f} %"


def json_text(data: Any) -> str:
    """Write data as JSON for programs that people read too: indented, and each letter as itself."""
    return json.dumps(data, indent=2, ensure_ascii=False)


def aligned(rows: Sequence[Sequence[str]], *, numbers: Collection[int] = ()) -> list[str]:
    """Return a line for each row, in columns as wide as they need; numbers: the columns that are aligned right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(size) if index in numbers else cell.ljust(size)
            for index, (cell, size) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]

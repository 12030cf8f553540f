"""Formats durations, amounts and shares as text, data as JSON, and rows as columns."""

import json
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction

__all__ = [
    "aligned",
    "amount",
    "borrowed",
    "figure",
    "json_text",
    "listing",
    "percent",
    "span",
]

_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def span(seconds: float | None) -> str:
    """Format a duration in seconds: `0s`, `45s`, `12m`, `3h20m`, `2d4h`."""
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


def amount(value: object, digits: int = 3) -> str:
    """Format an exact number for people: 6, 2.5, 0.333."""
    exact = value if isinstance(value, Fraction) else Fraction(str(value))
    return str(exact.numerator) if exact.denominator == 1 else f"{float(exact):.{digits}f}".rstrip("0").rstrip(".")


def listing(parts: Sequence[str], most: int = 8) -> str:
    """Join parts with commas, and state how many were omitted."""
    shown = ", ".join(parts[:most])
    return f"{shown} and {len(parts) - most} more" if len(parts) > most else shown


def figure(value: float) -> str:
    """Format a measured number of instances or instance-hours."""
    return f"{value:,.1f}".removesuffix(".0") if abs(value) >= 0.05 or not value else f"{value:.2g}"


def borrowed(lenders: Mapping[str, float]) -> str:
    """Format how many instances are borrowed from which team; unreserved instances belong to no team."""
    return ", ".join(f"{figure(much)} of {team or 'no team'}" for team, much in lenders.items()) or "–"


def percent(part: float | None) -> str:
    """Format a fraction as a percentage."""
    return "–" if part is None else f"{100 * part:.0f}%"


def json_text(data: object, *, indent: int | None = 2) -> str:
    """Format data as JSON for programs and people: indented, without escaping letters."""
    return json.dumps(data, indent=indent, ensure_ascii=False)


def aligned(rows: Sequence[Sequence[str]], *, numbers: Collection[int] = ()) -> list[str]:
    """Return one line per row, with aligned columns; numbers: the columns that are right-aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(size) if index in numbers else cell.ljust(size)
            for index, (cell, size) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]

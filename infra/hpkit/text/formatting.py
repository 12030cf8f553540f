"""Formats durations, amounts, shares and counts as text, data as JSON, and rows as columns; reads durations, URLs."""

import ipaddress
import json
import re
import textwrap
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from itertools import zip_longest
from typing import Any, Final
from urllib.parse import urlsplit

__all__ = [
    "aligned",
    "allowances",
    "amount",
    "borrowed",
    "compact_json",
    "figure",
    "is_loopback",
    "json_text",
    "listing",
    "percent",
    "plural",
    "seconds_in",
    "span",
    "to_allow",
]


def allowances(replaced: Sequence[str], deleted: Mapping[str, Sequence[str]]) -> str:
    """Return the settings of an environment that allow these losses: `allowReplace: […]` and `allowDelete: {…}`."""
    parts = ", ".join(f"{key}: [{', '.join(names)}]" for key, names in deleted.items() if names)
    settings = [f"`allowReplace: [{', '.join(replaced)}]`"] if replaced else []
    return " and ".join([*settings, *([f"`allowDelete: {{{parts}}}`"] if parts else [])])


def to_allow(needed: str, first: str = "", where: str = "the environment") -> str:
    """Return how to allow a loss; first: settings that lift the protection of what is lost, in a run of their own."""
    if not first:
        return f"to allow it once, set {needed} in {where}"
    return (
        f"to allow it once, first run `pulumi up` with {first} in {where} and without this change, then make this "
        f"change with {needed}"
    )


def is_loopback(url: str) -> bool:
    """Return whether a URL leads to this machine and nowhere else."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


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
    """Format how many instances are borrowed from which team; unallocated instances belong to no team."""
    return ", ".join(f"{figure(much)} of {team or 'no team'}" for team, much in lenders.items()) or "–"


def percent(part: float | None) -> str:
    """Format a fraction as a percentage."""
    return "–" if part is None else f"{100 * part:.0f}%"


def json_text(data: object, *, indent: int | None = 2) -> str:
    """Format data as JSON for programs and people: indented, without escaping letters."""
    return json.dumps(data, indent=indent, ensure_ascii=False)


def aligned(rows: Sequence[Sequence[str]], *, numbers: Collection[int] = (), width: int | None = None) -> list[str]:
    """Return the lines of a table with aligned columns; numbers: the columns that are right-aligned.

    width: in a wider table, the widest columns are wrapped between words.
    """
    columns = list(zip(*rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    words = [max(len(word) for cell in column for word in cell.split() or [""]) for column in columns]
    while width and sum(widths) + 2 * len(widths) - 2 > width and widths != words:
        widths[max(range(len(widths)), key=lambda index: (widths[index] > words[index], widths[index]))] -= 1
    lines = []
    for row in rows:
        cells = [
            textwrap.wrap(cell, size, break_on_hyphens=False) if len(cell) > size else [cell]
            for cell, size in zip(row, widths, strict=True)
        ]
        for line in zip_longest(*cells, fillvalue=""):
            sides = [
                cell.rjust(size) if index in numbers else cell.ljust(size)
                for index, (cell, size) in enumerate(zip(line, widths, strict=True))
            ]
            lines.append("  ".join(sides).rstrip())
    return lines


_UNITS: Final = {
    "ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800,
}  # fmt: skip
_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ns|us|µs|ms|[smhdw])")


def seconds_in(text: str) -> float:
    """Return the seconds of a duration; `0` needs no unit. Raises ValueError if the text isn't a duration."""
    if text != "0" and not re.fullmatch(rf"(?:{_PART.pattern})+", text):
        raise ValueError(f"{text!r} isn't a duration")
    return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))


def plural(number: int, noun: str) -> str:
    """Return `1 team`, `2 teams`, `1,000 policies`; noun: the singular."""
    if number != 1:
        noun = f"{noun[:-1]}ies" if noun.endswith("cy") else f"{noun}s"
    return f"{number:,} {noun}"


_WIDTH: Final = 120


def compact_json(value: Any, *, indent: int = 0, used: int = 0) -> str:
    """Return a value as JSON. A map or list is on one line, or has one line per entry if it's too long.

    indent: spaces before the line; used: characters of the line that are in use, such as by a key.
    """
    line = json.dumps(value, ensure_ascii=False)
    if indent + used + len(line) <= _WIDTH or not value or not isinstance(value, (dict, list)):
        return line
    inside = " " * (indent + 1)
    if isinstance(value, dict):
        keys = {key: f"{json.dumps(key, ensure_ascii=False)}: " for key in value}
        parts = [
            f"{inside}{keys[key]}{compact_json(part, indent=indent + 1, used=len(keys[key]) + 1)}"
            for key, part in value.items()
        ]
    else:
        parts = [f"{inside}{compact_json(part, indent=indent + 1, used=1)}" for part in value]
    begin, end = "{}" if isinstance(value, dict) else "[]"
    return begin + "\n" + ",\n".join(parts) + f"\n{' ' * indent}{end}"

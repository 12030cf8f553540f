"""Reads dates in any common format.

It doesn't guess: if a date could be January 2 or February 1, it's neither.
"""

import calendar
import datetime
import re
from collections.abc import Iterator
from typing import Final

__all__ = ["days_meant"]

_DAY = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})\Z")
_YEAR_FIRST = re.compile(r"(\d{4})[./-]?(\d{1,2})[./-]?(\d{1,2})\Z")
_IN_WORDS = re.compile(
    r"(?:(\d{1,2})(?:st|nd|rd|th)?[ .-]+)?([a-z]{3,9})[ .-]+(?:(\d{1,2})(?:st|nd|rd|th)?,? +)?(\d{4})\Z"
)
_TIME = re.compile(r"(?<=\d)[T ]\d{1,2}:\d{2}.*\Z")
_LAST_MONTH: Final = 12
_LAST_DAY: Final = 31
_MONTHS: Final = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip


def days_meant(text: str) -> Iterator[str]:
    """Yield the days that a text may name, as YYYY-MM-DD, the likeliest first."""
    text = _TIME.sub("", text)
    if year_first := _YEAR_FIRST.match(text):
        yield from _day(*map(int, year_first.groups()))
    if day := _DAY.match(text):
        first, mark, second, year = int(day[1]), day[2], int(day[3]), int(day[4])
        # With a slash, some write the month first; only where it cannot be one is it certain.
        if mark == "." or first > _LAST_MONTH:
            yield from _day(year, second, first)
        elif second > _LAST_MONTH:
            yield from _day(year, first, second)
    if words := _IN_WORDS.match(text.lower()):
        before, name, behind = words.group(1, 2, 3)
        months = [number for number, month in enumerate(_MONTHS, 1) if month.startswith(name)]
        if len(months) == 1 and (before is None) != (behind is None):
            yield from _day(int(words[4]), months[0], int(before or behind))


def _day(year: int, month: int, day: int) -> Iterator[str]:
    if not (datetime.MINYEAR <= year <= datetime.MAXYEAR and 1 <= month <= _LAST_MONTH and 1 <= day <= _LAST_DAY):
        return
    # Of a day that a month has not, its last one.
    last = calendar.monthrange(year, month)[1]
    yield datetime.date(year, month, min(day, last)).isoformat()

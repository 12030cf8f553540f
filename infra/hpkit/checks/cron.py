"""Cron expressions: fields that AWS and Karpenter share, and the form that AWS requires."""

import datetime
import re
from typing import Final

__all__ = ["DAYS", "MONTHS", "Field", "aws_schedule_problem", "no_such_day", "wrong_field"]

MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
# A field's unit, its lowest and highest value, and names of values, starting at the lowest.
Field = tuple[str, int, int, tuple[str, ...]]
_LONGEST: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_ENDS: Final = 2
_CRON_FIELDS: Final = 6
_CRON_FORM: Final = re.compile(r"cron\((?P<fields>[^()]*)\)\Z")
_CRON_OPEN: Final = re.compile(r"\Acron\s*\(?|\)\Z", re.IGNORECASE)
_EACH_DAY: Final = re.compile(r"@?daily|(?:every|each) (?:day|night)|nightly|@midnight|rate\(1 day\)", re.IGNORECASE)
_FIELD: Final = re.compile(r"[0-9A-Za-z*/,?#L-]+\Z")
_AWS_FIELDS: Final[tuple[Field, ...]] = (
    ("minutes", 0, 59, ()),
    ("hours", 0, 23, ()),
    ("days of the month", 1, 31, ()),
    ("months", 1, 12, MONTHS),
    ("days of the week", 1, 7, DAYS),
    ("years", 1970, 2199, ()),
)


def wrong_field(texts: list[str], fields: tuple[Field, ...]) -> tuple[str, Field] | None:
    """Return the first text that is invalid in its field, with the field; None if all are valid, or one is missing."""
    if len(texts) != len(fields):
        return None
    return next(
        (
            (text, field)
            for text, field in zip(texts, fields, strict=True)
            if not all(_is_part(part, *field[1:]) for part in text.lower().split(","))
        ),
        None,
    )


def no_such_day(day: str, month: str) -> bool:
    """Return whether none of the months has any of the days; False for anything but plain values."""
    months = [MONTHS.index(each) + 1 if each in MONTHS else each for each in month.lower().split(",")]
    days = day.split(",")
    if not all(str(each).isdecimal() for each in (*months, *days)):
        return False
    longest = max((_LONGEST[int(each) - 1] for each in months if 1 <= int(each) <= len(MONTHS)), default=_LONGEST[0])
    return min(map(int, days)) > longest


def aws_schedule_problem(text: str, today: datetime.date | None) -> tuple[str, str] | None:
    """Return why a text isn't an AWS cron expression that matches some time, and the fix; None if it is one."""
    form = _CRON_FORM.match(text)
    fields = (form["fields"] if form else _CRON_OPEN.sub("", text)).split()
    if form and len(fields) == _CRON_FIELDS and all(map(_FIELD.match, fields)):
        return _never(fields, today)
    problem = (
        f"`{text}` isn't a valid AWS cron expression: it needs `cron(` and six fields "
        "(minutes, hours, day of month, month, day of week, year)"
    )
    return problem, "Use `cron(0 2 * * ? *)`." if _EACH_DAY.fullmatch(text) else f"Use `{_as_cron(fields)}`."


def _is_part(text: str, least: int, most: int, names: tuple[str, ...]) -> bool:
    """Return whether a text is a value, a range or `*`, each with or without a step."""
    values, slash, step = text.partition("/")
    if slash and not (step.isdecimal() and int(step) > 0):
        return False
    if values in ("*", "?"):
        return True
    numbers = [names.index(each) + least if each in names else each for each in values.split("-")]
    if len(numbers) > _ENDS or not all(isinstance(each, int) or each.isdecimal() for each in numbers):
        return False
    ends = [int(each) for each in numbers]
    return ends == sorted(ends) and least <= ends[0] and ends[-1] <= most


def _never(fields: list[str], today: datetime.date | None) -> tuple[str, str] | None:
    """Return the problem and fix of six fields in AWS's format; None if they match some time."""
    text = f"cron({' '.join(fields)})"
    # L, W and #, which count days from the end and by weeks, aren't checked.
    plain = [
        "?" if each in ("L", "LW") or (re.search(r"[LW#]", each) and not each.isalpha()) else each for each in fields
    ]
    # A week can wrap around: SAT-SUN.
    plain[4] = plain[4].replace("-", ",")
    wrong = wrong_field(plain, _AWS_FIELDS)
    if wrong is not None:
        value, (field, least, most, names) = wrong
        named = f", or {names[0].upper()}–{names[-1].upper()}" if names else ""
        return (
            f"`{text}` has `{value}` for {field}; valid values are {least}–{most}{named}",
            "Use a value in this range.",
        )
    day, month, weekday, year = fields[2:]
    if (day == "?") == (weekday == "?"):
        said = "neither" if day == "?" else "both"
        fix = f"Use `{_as_cron(fields)}`." if "*" in (day, weekday) else "Replace the field you don't need with `?`."
        return f"`{text}` sets {said} day of month and day of week; AWS requires `?` for exactly one of them", fix
    if no_such_day(day, month):
        return f"`{text}` runs on day {day} of month {month}, a date that doesn't exist", "Use a valid date."
    if today is not None and year.isdecimal() and int(year) < today.year:
        return f"`{text}` runs in {year}, which is in the past", "Set the year to `*`, or to a later year."
    return None


def _as_cron(fields: list[str]) -> str:
    """Return five fields as Unix has them, or six, in AWS's form; an example for anything else."""
    if not all(map(_FIELD.match, fields)) or len(fields) not in (_CRON_FIELDS - 1, _CRON_FIELDS):
        return "cron(0 2 ? * SUN *)"
    minute, hour, day, month, weekday, *year = fields
    if weekday == "*":
        weekday = "?"
    elif day == "*":
        day = "?"
        weekday = _weekdays(weekday)
    return f"cron({' '.join((minute, hour, day, month, weekday, *(year or ['*'])))})"


def _weekdays(text: str) -> str:
    """Return days of the week by name: AWS counts them from 1, Unix from 0."""
    names = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
    return re.sub(r"[0-7]", lambda found: names[int(found[0])], text).upper()

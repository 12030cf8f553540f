"""Fields of cron expressions, as AWS and as Karpenter have them alike."""

from typing import Final

__all__ = ["DAYS", "MONTHS", "Field", "no_such_day", "wrong_field"]

MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
# A field's unit, its lowest and highest value, and names of values, starting at the lowest.
Field = tuple[str, int, int, tuple[str, ...]]
_LONGEST: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_ENDS: Final = 2


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

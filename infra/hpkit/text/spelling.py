"""Suggestions for unknown names."""

import difflib
import re
from collections.abc import Iterable

__all__ = ["alike", "did_you_mean", "hint", "near"]

_ALIKE = 0.6
_NEARLY_THE_SAME = 0.8


def alike(name: str, other: str) -> bool:
    """Return whether two names have nearly the same spelling, ignoring case."""
    return difflib.SequenceMatcher(None, name.lower(), other.lower()).ratio() >= _NEARLY_THE_SAME


def near(name: str, candidates: Iterable[str]) -> str | None:
    """Return the known name with the most similar spelling, ignoring case, or None.

    A name that differs only in the number of leading zeros is preferred: CAP01 means CAP001, not CAP010. A code with
    another number is another name: CAP999 isn't CAP009.
    """
    number = _number(name.lower())
    names = {each.lower(): each for each in candidates if number is None or _number(each.lower()) in (None, number)}
    for each, written in names.items():
        if _without_zeros(each) == _without_zeros(name.lower()):
            return written
    found = difflib.get_close_matches(name.lower(), list(names), n=1, cutoff=_NEARLY_THE_SAME if number else _ALIKE)
    return names[found[0]] if found else None


def _number(name: str) -> str | None:
    """Return the number of a code, such as `9` of cap009; None for any other name."""
    code = re.fullmatch(r"[a-z]{3,}0*([0-9]+)", name)
    return code and code[1]


def _without_zeros(name: str) -> str:
    return re.sub(r"(?<!\d)0+(?=\d)", "", name)


def did_you_mean(name: str, candidates: Iterable[str], otherwise: str) -> str:
    """Return a fix for an unknown name: the question about the most similar name, or another fix without one."""
    likely = near(name, candidates)
    return f"Did you mean `{likely}`?" if likely else otherwise


def hint(name: str, known: Iterable[str]) -> str:
    """Return the end of a sentence about an unknown name: the most similar name, or all names."""
    names = list(known)
    meant = near(name, names)
    return f"did you mean {meant}?" if meant else f"it has {', '.join(names) or 'none'}"

"""What a person is likely to have meant by a name that is not known."""

import difflib
import re
from collections.abc import Iterable

__all__ = ["alike", "hint", "near"]

_ALIKE = 0.6
_NEARLY_THE_SAME = 0.8


def alike(name: str, other: str) -> bool:
    """Say whether two names are nearly spelt the same, whatever the case."""
    return difflib.SequenceMatcher(None, name.lower(), other.lower()).ratio() >= _NEARLY_THE_SAME


def near(name: str, candidates: Iterable[str]) -> str | None:
    """Return the known name that is spelt most like one that is not known, whatever the case; None if none is.

    One that differs only in how many zeros a number begins with is meant before any other: CAP01 is CAP001, not CAP010.
    """
    names = {each.lower(): each for each in candidates}
    for each, written in names.items():
        if _without_zeros(each) == _without_zeros(name.lower()):
            return written
    found = difflib.get_close_matches(name.lower(), list(names), n=1, cutoff=_ALIKE)
    return names[found[0]] if found else None


def _without_zeros(name: str) -> str:
    return re.sub(r"(?<!\d)0+(?=\d)", "", name)


def hint(name: str, known: Iterable[str]) -> str:
    """Return the end of a sentence about an unknown name: the name that was probably meant, or else all names."""
    names = list(known)
    meant = near(name, names)
    return f"did you mean {meant}?" if meant else f"it has {', '.join(names) or 'none'}"

"""Regular expressions of the API models, which are Java's, as Python's."""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import cache

__all__ = ["compile_pattern"]

_HIGHEST_ASCII = 0x7F
# The same language in linear time: the original nests repetitions and takes exponentially long to reject.
_EQUIVALENT = {
    r"[a-z0-9]([-a-z0-9]*[a-z0-9]){0,39}?": r"[a-z0-9]([-a-z0-9]*[a-z0-9])?",
}


@cache
def compile_pattern(pattern: str, *, is_ascii: bool = False) -> re.Pattern[str]:
    """Compile a pattern of the model; it must match the whole value, as the services do.

    is_ascii: for values in ASCII only, which is faster: Unicode has a million characters.
    """
    text = _EQUIVALENT.get(pattern, pattern)
    highest = _HIGHEST_ASCII if is_ascii else sys.maxunicode
    return re.compile(re.sub(r"\\p\{(\w)\w*\}", lambda found: _category(found.group(1), highest), text))


@cache
def _category(letter: str, highest: int) -> str:
    """Return a Unicode category such as L or Z up to a character, as ranges for use inside a character class."""
    ranges: list[tuple[int, int]] = []
    for code in range(highest + 1):
        if unicodedata.category(chr(code))[0] == letter:
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1] = (ranges[-1][0], code)
            else:
                ranges.append((code, code))
    return "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in ranges)

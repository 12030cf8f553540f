"""Regular expressions of the API models, which are Java's, as Python's."""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import cache

__all__ = ["compile_pattern"]

# The same language in linear time: the original nests repetitions and takes exponentially long to refuse.
_EQUIVALENT = {
    r"[a-z0-9]([-a-z0-9]*[a-z0-9]){0,39}?": r"[a-z0-9]([-a-z0-9]*[a-z0-9])?",
}


@cache
def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Compile a pattern of the model; it must match the whole value, as the services do."""
    text = _EQUIVALENT.get(pattern, pattern)
    return re.compile(re.sub(r"\\p\{(\w)\w*\}", lambda found: _category(found.group(1)), text))


@cache
def _category(letter: str) -> str:
    """Return a Unicode category such as L or Z, as ranges for use inside a character class."""
    ranges: list[tuple[int, int]] = []
    for code in range(sys.maxunicode + 1):
        if unicodedata.category(chr(code))[0] == letter:
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1] = (ranges[-1][0], code)
            else:
                ranges.append((code, code))
    return "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in ranges)

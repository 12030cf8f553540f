"""Versions that tools report, and which of them fit."""

import re
from dataclasses import dataclass

from packaging.version import Version

__all__ = ["Range", "Version", "parse"]

_NUMBERS = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")


def parse(text: str) -> Version | None:
    """Return the first version in a text (`v3.200.0`, `go1.26`), or None."""
    match = _NUMBERS.search(text)
    if match is None:
        return None
    major, minor, patch = match.groups()
    return Version(f"{major}.{minor}.{patch or 0}")


@dataclass(frozen=True)
class Range:
    """Versions from `least` on, below `below`."""

    least: str
    below: str

    def __contains__(self, version: Version) -> bool:
        return Version(self.least) <= version < Version(self.below)

    def __str__(self) -> str:
        return f"{self.least} or newer, below {self.below}"

"""Versions that tools report, and which of them fit."""

import re
from dataclasses import dataclass

__all__ = ["Range", "Version", "parse"]

Version = tuple[int, int, int]

_NUMBERS = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")


def parse(text: str) -> Version | None:
    """Return the first version in a text (`v3.200.0`, `go1.26`), or None if there is none."""
    found = _NUMBERS.search(text)
    if found is None:
        return None
    major, minor, patch = found.groups()
    return int(major), int(minor), int(patch or 0)


@dataclass(frozen=True)
class Range:
    """Versions from `least` on, below `below`."""

    least: Version
    below: Version

    def __contains__(self, version: Version) -> bool:
        return self.least <= version < self.below

    def __str__(self) -> str:
        return f"{_short(self.least)} or newer, below {_short(self.below)}"


def _short(version: Version) -> str:
    major, minor, patch = version
    return f"{major}.{minor}.{patch}" if patch else f"{major}.{minor}"

"""What a plugin answers to Check and Diff, property by property."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CheckFailure", "PropertyChange"]


@dataclass(frozen=True)
class CheckFailure:
    """One thing that is wrong with the inputs."""

    path: str
    reason: str


@dataclass(frozen=True)
class PropertyChange:
    """One property that differs."""

    path: str
    kind: str  # add, delete or update
    replaces: bool = False

"""A function that programs call to look things up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hpkit_local.plugins.aws.calls import Calls
from hpkit_provider.engine.values import Props

__all__ = ["Function"]


@dataclass(frozen=True)
class Function:
    """One function: its arguments, its calls, and its result."""

    token: str
    service: str
    takes: tuple[str, ...]
    calls: str
    answer: Callable[[Calls, Props], Props]

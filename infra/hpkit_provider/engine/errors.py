"""Errors as users read them: code, message, what to do.

PluginError
├── RefusedError        AWS rejected the request for good
├── CancelledError      the run was stopped
├── TimedOutError       a change took longer than its time-out
├── ChangeFailedError   a change ended in a failed status
│   └── RolledBackError  a change was undone: the engine keeps the previous state
└── InitFailedError     any of the above after something was created: the engine keeps it in state
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "CancelledError",
    "ChangeFailedError",
    "InitFailedError",
    "PluginError",
    "RefusedError",
    "RolledBackError",
    "TimedOutError",
]


class PluginError(Exception):
    """Anything that ends an operation; its text is all that a person sees."""


class RefusedError(PluginError):
    """AWS rejected a call permanently."""


class CancelledError(PluginError):
    """The run was cancelled while a change was under way."""


class TimedOutError(PluginError):
    """A change did not end in time."""


class ChangeFailedError(PluginError):
    """A change was accepted and then failed."""


class RolledBackError(ChangeFailedError):
    """A change was accepted and then undone, so that the previous state is still right."""


class InitFailedError(PluginError):
    """Something exists although the operation did not finish."""

    def __init__(self, reason: str, *, resource_id: str, state: dict[str, Any], inputs: dict[str, Any]) -> None:
        super().__init__(reason)
        self.resource_id = resource_id
        self.state = state
        self.inputs = inputs

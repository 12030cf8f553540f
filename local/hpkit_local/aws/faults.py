"""Faults injected by name: AWS's failures, on demand and repeatable.

A fault is `name=value`, optionally `name=value@PATTERN`. PATTERN (shell wildcards) limits it to operations
(`UpdateCluster`), to kinds of objects (`quota`) or, for `capacity`, to instance groups.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from hpkit_local.aws.errors import EndpointError
from hpkit_local.aws.service import services

__all__ = ["Fault", "Faults", "known_faults", "parse_fault"]

_OF_ALL: dict[str, str] = {
    "throttle": "probability that a call fails with ThrottlingException",
    "conflict": "probability that a call that changes something fails with its API's conflict error",
    "denied": "probability that a call fails because the caller lacks the permission",
    "expired": "probability that a call fails with ExpiredTokenException",
    "internal": "probability that a call fails with InternalFailure (HTTP 500)",
    "latency": "seconds by which each call is delayed",
    "failed-create": "probability that a creation ends in its failed status",
    "failed-update": "probability that an update ends in its failed status",
    "failed-delete": "probability that a deletion ends in its failed status",
    "slow-create": "seconds added to every creation",
    "slow-update": "seconds added to every update",
    "slow-delete": "seconds added to every deletion",
}


def known_faults() -> dict[str, str]:
    """Return each fault with its meaning: first the faults of all services, then of one."""
    return _OF_ALL | {name: meaning for service in services().values() for name, meaning in service.faults.items()}


@dataclass(frozen=True)
class Fault:
    """One active fault."""

    value: float
    pattern: str = "*"


def parse_fault(name: str, value: object) -> Fault:
    """Parse one fault; the error lists existing names and values."""
    meanings = known_faults()
    if name not in meanings:
        raise EndpointError(f"no fault is called {name!r}; known: {', '.join(sorted(meanings))}")
    is_probability = meanings[name].startswith("probability")
    text, _, pattern = str(value).partition("@")
    try:
        number = float(text)
    except ValueError:
        raise EndpointError(f"fault {name}: {text!r} is not a number ({meanings[name]})") from None
    if number < 0 or (is_probability and number > 1):
        limit = "between 0 and 1" if is_probability else "0 or more"
        raise EndpointError(f"fault {name}: {text} must be {limit} ({meanings[name]})")
    return Fault(number, pattern or "*")


class Faults:
    """The active faults and the dice they are thrown with."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._active: dict[str, Fault] = {}

    def update(self, changes: Mapping[str, object]) -> None:
        """Set faults by name; None takes one away. Nothing changes when one of them is wrong."""
        parsed = {name: None if value is None else parse_fault(name, value) for name, value in changes.items()}
        for name, fault in parsed.items():
            if fault is None:
                self._active.pop(name, None)
            else:
                self._active[name] = fault

    def clear(self) -> None:
        """Remove all faults."""
        self._active.clear()

    def describe(self) -> dict[str, str]:
        """Return the active faults as `name: value@pattern`."""
        return {name: f"{fault.value:g}@{fault.pattern}" for name, fault in sorted(self._active.items())}

    def value(self, name: str, target: str) -> float | None:
        """Return the value of a fault where it applies to `target`, else None."""
        fault = self._active.get(name)
        return fault.value if fault is not None and fnmatchcase(target, fault.pattern) else None

    def strikes(self, name: str, target: str) -> bool:
        """Throw the dice for a fault that is a probability."""
        value = self.value(name, target)
        return value is not None and self._rng.random() < value

    def spend(self, name: str, target: str) -> bool:
        """Use up one of a fault that is a count."""
        value = self.value(name, target)
        if not value:
            return False
        self._active[name] = Fault(value - 1, self._active[name].pattern)
        return True

"""What is asked of the account, what it answers, and what that comes to."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["Answers", "Call", "Failure", "Row", "Status", "missing", "ok", "unanswered", "unknown"]

Status = Literal["ok", "missing", "unknown"]
# The prefix of a service's actions in IAM, where it is not the SDK's name of the service.
_IAM_PREFIXES = {"service-quotas": "servicequotas"}
_DENIED = ("AccessDenied", "UnauthorizedOperation", "NotAuthorized", "Forbidden")


@dataclass(frozen=True, slots=True)
class Call:
    """A reading call of an AWS API, by the API's own names."""

    service: str
    operation: str
    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Return what tells this call from every other one."""
        params = ", ".join(f"{name}={value}" for name, value in sorted(self.params.items()))
        return f"{self.service}:{self.operation}({params})"

    @property
    def action(self) -> str:
        """Return the IAM action that allows the call."""
        return f"{_IAM_PREFIXES.get(self.service, self.service)}:{self.operation}"


@dataclass(frozen=True, slots=True)
class Failure:
    """A call that was not answered; code is the service's own, or the name of the SDK's exception."""

    action: str
    code: str
    message: str

    @property
    def is_absence(self) -> bool:
        """Return whether the service answered that there is no such thing."""
        return self.code in ("NoSuchEntity", "ResourceNotFoundException", "ResourceNotFound", "NotFound")

    @property
    def fix(self) -> str:
        """Return what lets the call be answered the next time."""
        if any(word in self.code for word in _DENIED):
            return f"Allow {self.action} to whoever runs this"
        return "Run it again when the service can be reached with these credentials"


class Answers:
    """What was answered: whole results (all pages), or failures."""

    def __init__(self, results: Mapping[str, Any]) -> None:
        self._results = dict(results)

    def of(self, call: Call) -> Any:
        """Return the result of a call, or its Failure; a call that was never made is a Failure too."""
        return self._results.get(call.key, Failure(call.action, "NotAsked", "the call was not made"))

    def has(self, call: Call) -> bool:
        """Return whether the call was made."""
        return call.key in self._results

    def joined(self, results: Mapping[str, Any]) -> "Answers":
        """Return these answers with more of them."""
        return Answers({**self._results, **results})


@dataclass(frozen=True, slots=True)
class Row:
    """One thing that the stack needs. why is for what is unknown; command is a line to copy."""

    area: str
    what: str
    status: Status
    found: str = ""
    needed: str = ""
    why: str = ""
    fix: str = ""
    command: str = ""

    def as_dict(self) -> dict[str, str]:
        """Return the row as plain values."""
        return {name: getattr(self, name) for name in self.__slots__}


def ok(area: str, what: str, *, found: str = "", needed: str = "") -> Row:
    """Return a row of something that is there."""
    return Row(area, what, "ok", found, needed)


def missing(area: str, what: str, *, found: str, needed: str, fix: str, command: str = "") -> Row:
    """Return a row of something that is not there, or not as it must be."""
    return Row(area, what, "missing", found, needed, "", fix, command)


def unknown(area: str, what: str, *, why: str, fix: str, found: str = "", needed: str = "") -> Row:
    """Return a row of something that could not be found out."""
    return Row(area, what, "unknown", found, needed, why, fix)


def unanswered(area: str, what: str, failure: Failure, *, needed: str = "") -> Row:
    """Return the row of a call that failed."""
    why = f"{failure.action}: {failure.code}: {failure.message}"
    return unknown(area, what, why=why, fix=failure.fix, needed=needed)

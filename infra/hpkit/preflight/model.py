"""The result of a check."""

from dataclasses import dataclass
from typing import Literal

from hpkit.clients.calls import FailedCall

__all__ = ["CheckResult", "Status", "call_failed", "changed", "missing", "ok", "unknown"]

Status = Literal["ok", "missing", "changed", "unknown"]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check: what the stack needs and what was found.

    why: the reason of an unknown result; fix: what to do about it; command: a shell command that does it.
    """

    area: str
    what: str
    status: Status
    found: str = ""
    needed: str = ""
    why: str = ""
    fix: str = ""
    command: str = ""


def ok(area: str, what: str, *, found: str = "", needed: str = "") -> CheckResult:
    """Return the result for something that is as it must be."""
    return CheckResult(area, what, "ok", found, needed)


def missing(area: str, what: str, *, found: str, needed: str, fix: str, command: str = "") -> CheckResult:
    """Return the result for something that is not there, or not as it must be."""
    return CheckResult(area, what, "missing", found, needed, "", fix, command)


def changed(area: str, what: str, *, found: str, needed: str, fix: str) -> CheckResult:
    """Return the result for an existing thing that differs from the program's version but doesn't fail `up`."""
    return CheckResult(area, what, "changed", found, needed, "", fix)


def unknown(area: str, what: str, *, why: str, fix: str, found: str = "", needed: str = "") -> CheckResult:
    """Return the result for something that could not be found out."""
    return CheckResult(area, what, "unknown", found, needed, why, fix)


def call_failed(area: str, what: str, failure: FailedCall, *, needed: str = "") -> CheckResult:
    """Return the result for a check whose call failed."""
    why = f"{failure.action}: {failure.code}: {failure.message}"
    return unknown(area, what, why=why, fix=failure.fix, needed=needed)

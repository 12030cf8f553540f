"""What can go wrong, as the person at the keyboard should read it: code, message, what to do.

PluginError
├── RefusedError        AWS said no, for good
├── CancelledError      the run was stopped
├── TimedOutError       a change took longer than its time-out
├── ChangeFailedError   a change ended in a failed status
└── PartlyDoneError     any of the above after something was made: the engine keeps it in state
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError, EndpointConnectionError, HTTPClientError

__all__ = [
    "CancelledError",
    "ChangeFailedError",
    "PartlyDoneError",
    "PluginError",
    "RefusedError",
    "TimedOutError",
    "classify",
    "refused",
]


class PluginError(Exception):
    """Anything that ends an operation; its text is all that a person sees."""


class RefusedError(PluginError):
    """AWS refused a call and will go on refusing it."""


class CancelledError(PluginError):
    """The run was cancelled while a change was under way."""


class TimedOutError(PluginError):
    """A change did not end in time."""


class ChangeFailedError(PluginError):
    """A change was accepted and then failed."""


class PartlyDoneError(PluginError):
    """Something exists although the operation did not finish."""

    def __init__(self, reason: str, *, resource_id: str, state: dict[str, Any], inputs: dict[str, Any]) -> None:
        super().__init__(reason)
        self.resource_id = resource_id
        self.state = state
        self.inputs = inputs


_THROTTLES: Final = frozenset(
    {
        "ThrottlingException",
        "Throttling",
        "ThrottledException",
        "TooManyRequestsException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "SlowDown",
    }
)
_UNSURE: Final = frozenset({"InternalFailure", "InternalServerError", "InternalServerException", "ServiceUnavailable"})
_CONFLICTS: Final = frozenset({"ConflictException", "ResourceInUse", "ResourceInUseException"})
_GONE: Final = frozenset({"ResourceNotFound", "ResourceNotFoundException"})
_SERVER_ERROR: Final = 500
# SageMaker says some "not found" with ValidationException: "Could not find …", "… does not exist".
_GONE_TEXT: Final = re.compile(r"^(could not find|cluster \S+ (does not exist|not found))", re.IGNORECASE)
_ROLE_TEXT: Final = re.compile(r"(cannot|can't|unable to|could not) assume", re.IGNORECASE)
_CHECKING_TEXT: Final = re.compile(r"deep health checks? (run|is|are)", re.IGNORECASE)

_ADVICE: Final = {
    "AccessDeniedException": "give the caller this permission, or set hyperpod:profile or hyperpod:assumeRoleArn",
    "UnrecognizedClientException": "check the credentials: `aws sts get-caller-identity`",
    "ExpiredTokenException": "the credentials have expired: sign in again",
    "InvalidClientTokenId": "check the credentials: `aws sts get-caller-identity`",
    "ResourceLimitExceeded": "ask for a higher Service Quota for SageMaker (`… for cluster usage`), or use fewer",
    "ConflictException": "another change holds it: wait for that to end, or free what the message names, run again",
    "ResourceInUse": "it exists already: choose another name, or `pulumi import` it",
    "ResourceNotFound": "run `pulumi refresh`: it was deleted outside of Pulumi",
    "ValidationException": "correct the property that the message names",
}


def classify(error: Exception) -> str:
    """Say what kind of failure a call met: throttle, unsure, conflict, gone, role, checking or refused."""
    if isinstance(error, (EndpointConnectionError, HTTPClientError)):
        return "unsure"
    if not isinstance(error, ClientError):
        return "refused"
    code = error.response.get("Error", {}).get("Code", "")
    text = error.response.get("Error", {}).get("Message", "")
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    for kind, codes in (("throttle", _THROTTLES), ("conflict", _CONFLICTS), ("gone", _GONE)):
        if code in codes:
            return kind
    if code in _UNSURE or status >= _SERVER_ERROR:
        return "unsure"
    if code == "ValidationException":
        return next(_by_text(text), "refused")
    return "refused"


def _by_text(text: str) -> Iterator[str]:
    for kind, pattern in (("gone", _GONE_TEXT), ("role", _ROLE_TEXT), ("checking", _CHECKING_TEXT)):
        if pattern.search(text):
            yield kind


def refused(operation: str, error: Exception) -> RefusedError:
    """Turn what botocore raised into one readable sentence."""
    if isinstance(error, ClientError):
        detail = error.response.get("Error", {})
        code, text = detail.get("Code", "Unknown"), detail.get("Message", "no message")
        advice = _ADVICE.get(code, "look the code up in the API reference of " + operation)
        return RefusedError(f"{operation} was refused ({code}): {text}. What to do: {advice}.")
    if isinstance(error, BotoCoreError):
        return RefusedError(
            f"{operation} could not be sent ({type(error).__name__}): {error} What to do: check hyperpod:region, "
            "hyperpod:endpoint, hyperpod:profile and the credentials."
        )
    return RefusedError(f"{operation} failed ({type(error).__name__}): {error}")

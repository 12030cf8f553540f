"""Errors as users read them: code, message, what to do.

PluginError
├── RejectedError       AWS rejected the request for good
├── CancelledError      the run was stopped
├── TimedOutError       a change took longer than its time-out
├── ChangeFailedError   a change ended in a failed status
│   └── RolledBackError  a change was undone: the engine keeps the previous state
└── InitFailedError     any of the above after something was created: the engine keeps it in state
"""

from collections.abc import Mapping
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

__all__ = [
    "CancelledError",
    "ChangeFailedError",
    "InitFailedError",
    "PluginError",
    "RejectedError",
    "RolledBackError",
    "TimedOutError",
    "rejected",
]


class PluginError(Exception):
    """Anything that ends an operation; its text is all that a person sees."""


class RejectedError(PluginError):
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


_ADVICE: Final = {
    "AccessDeniedException": "grant the caller this permission",
    "UnrecognizedClientException": "check the credentials: `aws sts get-caller-identity`",
    "ExpiredTokenException": "the credentials have expired: sign in again",
    "InvalidClientTokenId": "check the credentials: `aws sts get-caller-identity`",
    "ConflictException": "another change is in progress: wait for it, or remove what the message names, and run again",
    "ResourceInUse": "it already exists: choose another name, or `pulumi import` it",
    "ResourceNotFound": "run `pulumi refresh`: it was deleted outside of Pulumi",
    "ValidationException": "correct the property that the message names",
}


def rejected(
    operation: str,
    error: Exception,
    *,
    advice: Mapping[str, str] | None = None,
    settings: str = "the plugin's region, endpoint, profile",
) -> RejectedError:
    """Turn what botocore raised into one sentence.

    `advice` adds to the general text for an error code. `settings` names the settings that decide where a call is sent.
    """
    if isinstance(error, ClientError):
        detail = error.response.get("Error", {})
        code, text = detail.get("Code", "Unknown"), detail.get("Message", "no message")
        remedy = {**_ADVICE, **(advice or {})}.get(code, "look the code up in the API reference of " + operation)
        return RejectedError(f"{operation} was rejected ({code}): {text}. To fix: {remedy}.")
    if isinstance(error, BotoCoreError):
        return RejectedError(
            f"{operation} couldn't be sent ({type(error).__name__}): {error} To fix: check {settings} and the "
            "credentials."
        )
    return RejectedError(f"{operation} failed ({type(error).__name__}): {error}")

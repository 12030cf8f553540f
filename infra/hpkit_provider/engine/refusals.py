"""A failed call to AWS as one readable sentence: code, message, what to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from botocore.exceptions import BotoCoreError, ClientError

from hpkit_provider.engine.errors import RefusedError

__all__ = ["refused"]

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


def refused(
    operation: str,
    error: Exception,
    *,
    advice: Mapping[str, str] | None = None,
    settings: str = "the plugin's region, endpoint, profile",
) -> RefusedError:
    """Turn what botocore raised into one sentence.

    `advice` adds to the general text for an error code. `settings` names the settings that decide where a call is sent.
    """
    if isinstance(error, ClientError):
        detail = error.response.get("Error", {})
        code, text = detail.get("Code", "Unknown"), detail.get("Message", "no message")
        remedy = {**_ADVICE, **(advice or {})}.get(code, "look the code up in the API reference of " + operation)
        return RefusedError(f"{operation} was rejected ({code}): {text}. What to do: {remedy}.")
    if isinstance(error, BotoCoreError):
        return RefusedError(
            f"{operation} couldn't be sent ({type(error).__name__}): {error} What to do: check {settings} and the "
            "credentials."
        )
    return RefusedError(f"{operation} failed ({type(error).__name__}): {error}")

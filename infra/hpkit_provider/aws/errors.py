"""Errors of the SageMaker API and statuses of its objects: what kind each is, and what to do about it."""

import re
from collections.abc import Mapping
from typing import Final, Literal

from botocore.exceptions import ClientError, EndpointConnectionError, HTTPClientError

from hpkit_provider.engine import errors
from hpkit_provider.engine.errors import RejectedError

__all__ = ["ErrorKind", "classify", "classify_status", "rejected"]

# "role" is a role that cannot be assumed (yet), "rejected" everything that trying again does not help.
ErrorKind = Literal["throttled", "transient", "conflict", "not found", "role", "health check running", "rejected"]

_CODES: Final[Mapping[ErrorKind, frozenset[str]]] = {
    "throttled": frozenset(
        {
            "ThrottlingException",
            "Throttling",
            "ThrottledException",
            "TooManyRequestsException",
            "RequestLimitExceeded",
            "RequestThrottled",
            "SlowDown",
        }
    ),
    "conflict": frozenset({"ConflictException", "ResourceInUse", "ResourceInUseException"}),
    "not found": frozenset({"NotFoundException", "ResourceNotFound", "ResourceNotFoundException"}),
    "transient": frozenset({"InternalFailure", "InternalServerError", "InternalServerException", "ServiceUnavailable"}),
}
_SERVER_ERROR: Final = 500
# Errors for which SageMaker always uses ValidationException; for missing things: "Could not find …", "… does not
# exist".
_TEXTS: Final[Mapping[ErrorKind, re.Pattern[str]]] = {
    "not found": re.compile(r"^(could not find|cluster \S+ (does not exist|not found))", re.IGNORECASE),
    "role": re.compile(r"(cannot|can't|unable to|could not) assume", re.IGNORECASE),
    "health check running": re.compile(r"deep health checks? (run|is|are)", re.IGNORECASE),
}

_ADVICE: Final = {
    "AccessDeniedException": "grant the caller this permission, or set hyperpod:profile or hyperpod:assumeRoleArn",
    "ResourceLimitExceeded": "request a higher SageMaker quota in Service Quotas (`… for cluster usage`), or use fewer",
}
_SETTINGS: Final = "hyperpod:region, hyperpod:endpoint, hyperpod:profile"


def classify(error: Exception) -> ErrorKind:
    """Classify the failure of a call."""
    if isinstance(error, (EndpointConnectionError, HTTPClientError)):
        return "transient"
    if not isinstance(error, ClientError):
        return "rejected"
    code = error.response.get("Error", {}).get("Code", "")
    text = error.response.get("Error", {}).get("Message", "")
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    for kind, codes in _CODES.items():
        if code in codes:
            return kind
    if status >= _SERVER_ERROR:
        return "transient"
    if code == "ValidationException":
        return next((kind for kind, pattern in _TEXTS.items() if pattern.search(text)), "rejected")
    return "rejected"


def rejected(operation: str, error: Exception) -> RejectedError:
    """Turn what botocore raised into one readable sentence."""
    return errors.rejected(operation, error, advice=_ADVICE, settings=_SETTINGS)


_StatusKind = Literal["modifying", "ready", "failed", "deleted"]

_READY: Final = frozenset({"InService", "Created", "Updated"})
_FAILED: Final = frozenset(
    {
        "Failed",
        "CreateFailed",
        "CreateRollbackFailed",
        "UpdateFailed",
        "UpdateRollbackFailed",
        "DeleteFailed",
        "DeleteRollbackFailed",
    }
)


def classify_status(status: str | None) -> _StatusKind:
    """Classify a status, None for a missing object; unknown ones count as modifying."""
    if status is None or status == "Deleted":
        return "deleted"
    if status in _READY:
        return "ready"
    return "failed" if status in _FAILED else "modifying"

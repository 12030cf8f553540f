"""Read-only AWS API calls and their results."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["ApiCall", "FailedCall", "Responses"]

# The prefix of a service's actions in IAM, if it isn't the SDK's name of the service.
_IAM_PREFIXES = {"service-quotas": "servicequotas", "sso-admin": "sso"}
# Actions whose name differs from their operation (Service Authorization Reference).
_IAM_ACTIONS = {"s3:GetBucketEncryption": "s3:GetEncryptionConfiguration"}
_DENIED = ("AccessDenied", "UnauthorizedOperation", "NotAuthorized", "Forbidden")
# Error codes of services, and names of the SDK's exceptions for IAM Identity Center.
_EXPIRED = ("ExpiredToken", "RequestExpired", "SSOToken", "TokenRetrieval")


@dataclass(frozen=True, slots=True)
class ApiCall:
    """A read-only call of an AWS API, with the API's own names."""

    service: str
    operation: str
    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Return a key that is unique for service, operation and parameters."""
        params = ", ".join(f"{name}={value}" for name, value in sorted(self.params.items()))
        return f"{self.service}:{self.operation}({params})"

    @property
    def action(self) -> str:
        """Return the IAM action that allows the call."""
        action = f"{_IAM_PREFIXES.get(self.service, self.service)}:{self.operation}"
        return _IAM_ACTIONS.get(action, action)


@dataclass(frozen=True, slots=True)
class FailedCall:
    """A failed call; code is the service's error code, or the name of the SDK's exception."""

    action: str
    code: str
    message: str

    def __str__(self) -> str:
        """Return what failed, and advice."""
        return f"{self.action}: {self.code}: {self.message}. {self.fix}"

    @property
    def is_absence(self) -> bool:
        """Return whether the service reports that the resource doesn't exist."""
        return self.code in (
            "NoSuchEntity",
            "ResourceNotFoundException",
            "ResourceNotFound",
            "NotFound",
            "NotFoundException",
            "NoSuchBucket",
        )

    @property
    def is_denial(self) -> bool:
        """Return whether the caller lacks the permission."""
        return any(word in self.code for word in _DENIED)

    @property
    def fix(self) -> str:
        """Return advice that makes the call succeed next time."""
        if self.is_denial:
            return f"Allow {self.action} to the caller"
        if any(word in self.code for word in _EXPIRED):
            return "These credentials have expired: log in again, such as with `aws sso login`"
        if self.is_absence:
            return "Check the name, the region, and the account of these credentials"
        if "Throttl" in self.code or "NextToken" in self.code:
            return "Run it again in a minute"
        if self.code == "UnsupportedOperation":
            return "Only AWS supports this call: run the command with credentials for an AWS account"
        return "Run it again when the service can be reached with these credentials"


class Responses:
    """Results by call: complete ones (all pages), or failures."""

    def __init__(self, results: Mapping[str, Any]) -> None:
        self._results = dict(results)

    def of(self, call: ApiCall) -> Any:
        """Return the result of a call, or its FailedCall; a call that was never made is a FailedCall too."""
        return self._results.get(call.key, FailedCall(call.action, "NotAsked", "the call was not made"))

    def merged(self, results: Mapping[str, Any]) -> "Responses":
        """Return these results with additional ones."""
        return Responses({**self._results, **results})

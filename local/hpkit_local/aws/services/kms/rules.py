"""Requests that KMS rejects and moto doesn't: docs/reference/local-cloud-limits.md lists what is still accepted."""

from __future__ import annotations

from typing import Final

from hpkit_local.aws.api import rule
from hpkit_local.aws.backend import Context, Record
from hpkit_local.aws.errors import ServiceError
from hpkit_local.aws.services.iam.rules import statements

__all__: list[str] = []

_KEY_WAIT: Final = range(7, 31)


@rule("kms", "CreateKey", "PutKeyPolicy")
def _key_policy(_: Context, params: Record) -> None:
    if "Policy" in params:
        statements(params["Policy"], code="MalformedPolicyDocumentException")


# Source: https://docs.aws.amazon.com/kms/latest/APIReference/API_ScheduleKeyDeletion.html
@rule("kms", "ScheduleKeyDeletion")
def _key_wait(_: Context, params: Record) -> None:
    days = params.get("PendingWindowInDays", _KEY_WAIT[-1])
    if days not in _KEY_WAIT:
        raise ServiceError(
            "ValidationException", f"PendingWindowInDays {days} is not from {_KEY_WAIT[0]} to {_KEY_WAIT[-1]}"
        )

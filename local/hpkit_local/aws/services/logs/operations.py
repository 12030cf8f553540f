"""Operations that moto's CloudWatch Logs lacks: another key for an existing log group."""

from __future__ import annotations

from typing import Any

from hpkit_local.aws.api import operation
from hpkit_local.aws.backend import Context, Record
from hpkit_local.aws.errors import ServiceError

__all__: list[str] = []


@operation("logs", "AssociateKmsKey")
def associate_kms_key(ctx: Context, params: Record) -> Record:
    """Encrypt new entries of a log group with another key."""
    _set_key(ctx, params, params["kmsKeyId"])
    return {}


@operation("logs", "DisassociateKmsKey")
def disassociate_kms_key(ctx: Context, params: Record) -> Record:
    """Encrypt new entries of a log group with the service's own key."""
    _set_key(ctx, params, None)
    return {}


# Source: https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_AssociateKmsKey.html
def _set_key(ctx: Context, params: Record, key: str | None) -> None:
    groups: dict[str, Any] = ctx.backend.moto.backend("logs", ctx.region).groups
    name = params.get("logGroupName", "")
    if name not in groups:
        raise ServiceError("ResourceNotFoundException", "The specified log group does not exist.")
    groups[name].kms_key_id = key
    ctx.backend.touched("logs")

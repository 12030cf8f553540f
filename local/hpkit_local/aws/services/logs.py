"""Amazon CloudWatch Logs: moto, and another key for an existing log group."""

from typing import Any, Final

from hpkit_local.aws.api import operation, rule
from hpkit_local.aws.backend import Context, Record
from hpkit_local.aws.errors import ServiceError
from hpkit_local.aws.service import Service, declare

__all__: list[str] = []

declare(
    Service(
        "logs",
        rejects_with="InvalidParameterException",
        source="https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_CreateLogGroup.html",
        moto="logs",
    )
)


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


_RETENTION: Final = frozenset(
    (1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653)
)


# Source: https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_CreateLogGroup.html
@rule("logs", "CreateLogGroup")
def _log_group(_: Context, params: Record) -> None:
    if params["logGroupName"].startswith("aws/"):
        raise ServiceError("InvalidParameterException", "Log groups starting with aws/ are reserved for AWS.")


# Source: https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutRetentionPolicy.html
@rule("logs", "PutRetentionPolicy")
def _retention(_: Context, params: Record) -> None:
    days = params["retentionInDays"]
    if days not in _RETENTION:
        allowed = ", ".join(map(str, sorted(_RETENTION)))
        raise ServiceError("InvalidParameterException", f"retentionInDays {days} is not one of {allowed}")

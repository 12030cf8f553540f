"""Requests that CloudWatch Logs rejects and moto doesn't.

docs/reference/local-cloud-limits.md lists what is still accepted.
"""

from __future__ import annotations

from typing import Final

from hpkit_local.aws.api import rule
from hpkit_local.aws.backend import Context, Record
from hpkit_local.aws.errors import ServiceError

__all__: list[str] = []

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

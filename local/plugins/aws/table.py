"""The table: every type that the stand-in answers for."""

from __future__ import annotations

from typing import Final

from local.plugins.aws.kind import Kind
from local.plugins.aws.services import (
    amp,
    cloudwatch,
    eks,
    eks_access,
    eks_addons,
    endpoints,
    fsx,
    gateways,
    grafana,
    iam,
    iam_policies,
    kms,
    routing,
    rules,
    s3,
    s3_object,
    s3_settings,
    security,
    vpc,
)

__all__ = ["KINDS"]

_MODULES: Final = (
    *(vpc, gateways, routing, endpoints, security, rules),
    *(s3, s3_settings, s3_object, fsx),
    *(iam, iam_policies, kms),
    *(eks, eks_addons, eks_access),
    *(cloudwatch, amp, grafana),
)
KINDS: Final[dict[str, Kind]] = {kind.token: kind for module in _MODULES for kind in module.KINDS}

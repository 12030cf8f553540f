"""The table: every type that the fake plugin answers for."""

from __future__ import annotations

from typing import Final

from hpkit_local.plugins.aws.resource_type import ResourceType
from hpkit_local.plugins.aws.services import (
    amp,
    cloudwatch,
    ecr,
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
    sns,
    vpc,
)

__all__ = ["RESOURCE_TYPES"]

_MODULES: Final = (
    *(vpc, gateways, routing, endpoints, security, rules),
    *(s3, s3_settings, s3_object, fsx, ecr),
    *(iam, iam_policies, kms),
    *(eks, eks_addons, eks_access),
    *(cloudwatch, amp, grafana, sns),
)
RESOURCE_TYPES: Final[dict[str, ResourceType]] = {
    kind.token: kind for module in _MODULES for kind in module.RESOURCE_TYPES
}

"""The role that an add-on gets from its configuration values and assumes through the cluster's OIDC provider.

Sources: Helm chart of the inference operator in aws/sagemaker-hyperpod-cli, _validateRequiredValues.tpl (the values
that rendering requires); SageMaker HyperPod developer guide, "IAM trust relationship issue" (the trust that the start
requires).
"""

from __future__ import annotations

import json
from typing import Any

from hpkit_local.aws.backend import Context, Record
from hpkit_local.aws.services.eks.addon_versions import AddonInfo
from hpkit_local.aws.services.iam.references import web_identities

__all__ = ["takes_configured_role", "unrendered"]

_REQUIRED = ("executionRoleArn", "tlsCertificateS3Bucket")
_PREFIX = "SageMakerHyperPodInference"


def unrendered(addon: Record) -> str:
    """Return why the chart of the add-on cannot be rendered with its values, or nothing."""
    values = _values(addon)
    for name in _REQUIRED:
        if not values.get(name):
            return f"execution error: {name} must be set"
    if not _role_name(values).startswith(_PREFIX):
        return f"execution error: executionRoleArn must have a role name with prefix '{_PREFIX}'"
    return ""


def takes_configured_role(ctx: Context, addon: Record, info: AddonInfo) -> bool:
    """Return whether pods of the add-on can assume the role, through an existing provider that the role trusts."""
    issuer = ctx.table("eks")[addon["clusterName"]]["identity"]["oidc"]["issuer"].removeprefix("https://")
    subjects = {f"system:serviceaccount:{info.namespace}:{name}" for name, _ in info.accounts}
    return bool(subjects & web_identities(ctx, str(_values(addon)["executionRoleArn"]), issuer))


def _values(addon: Record) -> dict[str, Any]:
    found = json.loads(addon.get("configurationValues") or "{}")
    return found if isinstance(found, dict) else {}


def _role_name(values: dict[str, Any]) -> str:
    return str(values["executionRoleArn"]).rpartition("/")[2]

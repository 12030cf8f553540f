"""Amazon Managed Service for Prometheus: moto, and alert manager definitions."""

import base64
from typing import Any

import yaml

from hpkit_local.aws.api import describes, existing, operation
from hpkit_local.aws.backend import Context, Record
from hpkit_local.aws.errors import ServiceError
from hpkit_local.aws.service import Service, declare

__all__: list[str] = []

declare(
    Service(
        "amp",
        rejects_with="ValidationException",
        source="https://docs.aws.amazon.com/prometheus/latest/APIReference/CommonErrors.html",
        moto="amp",
        signs_as="aps",
    )
)


_TABLE = "alertmanager"


def _reject(problem: str) -> ServiceError:
    return ServiceError("ValidationException", f"error validating Alertmanager config: {problem}")


# Inferred from: https://docs.aws.amazon.com/prometheus/latest/userguide/AMP-alertmanager-config.html
def _check(data: str) -> None:
    """Reject a definition that the service can't read, and receivers that it doesn't have.

    SNS is the only receiver, in the region of its topic. Source: Amazon Managed Service for Prometheus user guide,
    "Create an alert manager configuration file", and "Configure alert manager to send messages to your Amazon SNS
    topic".
    """
    document = _mapping(base64.b64decode(data).decode(), "the definition")
    config = _mapping(document.get("alertmanager_config") or "", "alertmanager_config")
    receivers = {each.get("name"): each for each in config.get("receivers") or ()}
    wanted = (config.get("route") or {}).get("receiver")
    if wanted not in receivers:
        raise _reject(f"undefined receiver {wanted!r} used in route")
    for name, receiver in receivers.items():
        others = sorted(key for key in receiver if key.endswith("_configs") and key != "sns_configs")
        if others:
            # Source: https://docs.aws.amazon.com/prometheus/latest/userguide/AMP-alertmanager-config.html
            raise _reject(f"receiver {name!r} has {', '.join(others)}: only sns_configs are supported")
        for sns in receiver.get("sns_configs") or ():
            if not sns.get("topic_arn") or not (sns.get("sigv4") or {}).get("region"):
                # Source: https://docs.aws.amazon.com/prometheus/latest/userguide/AMP-alertmanager-config.html
                raise _reject(f"receiver {name!r}: sns_configs need topic_arn and sigv4.region")


# Inferred from: https://docs.aws.amazon.com/prometheus/latest/userguide/AMP-alertmanager-config.html
def _mapping(text: str, field: str) -> dict[str, Any]:
    try:
        mapping = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise _reject(f"{field}: {error}") from None
    if not isinstance(mapping, dict):
        raise _reject(f"{field} is not a mapping")
    return mapping


# Source: https://docs.aws.amazon.com/prometheus/latest/APIReference/API_DescribeWorkspace.html
def _require_workspace(ctx: Context, workspace: str) -> None:
    if workspace not in ctx.backend.moto.backend("amp", ctx.region).workspaces:
        raise ServiceError("ResourceNotFoundException", f"Workspace not found: {workspace}")
    # A definition is deleted with its workspace, which moto deletes without notice.
    backend = ctx.backend.moto.backend("amp", ctx.region)
    for gone in [name for name in ctx.table(_TABLE) if name not in backend.workspaces]:
        del ctx.table(_TABLE)[gone]


# Source: https://docs.aws.amazon.com/prometheus/latest/APIReference/API_DescribeAlertManagerDefinition.html
def _find(ctx: Context, params: Record) -> Record:
    workspace = params["workspaceId"]
    _require_workspace(ctx, workspace)
    return existing(ctx.table(_TABLE), workspace, f"Alert manager definition not found for workspace: {workspace}")


# Source: https://docs.aws.amazon.com/prometheus/latest/APIReference/API_CreateAlertManagerDefinition.html
@operation("amp", "CreateAlertManagerDefinition")
def create_alert_manager_definition(ctx: Context, params: Record) -> Record:
    """Set the only definition of a workspace."""
    workspace = params["workspaceId"]
    _require_workspace(ctx, workspace)
    _check(params["data"])
    if workspace in ctx.table(_TABLE):
        message = f"Alert manager definition already exists for workspace: {workspace}"
        raise ServiceError("ConflictException", message)
    status = {"statusCode": "ACTIVE"}
    definition = {"data": params["data"], "createdAt": ctx.now, "modifiedAt": ctx.now, "status": status}
    ctx.table(_TABLE)[workspace] = definition
    return {"status": status}


@operation("amp", "PutAlertManagerDefinition")
def put_alert_manager_definition(ctx: Context, params: Record) -> Record:
    """Replace the definition."""
    definition = _find(ctx, params)
    _check(params["data"])
    definition.update(data=params["data"], modifiedAt=ctx.now)
    return {"status": definition["status"]}


describes("amp", "DescribeAlertManagerDefinition", _find, member="alertManagerDefinition")


@operation("amp", "DeleteAlertManagerDefinition")
def delete_alert_manager_definition(ctx: Context, params: Record) -> Record:
    """Delete the definition."""
    _find(ctx, params)
    del ctx.table(_TABLE)[params["workspaceId"]]
    return {}

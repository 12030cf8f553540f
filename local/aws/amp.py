"""What moto's Managed Service for Prometheus lacks: alert manager definitions."""

from __future__ import annotations

from local.aws.api import operation
from local.aws.backend import Context, Record
from local.aws.errors import ServiceError

__all__: list[str] = []

_TABLE = "alertmanager"


def _require_workspace(ctx: Context, workspace: str) -> None:
    if workspace not in ctx.backend.moto.backend("amp", ctx.region).workspaces:
        raise ServiceError("ResourceNotFoundException", f"Workspace not found: {workspace}", status=404)
    # A definition goes with its workspace, which moto deletes without telling.
    backend = ctx.backend.moto.backend("amp", ctx.region)
    for gone in [name for name in ctx.table(_TABLE) if name not in backend.workspaces]:
        del ctx.table(_TABLE)[gone]


def _find(ctx: Context, workspace: str) -> Record:
    _require_workspace(ctx, workspace)
    found = ctx.table(_TABLE).get(workspace)
    if found is None:
        message = f"Alert manager definition not found for workspace: {workspace}"
        raise ServiceError("ResourceNotFoundException", message, status=404)
    return found


@operation("amp", "CreateAlertManagerDefinition")
def create_alert_manager_definition(ctx: Context, params: Record) -> Record:
    """Set the one definition of a workspace."""
    workspace = params["workspaceId"]
    _require_workspace(ctx, workspace)
    if workspace in ctx.table(_TABLE):
        message = f"Alert manager definition already exists for workspace: {workspace}"
        raise ServiceError("ConflictException", message, status=409)
    status = {"statusCode": "ACTIVE"}
    definition = {"data": params["data"], "createdAt": ctx.now, "modifiedAt": ctx.now, "status": status}
    ctx.table(_TABLE)[workspace] = definition
    return {"status": status}


@operation("amp", "PutAlertManagerDefinition")
def put_alert_manager_definition(ctx: Context, params: Record) -> Record:
    """Replace the definition."""
    found = _find(ctx, params["workspaceId"])
    found.update(data=params["data"], modifiedAt=ctx.now)
    return {"status": found["status"]}


@operation("amp", "DescribeAlertManagerDefinition")
def describe_alert_manager_definition(ctx: Context, params: Record) -> Record:
    """Return the definition."""
    return {"alertManagerDefinition": _find(ctx, params["workspaceId"])}


@operation("amp", "DeleteAlertManagerDefinition")
def delete_alert_manager_definition(ctx: Context, params: Record) -> Record:
    """Take the definition away."""
    _find(ctx, params["workspaceId"])
    del ctx.table(_TABLE)[params["workspaceId"]]
    return {}

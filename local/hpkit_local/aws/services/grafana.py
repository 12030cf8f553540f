"""Amazon Managed Grafana: workspaces, their users, and tags."""

import json

from hpkit_local.aws.api import describes, existing, operation, page, tag_operations
from hpkit_local.aws.backend import Context, Record
from hpkit_local.aws.errors import ServiceError
from hpkit_local.aws.service import MACHINES, Machine, Service, action, declare
from hpkit_local.aws.services.iam import require_role

__all__: list[str] = []

declare(
    Service(
        "grafana",
        rejects_with="ValidationException",
        machines=(
            Machine("grafana", "create", "CREATING", "ACTIVE", "CREATION_FAILED", 180),
            Machine("grafana", "update", "UPDATING", "ACTIVE", "UPDATE_FAILED", 30),
            Machine("grafana", "delete", "DELETING", "", "DELETION_FAILED", 60),
        ),
    )
)


TABLE = "grafana"
DEFAULT_VERSION = "10.4"
VERSIONS = ("8.4", "9.4", "10.4", "12.4")  # Amazon Managed Grafana user guide, "Differences between Grafana versions"
# Amazon Managed Grafana user guide, "Configure a Amazon Managed Grafana workspace".
_CONFIGURED = {"unifiedAlerting": {"enabled": False}, "plugins": {"pluginAdminEnabled": False}}
_HIDDEN = ("arn", "authenticationProviders", "configuration", "organization", "permissions")
# How a request names a member, and how a workspace does.
_MEMBERS = {
    "accountAccessType": "accountAccessType",
    "organizationRoleName": "organizationRoleName",
    "permissionType": "permissionType",
    "stackSetName": "stackSetName",
    "workspaceDataSources": "dataSources",
    "workspaceDescription": "description",
    "workspaceName": "name",
    "workspaceNotificationDestinations": "notificationDestinations",
    "workspaceOrganizationalUnits": "organizationalUnits",
    "workspaceRoleArn": "workspaceRoleArn",
    "vpcConfiguration": "vpcConfiguration",
    "networkAccessControl": "networkAccessControl",
    "grafanaVersion": "grafanaVersion",
    "kmsKeyId": "kmsKeyId",
}
_SUMMARY = ("created", "description", "endpoint", "grafanaVersion", "id", "modified", "name", "status", "tags")


def arn_of(ctx: Context, workspace: str) -> str:
    """Return the ARN by which a workspace is tagged."""
    return ctx.arn("grafana", f"/workspaces/{workspace}")


# Source: https://docs.aws.amazon.com/grafana/latest/APIReference/API_UpdateWorkspace.html
def require_workspace(ctx: Context, workspace: str, *, active: bool = False) -> Record:
    """Return a workspace by id, or Grafana's own rejection."""
    record = existing(ctx.table(TABLE), workspace, f"Workspace {workspace} does not exist")
    if active and record["status"] != "ACTIVE":
        raise ServiceError("ConflictException", f"Workspace {workspace} is in status {record['status']}")
    return record


def _document(workspace: Record) -> Record:
    shown = {name: value for name, value in workspace.items() if name not in _HIDDEN and value is not None}
    return {**shown, "authentication": _summary(workspace)}


def _summary(workspace: Record) -> Record:
    saml = {"samlConfigurationStatus": "NOT_CONFIGURED"} if "SAML" in workspace["authenticationProviders"] else {}
    return {"providers": workspace["authenticationProviders"], **saml}


# Inferred from: https://docs.aws.amazon.com/grafana/latest/userguide/authentication-in-AMG-SSO.html
def _check(ctx: Context, params: Record) -> None:
    if params.get("workspaceRoleArn"):
        purpose, trusted = "the workspace role", "grafana.amazonaws.com"
        require_role(ctx, params["workspaceRoleArn"], trusts=trusted, purpose=purpose, code="ValidationException")
    version = params.get("grafanaVersion", DEFAULT_VERSION)
    if version not in VERSIONS:
        # Source: https://docs.aws.amazon.com/grafana/latest/APIReference/API_ListVersions.html
        raise ServiceError("ValidationException", f"grafanaVersion {version} is not one of {', '.join(VERSIONS)}")


@operation("grafana", "CreateWorkspace")
def create_workspace(ctx: Context, params: Record) -> Record:
    """Begin to create a workspace; names don't need to be unique."""
    _check(ctx, params)
    identifier = "g-" + ctx.token(10, "0123456789abcdef")
    workspace: Record = {
        "dataSources": [],
        "grafanaVersion": DEFAULT_VERSION,
        **{told: params[name] for name, told in _MEMBERS.items() if name in params},
        "id": identifier,
        "arn": arn_of(ctx, identifier),
        "endpoint": f"{identifier}.grafana-workspace.{ctx.region}.amazonaws.com",
        "created": ctx.now,
        "modified": ctx.now,
        "tags": params.get("tags", {}),
        "authenticationProviders": params["authenticationProviders"],
        "configuration": _configuration(params),
        "permissions": [],
    }
    ctx.table(TABLE)[identifier] = workspace
    return _begin(ctx, workspace, "create")


def _begin(ctx: Context, workspace: Record, change: str) -> Record:
    """Begin a change of a workspace, and return the answer."""
    workspace["status"] = ctx.begin(f"grafana.{change}", "grafana.changed", identifier=workspace["id"], change=change)
    return {"workspace": _document(workspace)}


@action("grafana.changed")
def changed(ctx: Context, *, identifier: str, change: str, failure: str = "") -> None:
    """Apply: the workspace is there, is changed or gone, or that failed."""
    workspace = ctx.table(TABLE).get(identifier)
    if workspace is None:
        return
    machine = MACHINES[f"grafana.{change}"]
    if change == "delete" and not failure:
        del ctx.table(TABLE)[identifier]
        return
    workspace["status"] = machine.failed if failure else machine.done


describes(
    "grafana",
    "DescribeWorkspace",
    lambda ctx, params: _document(require_workspace(ctx, params["workspaceId"])),
    member="workspace",
)


@operation("grafana", "ListWorkspaces")
def list_workspaces(ctx: Context, params: Record) -> Record:
    """Summaries in pages."""
    summaries = [
        {
            **{name: workspace[name] for name in _SUMMARY if workspace.get(name) is not None},
            "authentication": _summary(workspace),
        }
        for workspace in ctx.table(TABLE).values()
    ]
    return page("workspaces", summaries, params)


@operation("grafana", "UpdateWorkspace")
def update_workspace(ctx: Context, params: Record) -> Record:
    """Change what the request contains; separate flags remove the two networks."""
    workspace = require_workspace(ctx, params["workspaceId"], active=True)
    _check(ctx, params)
    workspace.update({told: params[name] for name, told in _MEMBERS.items() if name in params}, modified=ctx.now)
    removed = {
        "vpcConfiguration": params.get("removeVpcConfiguration"),
        "networkAccessControl": params.get("removeNetworkAccessConfiguration"),
    }
    for member, gone in removed.items():
        if gone:
            workspace.pop(member, None)
    return _begin(ctx, workspace, "update")


@operation("grafana", "DeleteWorkspace")
def delete_workspace(ctx: Context, params: Record) -> Record:
    """Begin to delete a workspace."""
    workspace = require_workspace(ctx, params["workspaceId"])
    if workspace["status"] in ("CREATING", "UPDATING", "DELETING"):
        require_workspace(ctx, params["workspaceId"], active=True)
    return _begin(ctx, workspace, "delete")


# Inferred from: https://docs.aws.amazon.com/grafana/latest/userguide/AMG-configure-workspace.html
def _configuration(params: Record) -> Record:
    """Return a request's configuration, or a workspace's default."""
    try:
        configuration = json.loads(params.get("configuration", "{}"))
    except ValueError:
        raise ServiceError("ValidationException", "configuration is not valid JSON") from None
    if not isinstance(configuration, dict) or configuration.keys() - _CONFIGURED.keys():
        raise ServiceError("ValidationException", f"configuration may have {', '.join(_CONFIGURED)} alone")
    return {**_CONFIGURED, **configuration}


@operation("grafana", "DescribeWorkspaceConfiguration")
def describe_workspace_configuration(ctx: Context, params: Record) -> Record:
    """Return alerting and plugins of one workspace, as the JSON text that it is."""
    workspace = require_workspace(ctx, params["workspaceId"])
    return {"configuration": json.dumps(workspace["configuration"]), "grafanaVersion": workspace["grafanaVersion"]}


@operation("grafana", "UpdateWorkspaceConfiguration")
def update_workspace_configuration(ctx: Context, params: Record) -> Record:
    """Change it; the workspace restarts."""
    workspace = require_workspace(ctx, params["workspaceId"], active=True)
    version = params.get("grafanaVersion", workspace["grafanaVersion"])
    workspace.update(configuration=_configuration(params), grafanaVersion=version, modified=ctx.now)
    _begin(ctx, workspace, "update")
    return {}


@operation("grafana", "UpdatePermissions")
def update_permissions(ctx: Context, params: Record) -> Record:
    """Add and remove roles; a role that a user doesn't have is reported, and the others are applied."""
    entries = require_workspace(ctx, params["workspaceId"], active=True)["permissions"]
    errors = []
    for instruction in params["updateInstructionBatch"]:
        for user in instruction["users"]:
            entry = {"user": user, "role": instruction["role"]}
            if instruction["action"] == "ADD":
                entries[:] = [each for each in entries if each["user"] != user]  # a user has one role at a time
                entries.append(entry)
            elif entry in entries:
                entries.remove(entry)
            else:
                errors.append({"code": 404, "message": f"User {user['id']} has no such role", "causedBy": instruction})
    return {"errors": errors}


@operation("grafana", "ListPermissions")
def list_permissions(ctx: Context, params: Record) -> Record:
    """Return roles in pages, all or those of a user or group."""
    user = {key: params[name] for name, key in (("userType", "type"), ("userId", "id")) if name in params}
    if "groupId" in params:
        user = {"type": "SSO_GROUP", "id": params["groupId"]}
    matching = [
        entry
        for entry in require_workspace(ctx, params["workspaceId"])["permissions"]
        if all(entry["user"][key] == value for key, value in user.items())
    ]
    return page("permissions", matching, params)


# Source: https://docs.aws.amazon.com/grafana/latest/APIReference/API_TagResource.html
def _tags(ctx: Context, arn: str) -> dict[str, str]:
    for workspace in ctx.table(TABLE).values():
        if workspace["arn"] == arn:
            found: dict[str, str] = workspace["tags"]
            return found
    raise ServiceError("ResourceNotFoundException", f"Resource {arn} does not exist")


tag_operations("grafana", _tags, empty=True)

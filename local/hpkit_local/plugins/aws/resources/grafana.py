"""Amazon Managed Grafana: workspaces, and the roles of users in them."""

from __future__ import annotations

from typing import Any, Final

from hpkit_local.plugins.aws.calls import Calls, until
from hpkit_local.plugins.aws.resource_type import PlannedUpdate, Prop, ResourceType
from hpkit_local.plugins.aws.shapes import BY_ARN
from hpkit_provider.engine.errors import PluginError
from hpkit_provider.engine.values import Props

__all__ = ["RESOURCE_TYPES"]

# The provider's name, the request's and the answer's.
_MEMBERS: Final = {
    "accountAccessType": ("accountAccessType", "accountAccessType"),
    "permissionType": ("permissionType", "permissionType"),
    "name": ("workspaceName", "name"),
    "description": ("workspaceDescription", "description"),
    "roleArn": ("workspaceRoleArn", "workspaceRoleArn"),
    "dataSources": ("workspaceDataSources", "dataSources"),
    "notificationDestinations": ("workspaceNotificationDestinations", "notificationDestinations"),
    "organizationRoleName": ("organizationRoleName", "organizationRoleName"),
    "organizationalUnits": ("workspaceOrganizationalUnits", "organizationalUnits"),
    "stackSetName": ("stackSetName", "stackSetName"),
    "vpcConfiguration": ("vpcConfiguration", "vpcConfiguration"),
    "networkAccessControl": ("networkAccessControl", "networkAccessControl"),
}
_AT_CREATION: Final = ("grafanaVersion", "kmsKeyId")
_REMOVALS: Final = {
    "vpcConfiguration": "removeVpcConfiguration",
    "networkAccessControl": "removeNetworkAccessConfiguration",
}


def _request(props: Props, names: Any) -> dict[str, Any]:
    return {_MEMBERS[name][0]: props[name] for name in names if name in props}


def _create(call: Calls, inputs: Props) -> str:
    answer = call(
        "CreateWorkspace",
        authenticationProviders=inputs["authenticationProviders"],
        tags=inputs["tagsAll"] or None,
        **_request(inputs, _MEMBERS),
        **{name: inputs.get(name) for name in (*_AT_CREATION, "configuration")},
    )
    return str(answer["workspace"]["id"])


def _workspace(call: Calls, workspace: str) -> dict[str, Any] | None:
    answer = call.find("DescribeWorkspace", workspaceId=workspace)
    return answer and answer["workspace"]


def _read(call: Calls, workspace: str, _recorded: Props) -> Props | None:
    described = _workspace(call, workspace)
    if described is None or described["status"] == "DELETING":
        return None
    return {
        **{name: described.get(told) for name, (_, told) in _MEMBERS.items()},
        **{name: described.get(name) for name in _AT_CREATION},
        "arn": f"arn:aws:grafana:{call.region}:{call.account}:/workspaces/{workspace}",
        "endpoint": described["endpoint"],
        "authenticationProviders": described["authentication"]["providers"],
        "samlConfigurationStatus": described["authentication"].get("samlConfigurationStatus", ""),
        "configuration": _configuration(call, workspace),
        "tags": described.get("tags", {}),
    }


def _configuration(call: Calls, workspace: str) -> str:
    return str(call("DescribeWorkspaceConfiguration", workspaceId=workspace)["configuration"])


def _wait(call: Calls, workspace: str, _change: PlannedUpdate) -> None:
    until(
        call,
        lambda: _workspace(call, workspace),
        status=lambda seen: seen["status"],
        ready={"ACTIVE"},
        failed={"FAILED", "CREATION_FAILED", "UPDATE_FAILED", "DELETION_FAILED"},
    )


def _update(call: Calls, workspace: str, change: PlannedUpdate) -> None:
    request = _request(change.new, [name for name in _MEMBERS if name in change])
    request |= {flag: True for name, flag in _REMOVALS.items() if name in change and name not in change.new}
    if "description" in change:
        request["workspaceDescription"] = change.new.get("description", "")
    if request:
        call("UpdateWorkspace", workspaceId=workspace, **request)
        _wait(call, workspace, change)
    if change.among("configuration", "grafanaVersion"):
        configuration = change.new.get("configuration") or _configuration(call, workspace)
        version = change.new.get("grafanaVersion") if "grafanaVersion" in change else None
        call(
            "UpdateWorkspaceConfiguration",
            workspaceId=workspace,
            configuration=configuration,
            grafanaVersion=version,
        )
        _wait(call, workspace, change)


def _delete(call: Calls, workspace: str, _state: Props) -> None:
    if call.find("DeleteWorkspace", workspaceId=workspace) is not None:
        until(
            call,
            lambda: _workspace(call, workspace),
            status=lambda seen: seen["status"],
            failed={"DELETION_FAILED"},
            until_gone=True,
        )


# Neither creation nor an update revokes anything; deletion revokes what the state lists, and fails if somebody else has
# revoked it. The type has no importer (terraform-provider-aws 6.58.0, grafana/resourceRoleAssociationUpsert,
# …RoleAssociationDelete and servicePackage.SDKResources).
def _permit(call: Calls, props: Props, action: str) -> None:
    users = {"SSO_USER": props.get("userIds"), "SSO_GROUP": props.get("groupIds")}
    batch = [
        {"action": action, "role": props["role"], "users": [{"id": each, "type": kind} for each in ids]}
        for kind, ids in users.items()
        if ids
    ]
    errors = call("UpdatePermissions", workspaceId=props["workspaceId"], updateInstructionBatch=batch)["errors"]
    if errors:
        raise PluginError("UpdatePermissions: " + "; ".join(error["message"] for error in errors))


def _associate(call: Calls, inputs: Props) -> str:
    _permit(call, inputs, "ADD")
    return f"{inputs['workspaceId']}/{inputs['role']}"


def _read_association(call: Calls, resource_id: str, recorded: Props) -> Props | None:
    if "role" not in recorded:
        raise PluginError(f"{resource_id}: a role association can't be imported; the official plugin has no importer.")
    workspace, role = recorded["workspaceId"], recorded["role"]  # another role changes in place, and the ID stays
    entries = [
        entry["user"]
        for entry in call.pages("ListPermissions", "permissions", workspaceId=workspace)
        if entry["role"] == role
    ]
    if not entries:
        return None
    by_type = {
        name: [user["id"] for user in entries if user["type"] == user_type]
        for name, user_type in (("userIds", "SSO_USER"), ("groupIds", "SSO_GROUP"))
    }
    return {"workspaceId": workspace, "role": role, **by_type}


def _change_association(call: Calls, _resource_id: str, change: PlannedUpdate) -> None:
    _permit(call, change.new, "ADD")


def _dissociate(call: Calls, _resource_id: str, state: Props) -> None:
    _permit(call, state, "REVOKE")


_NETWORKS: Final = (
    Prop(
        "vpcConfiguration",
        "object",
        members=(Prop("securityGroupIds", "list", required=True), Prop("subnetIds", "list", required=True)),
    ),
    Prop(
        "networkAccessControl",
        "object",
        members=(Prop("prefixListIds", "list", required=True), Prop("vpceIds", "list", required=True)),
    ),
)

RESOURCE_TYPES: Final = (
    ResourceType(
        "aws:grafana/workspace:Workspace",
        props=(
            Prop("accountAccessType", required=True),
            Prop("authenticationProviders", "list", required=True),
            Prop("permissionType", required=True),
            Prop("name"),
            Prop("description"),
            Prop("roleArn"),
            Prop("dataSources", "list"),
            Prop("notificationDestinations", "list"),
            Prop("organizationRoleName"),
            Prop("organizationalUnits", "list"),
            Prop("stackSetName"),
            Prop("grafanaVersion"),
            Prop("kmsKeyId"),
            Prop("configuration"),
            *_NETWORKS,
        ),
        create=_create,
        read=_read,
        update=_update,
        wait=_wait,
        delete=_delete,
        outputs=("arn", "endpoint", "samlConfigurationStatus"),
        tagging=BY_ARN,
        longest_name=255,
        minutes=(30, 30, 20),
    ),
    ResourceType(
        "aws:grafana/roleAssociation:RoleAssociation",
        props=(
            Prop("workspaceId", required=True),
            Prop("role", required=True),
            Prop("userIds", "list"),
            Prop("groupIds", "list"),
        ),
        create=_associate,
        read=_read_association,
        update=_change_association,
        delete=_dissociate,
        minutes=(10, 20, 10),
    ),
)

"""Amazon Managed Grafana: workspaces, and the roles of users in them."""

from collections.abc import Iterable
from typing import Any, Final

from hpkit_local.plugins.aws.calls import Calls
from hpkit_local.plugins.aws.resource_type import PlannedUpdate, ResourceType, properties
from hpkit_local.plugins.aws.shapes import BY_ARN, creating, deleting, found, in_map, reading, settled
from hpkit_provider.engine.errors import PluginError
from hpkit_provider.engine.values import Props

__all__ = ["RESOURCE_TYPES"]

# Members of requests, of which the descriptions have some under the provider's names.
_MEMBERS: Final = {
    "accountAccessType": "accountAccessType",
    "permissionType": "permissionType",
    "name": "workspaceName",
    "description": "workspaceDescription",
    "roleArn": "workspaceRoleArn",
    "dataSources": "workspaceDataSources",
    "notificationDestinations": "workspaceNotificationDestinations",
    "organizationRoleName": "organizationRoleName",
    "organizationalUnits": "workspaceOrganizationalUnits",
    "stackSetName": "stackSetName",
    "vpcConfiguration": "vpcConfiguration",
    "networkAccessControl": "networkAccessControl",
}
_REMOVALS: Final = {
    "vpcConfiguration": "removeVpcConfiguration",
    "networkAccessControl": "removeNetworkAccessConfiguration",
}


def _request(props: Props, names: Iterable[str]) -> dict[str, Any]:
    return {_MEMBERS[name]: props[name] for name in names if name in props}


_workspace = found("DescribeWorkspace", "workspace", "workspaceId")


def _read_others(call: Calls, workspace: str, described: dict[str, Any]) -> Props:
    return {
        "arn": f"arn:aws:grafana:{call.region}:{call.account}:/workspaces/{workspace}",
        "authenticationProviders": described["authentication"]["providers"],
        "samlConfigurationStatus": described["authentication"].get("samlConfigurationStatus", ""),
        "configuration": _configuration(call, workspace),
    }


def _configuration(call: Calls, workspace: str) -> str:
    return str(call("DescribeWorkspaceConfiguration", workspaceId=workspace)["configuration"])


_wait = settled(_workspace, ["ACTIVE"], ["FAILED", "CREATION_FAILED", "UPDATE_FAILED", "DELETION_FAILED"])


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
        call("UpdateWorkspaceConfiguration", workspaceId=workspace, configuration=configuration, grafanaVersion=version)
        _wait(call, workspace, change)


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


RESOURCE_TYPES: Final = (
    ResourceType(
        "aws:grafana/workspace:Workspace",
        props=properties(
            "accountAccessType! authenticationProviders:list! permissionType! name description roleArn "
            "dataSources:list notificationDestinations:list organizationRoleName organizationalUnits:list stackSetName "
            "grafanaVersion kmsKeyId configuration vpcConfiguration:object networkAccessControl:object",
            vpcConfiguration=properties("securityGroupIds:list! subnetIds:list!"),
            networkAccessControl=properties("prefixListIds:list! vpceIds:list!"),
        ),
        create=creating(
            "CreateWorkspace",
            "authenticationProviders grafanaVersion kmsKeyId configuration",
            made="workspace.id",
            tags=in_map,
            style=dict,
            also=lambda inputs: _request(inputs, _MEMBERS),
        ),
        read=reading(
            _workspace,
            # The description of the role's ARN alone has the request's name.
            " ".join(["endpoint grafanaVersion kmsKeyId roleArn=workspaceRoleArn", *_MEMBERS.keys() - {"roleArn"}]),
            _read_others,
        ),
        update=_update,
        wait=_wait,
        delete=deleting("DeleteWorkspace", "workspaceId", look=_workspace, failed=["DELETION_FAILED"]),
        outputs=("arn", "endpoint", "samlConfigurationStatus"),
        tagging=BY_ARN,
        longest_name=255,
        minutes=(30, 30, 20),
    ),
    ResourceType(
        "aws:grafana/roleAssociation:RoleAssociation",
        props=properties("workspaceId! role! userIds:list groupIds:list"),
        create=_associate,
        read=_read_association,
        update=_change_association,
        delete=_dissociate,
        minutes=(10, 20, 10),
    ),
)

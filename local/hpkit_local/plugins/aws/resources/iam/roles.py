"""AWS IAM: roles, policies, and identity providers."""

from __future__ import annotations

from typing import Final

from hpkit_local.plugins.aws.calls import Calls, Retry
from hpkit_local.plugins.aws.resource_type import PlannedUpdate, Prop, ResourceType
from hpkit_local.plugins.aws.shapes import policy_text, tag_list, tag_map
from hpkit_local.plugins.aws.tagging import tagging
from hpkit_provider.engine.values import Props

__all__ = ["RESOURCE_TYPES"]


def _create_role(call: Calls, inputs: Props) -> str:
    answer = call(
        "CreateRole",
        RoleName=inputs["name"],
        AssumeRolePolicyDocument=inputs["assumeRolePolicy"],
        Path=inputs["path"],
        Description=inputs.get("description"),
        MaxSessionDuration=inputs["maxSessionDuration"],
        PermissionsBoundary=inputs.get("permissionsBoundary"),
        Tags=tag_list(inputs["tagsAll"]),
    )
    return str(answer["Role"]["RoleName"])


def _read_role(call: Calls, name: str, _recorded: Props) -> Props | None:
    answer = call.find("GetRole", RoleName=name)
    role = answer and answer["Role"]
    return role and {
        "name": name,
        "arn": role["Arn"],
        "uniqueId": role["RoleId"],
        "createDate": role["CreateDate"].strftime("%Y-%m-%dT%H:%M:%SZ"),
        "assumeRolePolicy": policy_text(role["AssumeRolePolicyDocument"]),
        "path": role["Path"],
        "description": role.get("Description", ""),
        "maxSessionDuration": role.get("MaxSessionDuration", 3600),
        "permissionsBoundary": role.get("PermissionsBoundary", {}).get("PermissionsBoundaryArn"),
        "tags": tag_map(role.get("Tags")),
    }


def _update_role(call: Calls, name: str, change: PlannedUpdate) -> None:
    new = change.new
    if "assumeRolePolicy" in change:
        call("UpdateAssumeRolePolicy", RoleName=name, PolicyDocument=new["assumeRolePolicy"])
    if "description" in change:
        call("UpdateRoleDescription", RoleName=name, Description=new.get("description", ""))
    if "maxSessionDuration" in change:
        call("UpdateRole", RoleName=name, MaxSessionDuration=new["maxSessionDuration"])
    if "permissionsBoundary" in change and new.get("permissionsBoundary"):
        call("PutRolePermissionsBoundary", RoleName=name, PermissionsBoundary=new["permissionsBoundary"])
    elif "permissionsBoundary" in change:
        call("DeleteRolePermissionsBoundary", RoleName=name)


def _delete_role(call: Calls, name: str, state: Props) -> None:
    if state["forceDetachPolicies"]:
        for policy in call.pages("ListAttachedRolePolicies", "AttachedPolicies", RoleName=name):
            call.find("DetachRolePolicy", RoleName=name, PolicyArn=policy["PolicyArn"])
        for inline in call.pages("ListRolePolicies", "PolicyNames", RoleName=name):
            call.find("DeleteRolePolicy", RoleName=name, PolicyName=inline)
    call.find("DeleteRole", RoleName=name)


RESOURCE_TYPES: Final[tuple[ResourceType, ...]] = (
    ResourceType(
        "aws:iam/role:Role",
        props=(
            Prop("name"),
            Prop("assumeRolePolicy", "policy", required=True),
            Prop("description"),
            Prop("maxSessionDuration", "integer"),
            Prop("permissionsBoundary"),
            Prop("path"),
            Prop("forceDetachPolicies", "boolean", write_only=True),
        ),
        other_calls="PutRolePermissionsBoundary DeleteRolePermissionsBoundary DeleteRolePolicy DetachRolePolicy",
        create=_create_role,
        read=_read_role,
        update=_update_role,
        delete=_delete_role,
        outputs=("arn", "uniqueId", "createDate"),
        imported={"forceDetachPolicies": False},
        retries={
            "CreateRole": Retry(120.0, ("Invalid principal in policy", "ConcurrentModification")),
            "UpdateAssumeRolePolicy": Retry(120.0, ("Invalid principal in policy",)),
            "DeleteRole": Retry(120.0, ("DeleteConflict",)),
        },
        tagging=tagging("Role", "RoleName"),
    ),
)

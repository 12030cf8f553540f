"""AWS IAM: roles, policies, and identity providers."""

from __future__ import annotations

from typing import Final

from hpkit_local.plugins.aws.calls import Calls, Retry
from hpkit_local.plugins.aws.resource_type import PlannedUpdate, Prop, ResourceType
from hpkit_local.plugins.aws.shapes import policy_text, tag_list, tag_map, tagging
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


def _put_inline(call: Calls, inputs: Props) -> str:
    call("PutRolePolicy", RoleName=inputs["role"], PolicyName=inputs["name"], PolicyDocument=inputs["policy"])
    return f"{inputs['role']}:{inputs['name']}"


def _read_inline(call: Calls, resource_id: str, _recorded: Props) -> Props | None:
    role, _, name = resource_id.partition(":")
    answer = call.find("GetRolePolicy", RoleName=role, PolicyName=name)
    return answer and {"role": role, "name": name, "policy": policy_text(answer["PolicyDocument"])}


def _update_inline(call: Calls, _resource_id: str, change: PlannedUpdate) -> None:
    _put_inline(call, change.new)


def _delete_inline(call: Calls, resource_id: str, _state: Props) -> None:
    role, _, name = resource_id.partition(":")
    call.find("DeleteRolePolicy", RoleName=role, PolicyName=name)


def _attach(call: Calls, inputs: Props) -> str:
    call("AttachRolePolicy", RoleName=inputs["role"], PolicyArn=inputs["policyArn"])
    return f"{inputs['role']}/{inputs['policyArn']}"


def _read_attached(call: Calls, resource_id: str, _recorded: Props) -> Props | None:
    role, _, arn = resource_id.partition("/")
    attached = call.pages("ListAttachedRolePolicies", "AttachedPolicies", RoleName=role)
    there = any(policy["PolicyArn"] == arn for policy in attached)
    return {"role": role, "policyArn": arn} if there else None


def _detach(call: Calls, resource_id: str, _state: Props) -> None:
    role, _, arn = resource_id.partition("/")
    call.find("DetachRolePolicy", RoleName=role, PolicyArn=arn)


def _create_provider(call: Calls, inputs: Props) -> str:
    answer = call(
        "CreateOpenIDConnectProvider",
        Url=inputs["url"] if "://" in inputs["url"] else f"https://{inputs['url']}",
        ClientIDList=inputs["clientIdLists"],
        ThumbprintList=inputs.get("thumbprintLists"),
        Tags=tag_list(inputs["tagsAll"]),
    )
    return str(answer["OpenIDConnectProviderArn"])


def _read_provider(call: Calls, arn: str, _recorded: Props) -> Props | None:
    answer = call.find("GetOpenIDConnectProvider", OpenIDConnectProviderArn=arn)
    if answer is None:
        return None
    return {
        "arn": arn,
        "url": answer["Url"],
        "clientIdLists": answer["ClientIDList"],
        "thumbprintLists": answer.get("ThumbprintList", []),
        "tags": tag_map(answer.get("Tags")),
    }


def _update_provider(call: Calls, arn: str, change: PlannedUpdate) -> None:
    provider_key = {"OpenIDConnectProviderArn": arn}
    if "thumbprintLists" in change:
        call("UpdateOpenIDConnectProviderThumbprint", **provider_key, ThumbprintList=change.new["thumbprintLists"])
    if "clientIdLists" in change:
        before, after = set(change.old.get("clientIdLists", [])), set(change.new["clientIdLists"])
        for client in sorted(after - before):
            call("AddClientIDToOpenIDConnectProvider", **provider_key, ClientID=client)
        for client in sorted(before - after):
            call("RemoveClientIDFromOpenIDConnectProvider", **provider_key, ClientID=client)


def _delete_provider(call: Calls, arn: str, _state: Props) -> None:
    call.find("DeleteOpenIDConnectProvider", OpenIDConnectProviderArn=arn)


RESOURCE_TYPES: Final = (
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
    ResourceType(
        "aws:iam/rolePolicy:RolePolicy",
        props=(
            Prop("role", required=True),
            Prop("name"),
            Prop("policy", "policy", required=True),
        ),
        create=_put_inline,
        read=_read_inline,
        update=_update_inline,
        delete=_delete_inline,
        longest_name=128,
    ),
    ResourceType(
        "aws:iam/rolePolicyAttachment:RolePolicyAttachment",
        props=(Prop("role", required=True), Prop("policyArn", required=True)),
        create=_attach,
        read=_read_attached,
        delete=_detach,
        retries=dict.fromkeys(("AttachRolePolicy", "DetachRolePolicy"), Retry(120.0, ("ConcurrentModification",))),
    ),
    ResourceType(
        "aws:iam/openIdConnectProvider:OpenIdConnectProvider",
        props=(
            Prop("url", "url", required=True),
            Prop("clientIdLists", "list", required=True),
            Prop("thumbprintLists", "list"),
        ),
        create=_create_provider,
        read=_read_provider,
        update=_update_provider,
        delete=_delete_provider,
        outputs=("arn",),
        tagging=tagging("OpenIDConnectProvider", "OpenIDConnectProviderArn"),
    ),
)

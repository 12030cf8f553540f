"""AWS IAM: roles, policies, and identity providers."""

from typing import Final

from hpkit_local.plugins.aws.calls import Calls, Retry
from hpkit_local.plugins.aws.resource_type import PlannedUpdate, ResourceType, properties
from hpkit_local.plugins.aws.shapes import creating, deleting, in_list, policy_text, stamp, tagging, told
from hpkit_provider.engine.values import Props

__all__ = ["RESOURCE_TYPES"]


_ROLE: Final = "name=RoleName assumeRolePolicy=AssumeRolePolicyDocument path description maxSessionDuration"


def _read_role(call: Calls, name: str, _recorded: Props) -> Props | None:
    answer = call.find("GetRole", RoleName=name)
    role = answer and answer["Role"]
    return role and {
        "description": "",
        "maxSessionDuration": 3600,
        **told(role, f"{_ROLE} arn uniqueId=RoleId"),
        "createDate": stamp(role["CreateDate"]),
        "assumeRolePolicy": policy_text(role["AssumeRolePolicyDocument"]),
        "permissionsBoundary": role.get("PermissionsBoundary", {}).get("PermissionsBoundaryArn"),
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


def _inline(resource_id: str, _state: Props) -> dict[str, str]:
    role, _, name = resource_id.partition(":")
    return {"RoleName": role, "PolicyName": name}


_put_inline = creating("PutRolePolicy", "role=RoleName name=PolicyName policy=PolicyDocument", made="{role}:{name}")


def _read_inline(call: Calls, resource_id: str, _recorded: Props) -> Props | None:
    answer = call.find("GetRolePolicy", **_inline(resource_id, {}))
    return answer and {**told(answer, "role=RoleName name=PolicyName"), "policy": policy_text(answer["PolicyDocument"])}


def _update_inline(call: Calls, _resource_id: str, change: PlannedUpdate) -> None:
    _put_inline(call, change.new)


def _attachment(resource_id: str, _state: Props) -> dict[str, str]:
    role, _, arn = resource_id.partition("/")
    return {"RoleName": role, "PolicyArn": arn}


def _read_attached(call: Calls, resource_id: str, _recorded: Props) -> Props | None:
    role, _, arn = resource_id.partition("/")
    attached = call.pages("ListAttachedRolePolicies", "AttachedPolicies", RoleName=role)
    there = any(policy["PolicyArn"] == arn for policy in attached)
    return {"role": role, "policyArn": arn} if there else None


_PROVIDER: Final = "clientIdLists=ClientIDList thumbprintLists=ThumbprintList"


def _read_provider(call: Calls, arn: str, _recorded: Props) -> Props | None:
    answer = call.find("GetOpenIDConnectProvider", OpenIDConnectProviderArn=arn)
    return answer and {"thumbprintLists": [], **told(answer, f"{_PROVIDER} url"), "arn": arn}


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


RESOURCE_TYPES: Final = (
    ResourceType(
        "aws:iam/role:Role",
        props=properties(
            "name assumeRolePolicy:policy! description maxSessionDuration:integer permissionsBoundary path "
            "forceDetachPolicies:boolean*"
        ),
        other_calls="PutRolePermissionsBoundary DeleteRolePermissionsBoundary DeleteRolePolicy DetachRolePolicy",
        create=creating("CreateRole", f"{_ROLE} permissionsBoundary", made="{name}", tags=in_list),
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
        props=properties("role! name policy:policy!"),
        create=_put_inline,
        read=_read_inline,
        update=_update_inline,
        delete=deleting("DeleteRolePolicy", _inline),
        longest_name=128,
    ),
    ResourceType(
        "aws:iam/rolePolicyAttachment:RolePolicyAttachment",
        props=properties("role! policyArn!"),
        create=creating("AttachRolePolicy", "role=RoleName policyArn", made="{role}/{policyArn}"),
        read=_read_attached,
        delete=deleting("DetachRolePolicy", _attachment),
        retries=dict.fromkeys(("AttachRolePolicy", "DetachRolePolicy"), Retry(120.0, ("ConcurrentModification",))),
    ),
    ResourceType(
        "aws:iam/openIdConnectProvider:OpenIdConnectProvider",
        props=properties("url:url! clientIdLists:list! thumbprintLists:list"),
        create=creating(
            "CreateOpenIDConnectProvider",
            _PROVIDER,
            made="OpenIDConnectProviderArn",
            tags=in_list,
            also=lambda inputs: {"Url": inputs["url"] if "://" in inputs["url"] else f"https://{inputs['url']}"},
        ),
        read=_read_provider,
        update=_update_provider,
        delete=deleting("DeleteOpenIDConnectProvider", "OpenIDConnectProviderArn"),
        outputs=("arn",),
        tagging=tagging("OpenIDConnectProvider", "OpenIDConnectProviderArn"),
    ),
)

"""Amazon EKS: permissions of people and pods in a cluster."""

from typing import Any, Final

from hpkit_local.plugins.aws.calls import Calls, Retry
from hpkit_local.plugins.aws.resource_type import PlannedUpdate, ResourceType, properties
from hpkit_local.plugins.aws.shapes import BY_ARN, creating, deleting, found, in_map, reading, sent, stamp, told
from hpkit_provider.engine.values import Props

__all__ = ["RESOURCE_TYPES"]


def _entry(resource_id: str, _state: Props) -> dict[str, str]:
    cluster, _, principal = resource_id.partition(":")
    return {"clusterName": cluster, "principalArn": principal}


def _read_entry(_call: Calls, resource_id: str, entry: dict[str, Any]) -> Props:
    times = {name: stamp(entry[name]) for name in ("createdAt", "modifiedAt")}
    return {**_entry(resource_id, {}), **times, "kubernetesGroups": entry.get("kubernetesGroups", [])}


def _update_entry(call: Calls, resource_id: str, change: PlannedUpdate) -> None:
    groups, user = change.new.get("kubernetesGroups", []), change.new.get("userName")
    call("UpdateAccessEntry", **_entry(resource_id, {}), kubernetesGroups=groups, username=user)


def _policy(resource_id: str, _state: Props) -> dict[str, str]:
    cluster, principal, policy = resource_id.split("#")
    return {"clusterName": cluster, "principalArn": principal, "policyArn": policy}


def _read_policy(call: Calls, resource_id: str, _recorded: Props) -> Props | None:
    policy_key = _policy(resource_id, {})
    entry = {name: policy_key[name] for name in ("clusterName", "principalArn")}
    for policy in call.pages("ListAssociatedAccessPolicies", "associatedAccessPolicies", **entry):
        if policy["policyArn"] == policy_key["policyArn"]:
            times = {"associatedAt": stamp(policy["associatedAt"]), "modifiedAt": stamp(policy["modifiedAt"])}
            return {**policy_key, "accessScope": policy["accessScope"], **times}
    return None


def _identity(resource_id: str, recorded: Props) -> dict[str, str]:
    """Return which it is; at import its id is `CLUSTER,ID`."""
    cluster, _, identifier = resource_id.rpartition(",")
    return {"clusterName": cluster or recorded.get("clusterName", ""), "associationId": identifier}


def _read_identity(call: Calls, resource_id: str, recorded: Props) -> Props | None:
    which = _identity(resource_id, recorded)
    answer = call.find("DescribePodIdentityAssociation", **which) if which["clusterName"] else None
    if answer is None:
        return None
    association = answer["association"]
    return {
        "disableSessionTags": False,
        **told(association, f"id=associationId associationId {_IDENTITY} clusterName externalId associationArn"),
    }


def _update_identity(call: Calls, resource_id: str, change: PlannedUpdate) -> None:
    new = change.new
    roles = sent(new, "roleArn targetRoleArn disableSessionTags", dict)
    call("UpdatePodIdentityAssociation", **_identity(resource_id, new), **roles)


_IDENTITY: Final = "namespace serviceAccount roleArn targetRoleArn disableSessionTags"
_PROPAGATION: Final = 120.0
_NEW_ROLE: Final = Retry(_PROPAGATION, ("InvalidParameterException: Role provided in the request does not exist",))

RESOURCE_TYPES: Final = (
    ResourceType(
        "aws:eks/accessEntry:AccessEntry",
        props=properties("clusterName! principalArn! type userName kubernetesGroups:list"),
        create=creating(
            "CreateAccessEntry",
            "clusterName principalArn type userName=username kubernetesGroups",
            made="{clusterName}:{principalArn}",
            tags=in_map,
            style=dict,
        ),
        read=reading(
            found("DescribeAccessEntry", "accessEntry", _entry), "accessEntryArn type userName=username", _read_entry
        ),
        update=_update_entry,
        delete=deleting("DeleteAccessEntry", _entry),
        outputs=("accessEntryArn", "createdAt", "modifiedAt"),
        volatile=("modifiedAt",),
        tagging=BY_ARN,
        minutes=(10, 20, 10),
        retries={
            "CreateAccessEntry": Retry(_PROPAGATION, ("The specified principalArn is invalid: invalid principal",))
        },
    ),
    ResourceType(
        "aws:eks/accessPolicyAssociation:AccessPolicyAssociation",
        props=properties(
            "clusterName! principalArn! policyArn! accessScope:object!", accessScope=properties("type! namespaces:list")
        ),
        create=creating(
            "AssociateAccessPolicy",
            "clusterName principalArn policyArn accessScope",
            made="{clusterName}#{principalArn}#{policyArn}",
            style=dict,
        ),
        read=_read_policy,
        delete=deleting("DisassociateAccessPolicy", _policy),
        outputs=("associatedAt", "modifiedAt"),
        minutes=(10, 20, 10),
        retries={"AssociateAccessPolicy": Retry(_PROPAGATION, ("The specified principalArn could not be found",))},
    ),
    ResourceType(
        "aws:eks/podIdentityAssociation:PodIdentityAssociation",
        props=properties("clusterName! namespace! serviceAccount! roleArn! targetRoleArn disableSessionTags:boolean"),
        create=creating(
            "CreatePodIdentityAssociation",
            f"clusterName {_IDENTITY}",
            made="association.associationId",
            tags=in_map,
            style=dict,
        ),
        read=_read_identity,
        update=_update_identity,
        delete=deleting("DeletePodIdentityAssociation", _identity),
        outputs=("associationArn", "associationId", "externalId"),
        tagging=BY_ARN,
        retries={"CreatePodIdentityAssociation": _NEW_ROLE, "UpdatePodIdentityAssociation": _NEW_ROLE},
    ),
)

"""Amazon EKS: permissions of people and pods in a cluster."""

from __future__ import annotations

from typing import Any, Final

from hpkit_local.plugins.aws.calls import Calls, Retry
from hpkit_local.plugins.aws.resource_type import PlannedUpdate, Prop, ResourceType
from hpkit_local.plugins.aws.resources.eks.clusters import stamp
from hpkit_local.plugins.aws.shapes import BY_ARN
from hpkit_provider.engine.values import Props

__all__ = ["RESOURCE_TYPES"]


def _create_entry(call: Calls, inputs: Props) -> str:
    call(
        "CreateAccessEntry",
        clusterName=inputs["clusterName"],
        principalArn=inputs["principalArn"],
        type=inputs["type"],
        username=inputs.get("userName"),
        kubernetesGroups=inputs.get("kubernetesGroups"),
        tags=inputs["tagsAll"] or None,
    )
    return f"{inputs['clusterName']}:{inputs['principalArn']}"


def _entry(resource_id: str) -> dict[str, str]:
    cluster, _, principal = resource_id.partition(":")
    return {"clusterName": cluster, "principalArn": principal}


def _read_entry(call: Calls, resource_id: str, _recorded: Props) -> Props | None:
    answer = call.find("DescribeAccessEntry", **_entry(resource_id))
    if answer is None:
        return None
    entry = answer["accessEntry"]
    return {
        **_entry(resource_id),
        "accessEntryArn": entry["accessEntryArn"],
        "type": entry["type"],
        "userName": entry.get("username"),
        "kubernetesGroups": entry.get("kubernetesGroups", []),
        "createdAt": stamp(entry["createdAt"]),
        "modifiedAt": stamp(entry["modifiedAt"]),
        "tags": entry.get("tags", {}),
    }


def _update_entry(call: Calls, resource_id: str, change: PlannedUpdate) -> None:
    groups, user = change.new.get("kubernetesGroups", []), change.new.get("userName")
    call("UpdateAccessEntry", **_entry(resource_id), kubernetesGroups=groups, username=user)


def _delete_entry(call: Calls, resource_id: str, _state: Props) -> None:
    call.find("DeleteAccessEntry", **_entry(resource_id))


def _associate_policy(call: Calls, inputs: Props) -> str:
    which = {name: inputs[name] for name in ("clusterName", "principalArn", "policyArn")}
    call("AssociateAccessPolicy", **which, accessScope=inputs["accessScope"])
    return "#".join(which.values())


def _policy(resource_id: str) -> dict[str, str]:
    cluster, principal, policy = resource_id.split("#")
    return {"clusterName": cluster, "principalArn": principal, "policyArn": policy}


def _read_policy(call: Calls, resource_id: str, _recorded: Props) -> Props | None:
    policy_key = _policy(resource_id)
    entry = {name: policy_key[name] for name in ("clusterName", "principalArn")}
    for policy in call.pages("ListAssociatedAccessPolicies", "associatedAccessPolicies", **entry):
        if policy["policyArn"] == policy_key["policyArn"]:
            times = {"associatedAt": stamp(policy["associatedAt"]), "modifiedAt": stamp(policy["modifiedAt"])}
            return {**policy_key, "accessScope": policy["accessScope"], **times}
    return None


def _dissociate_policy(call: Calls, resource_id: str, _state: Props) -> None:
    call.find("DisassociateAccessPolicy", **_policy(resource_id))


def _create_identity(call: Calls, inputs: Props) -> str:
    answer = call(
        "CreatePodIdentityAssociation",
        clusterName=inputs["clusterName"],
        namespace=inputs["namespace"],
        serviceAccount=inputs["serviceAccount"],
        roleArn=inputs["roleArn"],
        targetRoleArn=inputs.get("targetRoleArn"),
        disableSessionTags=inputs.get("disableSessionTags"),
        tags=inputs["tagsAll"] or None,
    )
    return str(answer["association"]["associationId"])


def _identity(resource_id: str, recorded: Props) -> dict[str, Any]:
    """Return which it is; at import its id is `CLUSTER,ID`."""
    cluster, _, identifier = resource_id.rpartition(",")
    return {"clusterName": cluster or recorded.get("clusterName", ""), "associationId": identifier}


def _read_identity(call: Calls, resource_id: str, recorded: Props) -> Props | None:
    which = _identity(resource_id, recorded)
    answer = call.find("DescribePodIdentityAssociation", **which) if which["clusterName"] else None
    if answer is None:
        return None
    association = answer["association"]
    members = ("clusterName", "namespace", "serviceAccount", "roleArn", "targetRoleArn", "externalId", "associationArn")
    return {
        "id": association["associationId"],
        "associationId": association["associationId"],
        "disableSessionTags": association.get("disableSessionTags", False),
        "tags": association.get("tags", {}),
        **{name: association.get(name) for name in members},
    }


def _update_identity(call: Calls, resource_id: str, change: PlannedUpdate) -> None:
    new = change.new
    call(
        "UpdatePodIdentityAssociation",
        **_identity(resource_id, new),
        roleArn=new["roleArn"],
        targetRoleArn=new.get("targetRoleArn"),
        disableSessionTags=new.get("disableSessionTags"),
    )


def _delete_identity(call: Calls, resource_id: str, state: Props) -> None:
    call.find("DeletePodIdentityAssociation", **_identity(resource_id, state))


_CLUSTER = Prop("clusterName", required=True)
_PRINCIPAL = Prop("principalArn", required=True)
_PROPAGATION: Final = 120.0
_NEW_ROLE: Final = Retry(_PROPAGATION, ("InvalidParameterException: Role provided in the request does not exist",))

RESOURCE_TYPES: Final = (
    ResourceType(
        "aws:eks/accessEntry:AccessEntry",
        props=(
            _CLUSTER,
            _PRINCIPAL,
            Prop("type"),
            Prop("userName"),
            Prop("kubernetesGroups", "list"),
        ),
        create=_create_entry,
        read=_read_entry,
        update=_update_entry,
        delete=_delete_entry,
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
        props=(
            _CLUSTER,
            _PRINCIPAL,
            Prop("policyArn", required=True),
            Prop(
                "accessScope",
                "object",
                required=True,
                members=(Prop("type", required=True), Prop("namespaces", "list")),
            ),
        ),
        create=_associate_policy,
        read=_read_policy,
        delete=_dissociate_policy,
        outputs=("associatedAt", "modifiedAt"),
        minutes=(10, 20, 10),
        retries={
            "AssociateAccessPolicy": Retry(_PROPAGATION, ("The specified principalArn could not be found",)),
        },
    ),
    ResourceType(
        "aws:eks/podIdentityAssociation:PodIdentityAssociation",
        props=(
            _CLUSTER,
            Prop("namespace", required=True),
            Prop("serviceAccount", required=True),
            Prop("roleArn", required=True),
            Prop("targetRoleArn"),
            Prop("disableSessionTags", "boolean"),
        ),
        create=_create_identity,
        read=_read_identity,
        update=_update_identity,
        delete=_delete_identity,
        outputs=("associationArn", "associationId", "externalId"),
        tagging=BY_ARN,
        retries={"CreatePodIdentityAssociation": _NEW_ROLE, "UpdatePodIdentityAssociation": _NEW_ROLE},
    ),
)

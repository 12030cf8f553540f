"""Amazon EKS: add-ons."""

from __future__ import annotations

from typing import Any, Final

from hpkit_local.plugins.aws.calls import Calls, Retry
from hpkit_local.plugins.aws.resource_type import PlannedUpdate, Prop, ResourceType
from hpkit_local.plugins.aws.resources.eks.clusters import await_update, stamp
from hpkit_local.plugins.aws.tagging import BY_ARN
from hpkit_local.plugins.aws.waiting import until
from hpkit_provider.engine.values import Props

__all__ = ["RESOURCE_TYPES"]


def _create(call: Calls, inputs: Props) -> str:
    call(
        "CreateAddon",
        clusterName=inputs["clusterName"],
        addonName=inputs["addonName"],
        addonVersion=inputs.get("addonVersion"),
        configurationValues=inputs.get("configurationValues"),
        serviceAccountRoleArn=inputs.get("serviceAccountRoleArn"),
        podIdentityAssociations=inputs.get("podIdentityAssociations"),
        resolveConflicts=inputs.get("resolveConflictsOnCreate"),
        tags=inputs["tagsAll"] or None,
    )
    return f"{inputs['clusterName']}:{inputs['addonName']}"


def _which(resource_id: str) -> dict[str, str]:
    cluster, _, name = resource_id.partition(":")
    return {"clusterName": cluster, "addonName": name}


def _addon(call: Calls, resource_id: str) -> dict[str, Any] | None:
    answer = call.find("DescribeAddon", **_which(resource_id))
    return answer and answer["addon"]


def _read(call: Calls, resource_id: str, _recorded: Props) -> Props | None:
    addon = _addon(call, resource_id)
    if addon is None or addon["status"] == "DELETING":
        return None
    return {
        "arn": addon["addonArn"],
        "clusterName": addon["clusterName"],
        "addonName": addon["addonName"],
        "addonVersion": addon["addonVersion"],
        "configurationValues": addon.get("configurationValues"),
        "serviceAccountRoleArn": addon.get("serviceAccountRoleArn"),
        "podIdentityAssociations": [
            _association(call, addon["clusterName"], arn) for arn in addon.get("podIdentityAssociations", [])
        ],
        "createdAt": stamp(addon["createdAt"]),
        "modifiedAt": stamp(addon["modifiedAt"]),
        "tags": addon.get("tags", {}),
    }


def _association(call: Calls, cluster: str, arn: str) -> dict[str, str]:
    identifier = arn.rpartition("/")[2]
    found = call("DescribePodIdentityAssociation", clusterName=cluster, associationId=identifier)["association"]
    return {"roleArn": found["roleArn"], "serviceAccount": found["serviceAccount"]}


def _wait(call: Calls, resource_id: str, _change: PlannedUpdate) -> None:
    # DEGRADED is a temporary status: an add-on that needs nodes runs once they exist.
    until(
        call,
        lambda: _addon(call, resource_id),
        status=lambda addon: addon["status"],
        ready={"ACTIVE"},
        failed={"CREATE_FAILED", "UPDATE_FAILED", "DELETE_FAILED"},
    )


def _update(call: Calls, resource_id: str, change: PlannedUpdate) -> None:
    if not change.among("addonVersion", "configurationValues", "serviceAccountRoleArn", "podIdentityAssociations"):
        return
    new, addon_key = change.new, _which(resource_id)
    # Only what changed is sent, and a role that is set (terraform-provider-aws 6.58.0, eks/resourceAddonUpdate).
    answer = call(
        "UpdateAddon",
        **addon_key,
        addonVersion=new.get("addonVersion") if "addonVersion" in change else None,
        configurationValues=new.get("configurationValues", "") if "configurationValues" in change else None,
        serviceAccountRoleArn=new.get("serviceAccountRoleArn", "" if "serviceAccountRoleArn" in change else None),
        podIdentityAssociations=new.get("podIdentityAssociations", []) if "podIdentityAssociations" in change else None,
        resolveConflicts=new.get("resolveConflictsOnUpdate"),
    )
    await_update(call, answer["update"], name=addon_key["clusterName"], addonName=addon_key["addonName"])


def _delete(call: Calls, resource_id: str, state: Props) -> None:
    if call.find("DeleteAddon", **_which(resource_id), preserve=state["preserve"]) is not None:
        until(
            call,
            lambda: _addon(call, resource_id),
            status=lambda addon: addon["status"],
            failed={"DELETE_FAILED"},
            until_gone=True,
        )


RESOURCE_TYPES: Final = (
    ResourceType(
        "aws:eks/addon:Addon",
        props=(
            Prop("clusterName", required=True),
            Prop("addonName", required=True),
            Prop("addonVersion"),
            Prop("configurationValues"),
            Prop("serviceAccountRoleArn"),
            Prop(
                "podIdentityAssociations",
                "list",
                members=(Prop("roleArn", required=True), Prop("serviceAccount", required=True)),
            ),
            Prop("resolveConflictsOnCreate", write_only=True),
            Prop("resolveConflictsOnUpdate", write_only=True),
            Prop("preserve", "boolean", write_only=True),
        ),
        other_calls="DescribePodIdentityAssociation",
        create=_create,
        read=_read,
        update=_update,
        wait=_wait,
        delete=_delete,
        outputs=("arn", "createdAt", "modifiedAt"),
        volatile=("modifiedAt",),
        tagging=BY_ARN,
        minutes=(20, 20, 40),
        retries={"CreateAddon": Retry(120.0, ("CREATE_FAILED", "does not exist"))},
    ),
)

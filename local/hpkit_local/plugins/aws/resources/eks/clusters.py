"""Amazon EKS: clusters and add-ons."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from hpkit_local.plugins.aws.calls import Calls, Retry, until
from hpkit_local.plugins.aws.resource_type import Function, PlannedUpdate, Prop, ResourceType
from hpkit_local.plugins.aws.shapes import BY_ARN
from hpkit_provider.engine.errors import ChangeFailedError, PluginError
from hpkit_provider.engine.values import Props

__all__ = ["FUNCTIONS", "RESOURCE_TYPES", "stamp"]

_LOGS = ("api", "audit", "authenticator", "controllerManager", "scheduler")


def stamp(moment: Any) -> str:
    """Return a time in the provider's format."""
    return str(moment.strftime("%Y-%m-%dT%H:%M:%SZ"))


def _request(props: Props) -> dict[str, Any]:
    return {
        "roleArn": props["roleArn"],
        "version": props.get("version"),
        "resourcesVpcConfig": _network(props),
        "kubernetesNetworkConfig": props.get("kubernetesNetworkConfig"),
        "accessConfig": props.get("accessConfig"),
        "encryptionConfig": [props["encryptionConfig"]] if props.get("encryptionConfig") else None,
        "upgradePolicy": props.get("upgradePolicy"),
        "deletionProtection": props.get("deletionProtection"),
        "bootstrapSelfManagedAddons": props["bootstrapSelfManagedAddons"],
        "logging": _logging(props),
    }


def _network(props: Props) -> dict[str, Any]:
    filled = ("clusterSecurityGroupId", "vpcId")
    return {name: value for name, value in props["vpcConfig"].items() if name not in filled}


def _logging(props: Props) -> dict[str, Any]:
    wanted = props.get("enabledClusterLogTypes", [])
    rows = ((True, [kind for kind in _LOGS if kind in wanted]), (False, [kind for kind in _LOGS if kind not in wanted]))
    return {"clusterLogging": [{"types": kinds, "enabled": enabled} for enabled, kinds in rows if kinds]}


def _create_cluster(call: Calls, inputs: Props) -> str:
    call("CreateCluster", name=inputs["name"], tags=inputs["tagsAll"] or None, **_request(inputs))
    return str(inputs["name"])


def _cluster(call: Calls, name: str) -> dict[str, Any] | None:
    answer = call.find("DescribeCluster", name=name)
    return answer and answer["cluster"]


def _read_cluster(call: Calls, name: str, recorded: Props) -> Props | None:
    cluster = _cluster(call, name)
    if cluster is None or cluster["status"] == "DELETING":
        return None
    logging = cluster.get("logging", {}).get("clusterLogging", [])
    encryption = cluster.get("encryptionConfig") or [None]
    return {
        "arn": cluster["arn"],
        "name": cluster["name"],
        "roleArn": cluster["roleArn"],
        "version": cluster["version"],
        "platformVersion": cluster.get("platformVersion"),
        "status": cluster["status"],
        "endpoint": cluster.get("endpoint"),
        "createdAt": stamp(cluster["createdAt"]),
        "certificateAuthority": cluster.get("certificateAuthority"),
        "certificateAuthorities": [cluster["certificateAuthority"]] if "certificateAuthority" in cluster else None,
        "identities": [{"oidcs": [cluster["identity"]["oidc"]]}] if "identity" in cluster else None,
        "vpcConfig": cluster["resourcesVpcConfig"],
        "kubernetesNetworkConfig": cluster.get("kubernetesNetworkConfig"),
        "accessConfig": cluster.get("accessConfig"),
        "encryptionConfig": encryption[0],
        "bootstrapSelfManagedAddons": recorded.get("bootstrapSelfManagedAddons"),
        "upgradePolicy": cluster.get("upgradePolicy"),
        "deletionProtection": cluster.get("deletionProtection", False),
        "enabledClusterLogTypes": [kind for row in logging if row["enabled"] for kind in row["types"]],
        "tags": cluster.get("tags", {}),
    }


def _await_cluster(call: Calls, name: str, _change: PlannedUpdate) -> None:
    until(call, lambda: _cluster(call, name), status=lambda seen: seen["status"], ready={"ACTIVE"}, failed={"FAILED"})


# One kind of change per call, as UpdateClusterConfig requires, in the official plugin's order
# (terraform-provider-aws 6.58.0, eks/resourceClusterUpdate).
_CHANGES: Final[dict[str, Callable[[Props], dict[str, Any]]]] = {
    "accessConfig": lambda new: {"accessConfig": {"authenticationMode": new["accessConfig"]["authenticationMode"]}},
    "deletionProtection": lambda new: {"deletionProtection": new["deletionProtection"]},
    "enabledClusterLogTypes": lambda new: {"logging": _logging(new)},
    "upgradePolicy": lambda new: {"upgradePolicy": new["upgradePolicy"]},
}
_NETWORK_CHANGES: Final = (
    ("endpointPrivateAccess", "endpointPublicAccess", "publicAccessCidrs"),
    ("subnetIds",),
    ("securityGroupIds",),
)


def _update_cluster(call: Calls, name: str, change: PlannedUpdate) -> None:
    if "encryptionConfig" in change and not change.old.get("encryptionConfig"):
        raise PluginError("the local cloud takes encryptionConfig at creation only, and not AssociateEncryptionConfig")
    if "version" in change:
        answer = call("UpdateClusterVersion", name=name, version=change.new["version"])
        await_update(call, answer["update"], name=name)
    for changed, request in _CHANGES.items():
        if changed in change and changed in change.new:
            answer = call("UpdateClusterConfig", name=name, **request(change.new))
            await_update(call, answer["update"], name=name)
    old, new = ({"securityGroupIds": [], **side.get("vpcConfig", {})} for side in (change.old, change.new))
    for names in _NETWORK_CHANGES if "vpcConfig" in change else ():
        config = {each: new[each] for each in names if each in new}
        if any(_unordered(old.get(each)) != _unordered(value) for each, value in config.items()):
            answer = call("UpdateClusterConfig", name=name, resourcesVpcConfig=config)
            await_update(call, answer["update"], name=name)


def _unordered(value: Any) -> Any:
    return sorted(value) if isinstance(value, list) else value


def await_update(call: Calls, update: dict[str, Any], **update_key: str) -> None:
    """Wait for an update of a cluster or an add-on, and report why it failed."""

    def describe() -> dict[str, Any]:
        described: dict[str, Any] = call("DescribeUpdate", updateId=update["id"], **update_key)["update"]
        if described["status"] in ("Failed", "Cancelled"):
            reasons = "; ".join(error.get("errorMessage", "") for error in described.get("errors", []))
            raise ChangeFailedError(f"{described['type']} ended in status {described['status']}: {reasons}")
        return described

    until(call, describe, status=lambda seen: seen["status"], ready={"Successful"})


def _delete_cluster(call: Calls, name: str, _state: Props) -> None:
    if call.find("DeleteCluster", name=name) is not None:
        until(
            call,
            lambda: _cluster(call, name),
            status=lambda seen: seen["status"],
            failed={"FAILED"},
            until_gone=True,
            delay=20.0,
        )


_VPC = (
    Prop("subnetIds", "list", required=True),
    Prop("securityGroupIds", "list"),
    Prop("endpointPrivateAccess", "boolean"),
    Prop("endpointPublicAccess", "boolean"),
    Prop("publicAccessCidrs", "list"),
    Prop("clusterSecurityGroupId"),
    Prop("vpcId"),
)
_NETWORK = (Prop("ipFamily"), Prop("serviceIpv4Cidr"))
_ADMIN = "bootstrapClusterCreatorAdminPermissions"
_ACCESS = (
    Prop("authenticationMode"),
    Prop(_ADMIN, "boolean", write_only=True),
)
_KEY = Prop("provider", "object", required=True, members=(Prop("keyArn", required=True),))


def _get_cluster(call: Calls, args: Props) -> Props:
    cluster = call("DescribeCluster", name=args["name"])["cluster"]
    logging = cluster.get("logging", {}).get("clusterLogging", [])
    plain = ("arn", "endpoint", "name", "platformVersion", "roleArn", "status", "version", "deletionProtection")
    lists = {
        "accessConfigs": "accessConfig",
        "certificateAuthorities": "certificateAuthority",
        "kubernetesNetworkConfigs": "kubernetesNetworkConfig",
        "upgradePolicies": "upgradePolicy",
    }
    return {
        "id": cluster["name"],
        "clusterId": "",
        **{name: cluster.get(name) for name in plain},
        **{name: [cluster[member]] for name, member in lists.items() if member in cluster},
        "createdAt": stamp(cluster["createdAt"]),
        "enabledClusterLogTypes": [kind for row in logging if row["enabled"] for kind in row["types"]],
        "identities": [{"oidcs": [cluster["identity"]["oidc"]]}],
        "vpcConfig": cluster["resourcesVpcConfig"],
        "tags": cluster.get("tags", {}),
    }


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
        "aws:eks/cluster:Cluster",
        props=(
            Prop("name"),
            Prop("roleArn", required=True),
            Prop("version"),
            Prop("vpcConfig", "object", required=True, members=_VPC),
            Prop("kubernetesNetworkConfig", "object", members=_NETWORK),
            Prop("accessConfig", "object", members=_ACCESS),
            Prop("encryptionConfig", "object", members=(_KEY, Prop("resources", "list", required=True))),
            Prop("upgradePolicy", "object", members=(Prop("supportType"),)),
            Prop("enabledClusterLogTypes", "list"),
            Prop("deletionProtection", "boolean"),
            Prop("bootstrapSelfManagedAddons", "boolean", write_only=True),
        ),
        create=_create_cluster,
        read=_read_cluster,
        update=_update_cluster,
        wait=_await_cluster,
        delete=_delete_cluster,
        outputs=(
            "arn",
            "platformVersion",
            "status",
            "endpoint",
            "createdAt",
            "certificateAuthority",
            "certificateAuthorities",
            "identities",
        ),
        tagging=BY_ARN,
        longest_name=100,
        imported={"bootstrapSelfManagedAddons": True},
        minutes=(30, 60, 15),
        retries={
            "CreateCluster": Retry(
                120.0,
                (
                    "does not exist",
                    "Error in role params",
                    "Role could not be assumed because the trusted entity is not correct",
                    "The provided role doesn't have the Amazon EKS Managed Policies associated with it",
                    "IAM role's policy must include",
                ),
            ),
            "DeleteCluster": Retry(3600.0, ("in progress",)),
        },
    ),
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

FUNCTIONS: Final = (
    Function("aws:eks/getCluster:getCluster", "eks", ("name", "tags"), "DescribeCluster", _get_cluster),
)

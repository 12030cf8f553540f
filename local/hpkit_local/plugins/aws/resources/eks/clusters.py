"""Amazon EKS: clusters and add-ons."""

from collections.abc import Callable
from typing import Any, Final

from hpkit_local.plugins.aws.calls import Calls, Retry, until
from hpkit_local.plugins.aws.resource_type import Function, PlannedUpdate, ResourceType, properties
from hpkit_local.plugins.aws.shapes import BY_ARN, creating, deleting, found, in_map, reading, settled, stamp, told
from hpkit_provider.engine.errors import ChangeFailedError, PluginError
from hpkit_provider.engine.values import Props

__all__ = ["FUNCTIONS", "RESOURCE_TYPES"]

# Members of creations and descriptions.
_CLUSTER: Final = "name roleArn version kubernetesNetworkConfig accessConfig upgradePolicy deletionProtection"
_ADDON: Final = "clusterName addonName addonVersion configurationValues serviceAccountRoleArn"
_LOGS: Final = ("api", "audit", "authenticator", "controllerManager", "scheduler")


def _request(props: Props) -> dict[str, Any]:
    return {
        "resourcesVpcConfig": _network(props),
        "encryptionConfig": [props["encryptionConfig"]] if props.get("encryptionConfig") else None,
        "logging": _logging(props),
    }


def _network(props: Props) -> dict[str, Any]:
    filled = ("clusterSecurityGroupId", "vpcId")
    return {name: value for name, value in props["vpcConfig"].items() if name not in filled}


def _logging(props: Props) -> dict[str, Any]:
    wanted = props.get("enabledClusterLogTypes", [])
    rows = ((True, [kind for kind in _LOGS if kind in wanted]), (False, [kind for kind in _LOGS if kind not in wanted]))
    return {"clusterLogging": [{"types": kinds, "enabled": enabled} for enabled, kinds in rows if kinds]}


_cluster = found("DescribeCluster", "cluster", "name")


def _enabled_logs(cluster: dict[str, Any]) -> list[str]:
    rows = cluster.get("logging", {}).get("clusterLogging", [])
    return [kind for row in rows if row["enabled"] for kind in row["types"]]


def _read_cluster(call: Calls, name: str, recorded: Props) -> Props | None:
    cluster = _cluster(call, name)
    if cluster is None or cluster["status"] == "DELETING":
        return None
    return {
        "deletionProtection": False,
        **told(
            cluster, f"{_CLUSTER} arn platformVersion status endpoint certificateAuthority vpcConfig=resourcesVpcConfig"
        ),
        "createdAt": stamp(cluster["createdAt"]),
        "certificateAuthorities": [cluster["certificateAuthority"]] if "certificateAuthority" in cluster else None,
        "identities": [{"oidcs": [cluster["identity"]["oidc"]]}] if "identity" in cluster else None,
        "encryptionConfig": (cluster.get("encryptionConfig") or [None])[0],
        "bootstrapSelfManagedAddons": recorded.get("bootstrapSelfManagedAddons"),
        "enabledClusterLogTypes": _enabled_logs(cluster),
    }


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


def _get_cluster(call: Calls, args: Props) -> Props:
    cluster = call("DescribeCluster", name=args["name"])["cluster"]
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
        "enabledClusterLogTypes": _enabled_logs(cluster),
        "identities": [{"oidcs": [cluster["identity"]["oidc"]]}],
        "vpcConfig": cluster["resourcesVpcConfig"],
        "tags": cluster.get("tags", {}),
    }


def _which(resource_id: str, _state: Props) -> dict[str, str]:
    cluster, _, name = resource_id.partition(":")
    return {"clusterName": cluster, "addonName": name}


_addon = found("DescribeAddon", "addon", _which)


def _read_addon(call: Calls, _resource_id: str, addon: dict[str, Any]) -> Props:
    arns = addon.get("podIdentityAssociations", [])
    associations = [_association(call, addon["clusterName"], arn) for arn in arns]
    times = {name: stamp(addon[name]) for name in ("createdAt", "modifiedAt")}
    return {**times, "podIdentityAssociations": associations}


def _association(call: Calls, cluster: str, arn: str) -> dict[str, str]:
    identifier = arn.rpartition("/")[2]
    answer = call("DescribePodIdentityAssociation", clusterName=cluster, associationId=identifier)
    return told(answer["association"], "roleArn serviceAccount")


def _update_addon(call: Calls, resource_id: str, change: PlannedUpdate) -> None:
    if not change.among("addonVersion", "configurationValues", "serviceAccountRoleArn", "podIdentityAssociations"):
        return
    new, addon_key = change.new, _which(resource_id, {})
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


def _deletion(resource_id: str, state: Props) -> dict[str, Any]:
    return {**_which(resource_id, state), "preserve": state["preserve"]}


RESOURCE_TYPES: Final = (
    ResourceType(
        "aws:eks/cluster:Cluster",
        props=properties(
            "name roleArn! version vpcConfig:object! kubernetesNetworkConfig:object accessConfig:object "
            "encryptionConfig:object upgradePolicy:object enabledClusterLogTypes:list deletionProtection:boolean "
            "bootstrapSelfManagedAddons:boolean*",
            vpcConfig=properties(
                "subnetIds:list! securityGroupIds:list endpointPrivateAccess:boolean endpointPublicAccess:boolean "
                "publicAccessCidrs:list clusterSecurityGroupId vpcId"
            ),
            kubernetesNetworkConfig=properties("ipFamily serviceIpv4Cidr"),
            accessConfig=properties("authenticationMode bootstrapClusterCreatorAdminPermissions:boolean*"),
            encryptionConfig=properties("provider:object! resources:list!", provider=properties("keyArn!")),
            upgradePolicy=properties("supportType"),
        ),
        create=creating(
            "CreateCluster",
            f"{_CLUSTER} bootstrapSelfManagedAddons",
            made="{name}",
            tags=in_map,
            style=dict,
            also=_request,
        ),
        read=_read_cluster,
        update=_update_cluster,
        wait=settled(_cluster, ["ACTIVE"], ["FAILED"]),
        delete=deleting("DeleteCluster", "name", look=_cluster, failed=["FAILED"], delay=20.0),
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
        props=properties(
            "clusterName! addonName! addonVersion configurationValues serviceAccountRoleArn "
            "podIdentityAssociations:list resolveConflictsOnCreate* resolveConflictsOnUpdate* preserve:boolean*",
            podIdentityAssociations=properties("roleArn! serviceAccount!"),
        ),
        other_calls="DescribePodIdentityAssociation",
        create=creating(
            "CreateAddon",
            f"{_ADDON} podIdentityAssociations resolveConflictsOnCreate=resolveConflicts",
            made="{clusterName}:{addonName}",
            tags=in_map,
            style=dict,
        ),
        read=reading(_addon, f"{_ADDON} arn=addonArn", _read_addon),
        update=_update_addon,
        # DEGRADED is a temporary status: an add-on that needs nodes runs once they exist.
        wait=settled(_addon, ["ACTIVE"], ["CREATE_FAILED", "UPDATE_FAILED", "DELETE_FAILED"]),
        delete=deleting("DeleteAddon", _deletion, look=_addon, failed=["DELETE_FAILED"]),
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

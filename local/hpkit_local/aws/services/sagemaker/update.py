"""UpdateCluster and UpdateClusterSoftware."""

from typing import Any

from hpkit_local.aws.api import given, operation
from hpkit_local.aws.backend import Context, Record
from hpkit_local.aws.service import MACHINES, action
from hpkit_local.aws.services.sagemaker.records import busy, nodes_of, record_event, require
from hpkit_local.aws.services.sagemaker.rules import (
    check_autoscaling,
    check_groups,
    check_instance_quotas,
    check_references,
    check_replacement,
    reject,
)
from hpkit_local.aws.services.sagemaker.scaling import is_continuous, new_group, remove_nodes, scale, set_autoscaling
from hpkit_local.aws.services.sagemaker.training_plans import check_training_plans

__all__: list[str] = []

CHANGEABLE = ("NodeRecovery", "TieredStorageConfig", "ClusterRole", "RestrictedInstanceGroupsConfig")
CHECKING = "DeepHealthCheckInProgress"


# Source: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_UpdateCluster.html
@operation("sagemaker", "UpdateCluster")
def update_cluster(ctx: Context, params: Record) -> Record:
    """Check the request against the live state, and begin to change."""
    cluster = require(ctx, params["ClusterName"])
    # A failed update can be repeated; a cluster that was never in service can only be deleted.
    if cluster["status"] != "InService" and not (cluster["status"] == "Failed" and cluster["served"]):
        raise busy(cluster)
    if any(node["status"] == CHECKING for node in cluster["nodes"].values()):
        raise reject(f"Cluster '{cluster['name']}' cannot be updated while deep health checks run")
    _check_fixed(cluster, params)
    restricted = params.get("RestrictedInstanceGroups", [])
    merged = _merged_groups(cluster, [*params.get("InstanceGroups", []), *restricted])
    restricted_names = {group["InstanceGroupName"] for group in restricted}
    _check_kinds(cluster, merged, restricted_names)
    continuous = is_continuous(cluster)
    check_groups(merged.values(), continuous=continuous, restricted=restricted_names)
    doomed = _doomed(cluster, merged, params.get("InstanceGroupsToDelete", []))
    check_references(ctx, merged.values(), _vpc_id(ctx, cluster))
    existing = {name: group["spec"] for name, group in cluster["groups"].items()}
    check_training_plans(ctx, existing, merged.values())
    check_instance_quotas(ctx, [existing[name] for name in merged if name in existing], merged.values())
    settings = given(params, *CHANGEABLE)
    mode = params.get("AutoScaling", {}).get("Mode") or (cluster["autoscaling"] or {}).get("Mode")
    # The role of a turned off autoscaler isn't used; but it can't be removed from a cluster.
    kept = {} if mode != "Enable" else dict(cluster["settings"])
    if (cluster["autoscaling"] or {}).get("Mode") != "Enable":
        # The developer guide passes the role with the mode ("Enable Karpenter autoscaling"). Whether the role that the
        # cluster already has is enough isn't documented.
        kept.pop("ClusterRole", None)
    check_autoscaling(ctx, {**kept, **settings}, mode)
    plan = {
        "groups": merged,
        "doomed": doomed,
        "settings": settings,
        "autoscaling": params.get("AutoScaling"),
        "restricted": [group["InstanceGroupName"] for group in restricted],
    }
    if continuous and _only_counts(cluster, plan):
        updated(ctx, name=cluster["name"], plan=plan)
    else:
        record_event(ctx, cluster, f"Update of cluster {cluster['name']} started")
        cluster["status"] = ctx.begin("cluster.update", "hyperpod.updated", name=cluster["name"], plan=plan)
    return {"ClusterArn": cluster["arn"]}


# Inferred from: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_UpdateCluster.html
def _vpc_id(ctx: Context, cluster: Record) -> str:
    arn = cluster["settings"]["Orchestrator"]["Eks"]["ClusterArn"]
    eks = ctx.table("eks").get(arn.rpartition("/")[2])
    if eks is None:
        raise reject(f"The EKS cluster {arn} of cluster '{cluster['name']}' no longer exists")
    return str(eks["resourcesVpcConfig"]["vpcId"])


# Source: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_UpdateCluster.html
def _check_fixed(cluster: Record, params: Record) -> None:
    """Reject changes of a cluster's immutable settings, and of the role that the autoscaler uses."""
    settings = cluster["settings"]
    for member in ("Orchestrator", "NodeProvisioningMode"):
        if member in params and params[member] != settings.get(member):
            raise reject(
                f"{member} of cluster '{cluster['name']}' cannot be changed from {settings.get(member)} "
                f"to {params[member]}"
            )
    role = params.get("ClusterRole")
    enabled = (cluster["autoscaling"] or {}).get("Mode") == "Enable"
    if role and role != settings.get("ClusterRole") and enabled:
        raise reject("ClusterRole cannot be changed while autoscaling is enabled; disable AutoScaling first")


# Inferred from: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_UpdateCluster.html
def _merged_groups(cluster: Record, groups: list[Record]) -> dict[str, Record]:
    """Merge each group of the request with its previous settings; omitted members keep their value."""
    merged: dict[str, Record] = {}
    for group in groups:
        name = group["InstanceGroupName"]
        if name in merged:
            raise reject(f"Instance group names must be unique: '{name}' is given twice")
        existing = cluster["groups"].get(name)
        if existing is None:
            merged[name] = dict(group)
            continue
        if existing["status"] == "Deleting":
            raise reject(f"Instance group '{name}' is being deleted")
        live = {node["type"] for node in nodes_of(cluster, name)}
        check_replacement(existing["spec"], group, live)
        merged[name] = {**existing["spec"], **group}
    return merged


# Inferred from: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_UpdateCluster.html
def _check_kinds(cluster: Record, merged: dict[str, Record], restricted: set[str]) -> None:
    """Doesn't turn a restricted group into another, or back."""
    for name in merged:
        existing = cluster["groups"].get(name)
        if existing is not None and existing["restricted"] != (name in restricted):
            kind = "RestrictedInstanceGroups" if existing["restricted"] else "InstanceGroups"
            raise reject(f"Instance group '{name}' is one of {kind} and cannot become the other kind")


# Source: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_UpdateCluster.html
def _doomed(cluster: Record, merged: dict[str, Record], names: list[str]) -> list[str]:
    for name in names:
        if name not in cluster["groups"]:
            raise reject(f"Instance group '{name}' in InstanceGroupsToDelete does not exist")
        if name in merged:
            raise reject(f"Instance group '{name}' is in both InstanceGroups and InstanceGroupsToDelete")
    staying = {name for name, group in cluster["groups"].items() if group["status"] != "Deleting"}
    if not (staying | set(merged)) - set(names):
        raise reject(f"At least one instance group must remain in cluster '{cluster['name']}'")
    return names


def _only_counts(cluster: Record, plan: Record) -> bool:
    """With continuous provisioning the cluster stays InService while groups merely scale."""
    if plan["doomed"] or plan["settings"] or plan["autoscaling"]:
        return False
    counts = {"InstanceCount", "MinInstanceCount"}
    for name, spec in plan["groups"].items():
        old = cluster["groups"].get(name)
        if old is None or any(old["spec"].get(key) != value for key, value in spec.items() if key not in counts):
            return False
    return True


@action("hyperpod.updated")
def updated(ctx: Context, *, name: str, plan: Record, failure: str = "") -> None:
    """Apply the change and let groups scale; a failed update leaves the cluster unchanged."""
    cluster = ctx.table("clusters")[name]
    if not failure and not is_continuous(cluster):
        failure = _capacity_missing(ctx, plan)
    if failure:
        cluster["status"], cluster["failure"] = MACHINES["cluster.update"].failed, failure
        record_event(ctx, cluster, f"Update failed: {failure}", level="Error")
        return
    cluster["status"] = MACHINES["cluster.update"].done
    cluster["failure"] = ""
    cluster["settings"].update(plan["settings"])
    for group_name, spec in plan["groups"].items():
        _apply_group(ctx, cluster, group_name, spec, restricted=group_name in plan["restricted"])
    for group_name in plan["doomed"]:
        _remove_group(ctx, cluster, group_name)
    if plan["autoscaling"]:
        set_autoscaling(ctx, cluster, plan["autoscaling"])
    ctx.controllers.noticed()


def _capacity_missing(ctx: Context, plan: Record) -> str:
    for name, spec in plan["groups"].items():
        limit = ctx.faults.value("capacity", name)
        if limit is not None and spec["InstanceCount"] > limit:
            asked = spec["InstanceCount"]
            return f"Insufficient capacity for instance group '{name}': {asked} asked, {int(limit)} available"
    return ""


def _apply_group(ctx: Context, cluster: Record, name: str, spec: Record, *, restricted: bool) -> None:
    group = cluster["groups"].get(name)
    before = 0
    if group is None:
        group = cluster["groups"][name] = new_group(spec, restricted=restricted)
        group["status"] = MACHINES["group.create"].done
        record_event(ctx, cluster, f"Instance group {name} was added", group=name)
    else:
        before = group["spec"]["InstanceCount"]
        group["spec"] = _with_image(ctx, cluster, group, spec)
    scale(ctx, cluster, group, since=before)


# Source: API reference, ClusterInstanceGroupDetails (SoftwareUpdateStatus, TargetStateCount).
def _with_image(ctx: Context, cluster: Record, group: Record, spec: Record) -> Record:
    """Return the settings of an existing group; a new image that is rolled back isn't among them."""
    images = ("ImageId", "ImageReleaseVersion")
    if not any(spec.get(key) != group["spec"].get(key) for key in images):
        return spec
    name = spec["InstanceGroupName"]
    undone = ctx.faults.strikes("failed-software", name)
    group["software"] = "RollbackComplete" if undone else "Succeeded"
    if not undone:
        return spec
    record_event(ctx, cluster, f"Software update of {name} was rolled back", group=name, level="Error")
    kept = {key: group["spec"][key] for key in images if key in group["spec"]}
    return {**{key: value for key, value in spec.items() if key not in images}, **kept}


def _remove_group(ctx: Context, cluster: Record, name: str) -> None:
    record_event(ctx, cluster, f"Instance group {name} is being deleted", group=name)
    group = cluster["groups"][name]
    ids = [node["id"] for node in nodes_of(cluster, name)]
    if not ids:
        del cluster["groups"][name]
        return
    group["status"] = "Deleting"
    group["spec"]["InstanceCount"] = 0
    group["spec"].pop("MinInstanceCount", None)
    remove_nodes(ctx, cluster, ids)


# Inferred from: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_UpdateClusterSoftware.html
@operation("sagemaker", "UpdateClusterSoftware")
def update_cluster_software(ctx: Context, params: Record) -> Record:
    """Update all groups, or the given ones, to the current image release."""
    cluster = require(ctx, params["ClusterName"])
    if cluster["status"] != "InService":
        raise busy(cluster)
    listed = params.get("InstanceGroups") or [{"InstanceGroupName": name} for name in cluster["groups"]]
    releases: dict[str, Any] = {}
    for entry in listed:
        name = entry["InstanceGroupName"]
        if name not in cluster["groups"]:
            raise reject(f"Instance group '{name}' does not exist in cluster '{cluster['name']}'")
        if cluster["groups"][name].get("waiting"):
            raise reject(f"Instance group '{name}' is waiting for its MinInstanceCount; try again later")
        releases[name] = entry.get("ImageReleaseVersion")
        cluster["groups"][name].update(software="InProgress", status="SystemUpdating")
    record_event(ctx, cluster, f"Software update of {', '.join(releases)} started")
    cluster["status"] = ctx.begin("cluster.software", "hyperpod.patched", name=cluster["name"], releases=releases)
    return {"ClusterArn": cluster["arn"]}


@action("hyperpod.patched")
def patched(ctx: Context, *, name: str, releases: dict[str, Any], failure: str = "") -> None:
    """Nodes run the new image, or are back on the old one."""
    cluster = ctx.table("clusters")[name]
    for group_name, release in releases.items():
        group = cluster["groups"][group_name]
        group.update(software="RollbackComplete" if failure else "Succeeded", status="InService")
        if failure:
            continue
        group["release"] = release or group["release"]
        if release:
            group["spec"]["ImageReleaseVersion"] = release
        for node in nodes_of(cluster, group_name):
            node.update(release=group["release"], updated=ctx.now)
    cluster["status"] = MACHINES["cluster.software"].done
    record_event(ctx, cluster, failure or "Software update finished", level="Error" if failure else "Info")

"""BatchAdd-, BatchDelete-, BatchReplace- and BatchRebootClusterNodes: what Karpenter and operators call."""

from hpkit_local.aws.api import given, operation
from hpkit_local.aws.backend import Context, Record
from hpkit_local.aws.service import MACHINES, action
from hpkit_local.aws.services.sagemaker.records import GONE, nodes_of, record_event, require
from hpkit_local.aws.services.sagemaker.rules import reject
from hpkit_local.aws.services.sagemaker.scaling import add_nodes, is_continuous, nodes_up, remove_nodes

__all__: list[str] = []

MOST_AT_ONCE = 50
MOST_DELETED = 99
MOST_DELETED_BY_LOGICAL_ID = 50
# "Wait for the instance to finish any ongoing changes before retrying": an instance that is on its way somewhere.
_CHANGING = ("Pending", "SystemUpdating", GONE)


# Source: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_BatchAddClusterNodes.html
@operation("sagemaker", "BatchAddClusterNodes")
def batch_add_cluster_nodes(ctx: Context, params: Record) -> Record:
    """Raise targets of groups and start nodes for them; each entry succeeds or fails on its own."""
    cluster = require(ctx, params["ClusterName"])
    _require_continuous(cluster, "BatchAddClusterNodes")
    total = sum(entry["IncrementTargetCountBy"] for entry in params["NodesToAdd"])
    if total > MOST_AT_ONCE:
        raise reject(f"A request can add up to {MOST_AT_ONCE} nodes in all, not {total}")
    successful: list[Record] = []
    failed: list[Record] = []
    for entry in params["NodesToAdd"]:
        problem = _cannot_add(ctx, cluster, entry)
        if problem:
            failure = {"ErrorCode": problem[0], "FailedCount": entry["IncrementTargetCountBy"], "Message": problem[1]}
            failed.append({"InstanceGroupName": entry["InstanceGroupName"], **failure})
        else:
            successful.extend(_add(ctx, cluster, entry))
    return {"Successful": successful, "Failed": failed}


# Source: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_BatchAddClusterNodes.html
def _require_continuous(cluster: Record, operation_name: str) -> None:
    if not is_continuous(cluster):
        raise reject(f"{operation_name} needs a cluster with NodeProvisioningMode Continuous")


def _cannot_add(ctx: Context, cluster: Record, entry: Record) -> tuple[str, str] | None:
    name = entry["InstanceGroupName"]
    group = cluster["groups"].get(name)
    if group is None:
        return "InstanceGroupNotFound", f"Instance group '{name}' not found"
    if cluster["status"] != "InService" or group["status"] != "InService":
        return "InvalidInstanceGroupStatus", f"Instance group '{name}' is {group['status']}"
    spec = group["spec"]
    types = spec.get("InstanceRequirements", {}).get("InstanceTypes") or [spec["InstanceType"]]
    if not set(entry.get("InstanceTypes", types)) <= set(types):
        return "IncompatibleInstanceTypes", f"Instance group '{name}' has the types {types}"
    if "AvailabilityZones" in entry:
        zones = _zones(ctx, cluster, spec)
        if not zones & set(entry["AvailabilityZones"]):
            return "IncompatibleAvailabilityZones", f"Instance group '{name}' is in {sorted(zones)}"
    limit = ctx.faults.value("capacity", name)
    if limit is not None and spec["InstanceCount"] + entry["IncrementTargetCountBy"] > limit:
        record_event(ctx, cluster, f"Insufficient capacity for instance group {name}", group=name, level="Warn")
    return None


def _zones(ctx: Context, cluster: Record, spec: Record) -> set[str]:
    config = spec.get("OverrideVpcConfig") or cluster["settings"]["VpcConfig"]
    subnets = ctx.backend.moto.backend("ec2", ctx.region).subnets
    return {zone for zone, members in subnets.items() if members.keys() & set(config["Subnets"])}


def _add(ctx: Context, cluster: Record, entry: Record) -> list[Record]:
    name, count = entry["InstanceGroupName"], entry["IncrementTargetCountBy"]
    group = cluster["groups"][name]
    group["spec"]["InstanceCount"] += count
    group["scaling"] = True
    limit = ctx.faults.value("capacity", name)
    room = count if limit is None else min(count, max(0, int(limit) - len(nodes_of(cluster, name))))
    chosen = given(entry, "AvailabilityZones", "InstanceTypes")
    nodes = add_nodes(ctx, cluster, group, count=room) if room else []
    if "InstanceTypes" in entry:
        for node in nodes:
            node["type"] = entry["InstanceTypes"][0]
    logical = [node["logical"] for node in nodes] + [f"{name}-{ctx.token(12)}" for _ in range(count - room)]
    return [{"NodeLogicalId": node, "InstanceGroupName": name, "Status": "Pending", **chosen} for node in logical]


# Source: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_BatchDeleteClusterNodes.html
@operation("sagemaker", "BatchDeleteClusterNodes")
def batch_delete_cluster_nodes(ctx: Context, params: Record) -> Record:
    """Shut nodes down and lower the targets of their groups."""
    cluster = require(ctx, params["ClusterName"])
    _require_continuous(cluster, "BatchDeleteClusterNodes")
    if len(params.get("NodeIds", [])) > MOST_DELETED:
        raise reject(f"A request can delete up to {MOST_DELETED} nodes, not {len(params['NodeIds'])}")
    node_count = len(params.get("NodeIds", [])) + len(params.get("NodeLogicalIds", []))
    if params.get("NodeLogicalIds") and node_count > MOST_DELETED_BY_LOGICAL_ID:
        most = MOST_DELETED_BY_LOGICAL_ID
        raise reject(f"A request with NodeLogicalIds can delete up to {most} nodes, not {node_count}")
    good, bad = _sort(cluster, params, settled=True)
    for node in good.values():
        spec = cluster["groups"][node["group"]]["spec"]
        spec["InstanceCount"] = max(0, spec["InstanceCount"] - 1)
    if good:
        remove_nodes(ctx, cluster, [node["id"] for node in good.values()])
    return _answer(params, good, bad, codes=("NodeIdNotFound", "InvalidNodeStatus"), member="Code")


@operation("sagemaker", "BatchReplaceClusterNodes")
def batch_replace_cluster_nodes(ctx: Context, params: Record) -> Record:
    """Shut nodes down and start others in their place."""
    cluster = require(ctx, params["ClusterName"])
    _check_logical_ids(cluster, params, "BatchReplaceClusterNodes")
    good, bad = _sort(cluster, params, unchanging=True)
    for node in good.values():
        remove_nodes(ctx, cluster, [node["id"]])
        add_nodes(ctx, cluster, cluster["groups"][node["group"]], count=1)
    return _answer(params, good, bad, codes=("InstanceIdNotFound", "InvalidInstanceStatus"), member="ErrorCode")


@operation("sagemaker", "BatchRebootClusterNodes")
def batch_reboot_cluster_nodes(ctx: Context, params: Record) -> Record:
    """Restart nodes in place."""
    cluster = require(ctx, params["ClusterName"])
    _check_logical_ids(cluster, params, "BatchRebootClusterNodes")
    good, bad = _sort(cluster, params, unchanging=True)
    for node in good.values():
        node["status"] = MACHINES["node.reboot"].running
    if good:
        ids = [node["id"] for node in good.values()]
        ctx.begin("node.reboot", "hyperpod.rebooted", name=cluster["name"], ids=ids)
    return _answer(params, good, bad, codes=("InstanceIdNotFound", "InvalidInstanceStatus"), member="ErrorCode")


# Source: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_BatchRebootClusterNodes.html
def _check_logical_ids(cluster: Record, params: Record, operation_name: str) -> None:
    if params.get("NodeLogicalIds") and not is_continuous(cluster):
        raise reject(f"NodeLogicalIds of {operation_name} need a cluster with NodeProvisioningMode Continuous")


@action("hyperpod.rebooted")
def rebooted(ctx: Context, *, name: str, ids: list[str], failure: str = "") -> None:
    """Rebooted nodes run again, without another round of health checks."""
    cluster = ctx.table("clusters").get(name)
    if cluster is None:
        return
    for node_id in ids:
        if node_id in cluster["nodes"] and cluster["nodes"][node_id]["status"] == "Pending":
            cluster["nodes"][node_id]["status"] = MACHINES["node.deep-health-check"].running
    nodes_up(ctx, name=name, ids=ids, failure=failure)


# Inferred from: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_BatchDeleteClusterNodes.html
def _sort(
    cluster: Record, params: Record, *, settled: bool = False, unchanging: bool = False
) -> tuple[dict[str, Record], dict[str, Record | None]]:
    """Return the request's nodes: those that the operation can change, and the others (None: no such node).

    settled: the group must not wait for its minimum; unchanging: the instance must not be changing.
    """
    names = [*params.get("NodeIds", []), *params.get("NodeLogicalIds", [])]
    if not names:
        raise reject("Give NodeIds or NodeLogicalIds")
    if cluster["status"] != "InService":
        raise reject(f"Cluster '{cluster['name']}' is {cluster['status']}; nodes can be changed when it is InService")
    nodes_by_id = {key: node for node in cluster["nodes"].values() for key in (node["id"], node["logical"])}
    good: dict[str, Record] = {}
    bad: dict[str, Record | None] = {}
    for name in dict.fromkeys(names):
        node = nodes_by_id.get(name)
        waits = node is not None and settled and "waiting" in cluster["groups"][node["group"]]
        barred = _CHANGING if unchanging else (GONE,)
        if node is None or waits or node["status"] in barred:
            bad[name] = node
        else:
            good[name] = node
    return good, bad


def _answer(
    params: Record,
    good: dict[str, Record],
    bad: dict[str, Record | None],
    *,
    codes: tuple[str, str],
    member: str,
) -> Record:
    answer: Record = {}
    for request_member, done, failed, key in (
        ("NodeIds", "Successful", "Failed", "NodeId"),
        ("NodeLogicalIds", "SuccessfulNodeLogicalIds", "FailedNodeLogicalIds", "NodeLogicalId"),
    ):
        names = params.get(request_member, [])
        succeeded = [name for name in names if name in good]
        failures = [
            {key: name, member: codes[bad[name] is not None], "Message": _reason(name, bad[name])}
            for name in names
            if name in bad
        ]
        if succeeded:
            answer[done] = succeeded
        if failures:
            answer[failed] = failures
    return answer


def _reason(name: str, node: Record | None) -> str:
    if node is None:
        return f"Node {name} not found"
    return f"Node {name} is {node['status']} in group {node['group']} and cannot be changed now"

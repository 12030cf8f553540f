"""Nodes of instance groups: changes from the current to the target count."""

import ipaddress

from hpkit_local.aws.backend import Context, Record
from hpkit_local.aws.lateness import late_seconds, when_effective
from hpkit_local.aws.service import MACHINES, action
from hpkit_local.aws.services.ec2.rules import require_subnet
from hpkit_local.aws.services.eks.addons import is_joined, nodes_arrived
from hpkit_local.aws.services.sagemaker.nodes import reach_of
from hpkit_local.aws.services.sagemaker.records import GONE, current_count, nodes_of, record_event

__all__ = ["add_nodes", "is_continuous", "launch_all", "new_group", "remove_nodes", "scale", "set_autoscaling"]


def set_autoscaling(ctx: Context, cluster: Record, target: Record) -> None:
    """Move towards `target` ({Mode, AutoScalerType}); nothing happens when it is already so."""
    now = cluster["autoscaling"]
    if (now["Mode"] if now else "Disable") == target["Mode"]:
        return
    machine = "autoscaling.create" if target["Mode"] == "Enable" else "autoscaling.delete"
    status = ctx.begin(machine, "hyperpod.autoscaling", name=cluster["name"], mode=target["Mode"])
    cluster["autoscaling"] = {
        "Mode": target["Mode"],
        "AutoScalerType": target.get("AutoScalerType", "Karpenter"),
        "Status": status,
    }


@action("hyperpod.autoscaling")
def arrived(ctx: Context, *, name: str, mode: str, failure: str = "") -> None:
    """Karpenter runs or is gone."""
    cluster = ctx.table("clusters").get(name)
    if cluster is None or cluster["autoscaling"] is None or cluster["autoscaling"]["Mode"] != mode:
        return
    if failure:
        cluster["autoscaling"].update(Status="Failed", FailureMessage=failure)
        record_event(ctx, cluster, f"Autoscaling: {failure}", level="Error")
    elif mode == "Enable":
        ctx.controllers.submit(f"autoscaling/{name}", dict(cluster["autoscaling"]))
        cluster["autoscaling"]["Status"] = MACHINES["autoscaling.create"].done
        record_event(ctx, cluster, "Autoscaling with Karpenter is enabled")
    else:
        ctx.controllers.submit(f"autoscaling/{name}", None)
        cluster["autoscaling"] = None
        record_event(ctx, cluster, "Autoscaling is disabled")


RELEASE = "1.0.0"
MIN_COUNT_SECONDS = 3 * 3600  # continuous provisioning gives MinInstanceCount three hours
CAPACITY_RETRY_SECONDS = 60
REPLACE_SECONDS = 60


def new_group(spec: Record, *, restricted: bool = False) -> Record:
    """Return the record of a group that is being created; restricted: one of RestrictedInstanceGroups."""
    release = spec.get("ImageReleaseVersion", RELEASE)
    return {"spec": dict(spec), "status": "Creating", "release": release, "restricted": restricted}


def is_continuous(cluster: Record) -> bool:
    """Return whether the cluster was created with NodeProvisioningMode Continuous."""
    return bool(cluster["settings"].get("NodeProvisioningMode") == "Continuous")


def launch_all(ctx: Context, cluster: Record) -> str:
    """Without continuous provisioning, start all nodes at once or fail the change: return why, or nothing."""
    for name, group in cluster["groups"].items():
        target = group["spec"]["InstanceCount"]
        limit = ctx.faults.value("capacity", name)
        if limit is not None and target > limit:
            return f"Insufficient capacity for instance group '{name}': {target} asked, {int(limit)} available"
    for group in cluster["groups"].values():
        _fit(ctx, cluster, group, at_once=True)
    return ""


def scale(ctx: Context, cluster: Record, group: Record, *, since: int | None) -> None:
    """Move a group to its InstanceCount; `since` is the target it had."""
    spec = group["spec"]
    name, target = spec["InstanceGroupName"], spec["InstanceCount"]
    if since is not None and since != target and is_continuous(cluster):
        group["scaling"] = True
        record_event(ctx, cluster, f"Scaling instance group {name} from {since} to {target}", group=name)
    restarts = since is not None or "waiting" not in group
    below = current_count(cluster, name) < spec.get("MinInstanceCount", 0)
    if below and restarts and group["status"] != "Deleting":
        _await_minimum(ctx, cluster, group, since=since)
    _fit(ctx, cluster, group)
    _settle_group(cluster, group)


def _await_minimum(ctx: Context, cluster: Record, group: Record, *, since: int | None) -> None:
    group["status"] = "Updating" if since else "Creating"
    group["waiting"] = group.get("waiting", 0) + 1
    ctx.backend.later(
        ctx,
        MIN_COUNT_SECONDS * ctx.backend.settings.latency_factor + 1,
        "hyperpod.minimum-expired",
        {
            "name": cluster["name"],
            "group": group["spec"]["InstanceGroupName"],
            "waiting": group["waiting"],
            "previous_count": since or 0,
        },
    )


@action("hyperpod.minimum-expired")
def minimum_expired(ctx: Context, *, name: str, group: str, waiting: int, previous_count: int) -> None:
    """Apply: the minimum was not reached in time: back to the last InService values, or to none."""
    cluster = ctx.table("clusters").get(name)
    instance_group = cluster["groups"].get(group) if cluster else None
    if cluster is None or instance_group is None or instance_group.get("waiting") != waiting:
        return
    if instance_group["status"] not in ("Creating", "Updating"):
        return
    least = instance_group["spec"]["MinInstanceCount"]
    instance_group["spec"].update(InstanceCount=previous_count, MinInstanceCount=0)
    instance_group["status"] = "InService"
    del instance_group["waiting"]
    text = f"Instance group {group} did not reach {least} instances in time; rolled back to {previous_count}"
    record_event(ctx, cluster, text, group=group, level="Error")
    scale(ctx, cluster, instance_group, since=None)


def _fit(ctx: Context, cluster: Record, group: Record, *, at_once: bool = False) -> None:
    """Start or stop as many nodes as are missing or too many."""
    spec = group["spec"]
    name = spec["InstanceGroupName"]
    live = nodes_of(cluster, name)
    surplus = len(live) - spec["InstanceCount"]
    if surplus > 0:
        victims = ctx.backend.rng.sample(live, surplus)
        remove_nodes(ctx, cluster, [node["id"] for node in victims])
        return
    limit = ctx.faults.value("capacity", name)
    room = -surplus if limit is None else min(-surplus, max(0, int(limit) - len(live)))
    if room:
        add_nodes(ctx, cluster, group, count=room, at_once=at_once)
    if room < -surplus:
        missing = -surplus - room
        text = f"Insufficient capacity: instance group {name} misses {missing} of {spec['InstanceCount']}"
        record_event(ctx, cluster, text, group=name, level="Warn")
        seconds = max(1.0, CAPACITY_RETRY_SECONDS * ctx.backend.settings.latency_factor)
        ctx.backend.later(ctx, seconds, "hyperpod.retry", {"name": cluster["name"], "group": name})


@action("hyperpod.retry")
def retry(ctx: Context, *, name: str, group: str) -> None:
    """Request again what continuous provisioning didn't get."""
    cluster = ctx.table("clusters").get(name)
    if cluster and group in cluster["groups"] and cluster["status"] not in ("Deleting", "Failed"):
        scale(ctx, cluster, cluster["groups"][group], since=None)


def add_nodes(ctx: Context, cluster: Record, group: Record, *, count: int, at_once: bool = False) -> list[Record]:
    """Request `count` nodes; they run some time later, or immediately while the cluster itself is being created."""
    used_addresses = {node["ip"] for node in cluster["nodes"].values()}
    nodes = []
    for _ in range(count):
        node = _new_node(ctx, cluster, group, used_addresses=used_addresses)
        used_addresses.add(node["ip"])
        cluster["nodes"][node["id"]] = node
        nodes.append(node)
    ids = [node["id"] for node in nodes]
    if at_once:
        nodes_up(ctx, name=cluster["name"], ids=ids)
    else:
        ctx.begin("node.create", "hyperpod.nodes-up", name=cluster["name"], ids=ids)
    return nodes


def _new_node(ctx: Context, cluster: Record, group: Record, *, used_addresses: set[str]) -> Record:
    spec = group["spec"]
    config = spec.get("OverrideVpcConfig") or cluster["settings"]["VpcConfig"]
    subnet = require_subnet(ctx, ctx.backend.rng.choice(config["Subnets"]))
    types = spec.get("InstanceRequirements", {}).get("InstanceTypes") or [spec["InstanceType"]]
    return {
        "id": "i-" + ctx.token(17, "0123456789abcdef"),
        "logical": f"{spec['InstanceGroupName']}-{ctx.token(12)}",
        "group": spec["InstanceGroupName"],
        "type": types[0],
        "status": MACHINES["node.create"].running,
        "message": "",
        "joined": False,
        "launched": ctx.now,
        "ip": _free_address(subnet.cidr, used_addresses),
        "zone": subnet.zone,
        "zone_id": subnet.zone_id,
        "release": group["release"],
        "subnet": subnet.id,
        "security_groups": list(config.get("SecurityGroupIds", [])),
        "reach": reach_of(ctx, subnet.id, config.get("SecurityGroupIds", [])),
    }


def _free_address(cidr: str, used_addresses: set[str]) -> str:
    """Return the first free address of the subnet; AWS reserves the first four."""
    network = ipaddress.ip_network(cidr)
    for offset in range(4, network.num_addresses - 1):
        address = str(network.network_address + offset)
        if address not in used_addresses:
            return address
    return str(network.network_address + 4)


@action("hyperpod.nodes-up")
def nodes_up(ctx: Context, *, name: str, ids: list[str], failure: str = "") -> None:
    """Nodes have started: they run, are checked first, or have failed."""
    cluster = ctx.table("clusters").get(name)
    if cluster is None:
        return
    checked: list[str] = []
    for node in [cluster["nodes"][node_id] for node_id in ids if node_id in cluster["nodes"]]:
        spec = cluster["groups"][node["group"]]["spec"]
        if node["status"] not in ("Pending", "DeepHealthCheckInProgress"):
            continue
        if failure or ctx.faults.strikes("node-failure", node["group"]):
            _fail(ctx, cluster, node, failure or "fault injected: node-failure")
            _log_script(ctx, cluster, node)
        elif node["status"] == "Pending" and spec.get("OnStartDeepHealthChecks"):
            node["status"] = MACHINES["node.deep-health-check"].running
            checked.append(node["id"])
        else:
            if not late_seconds(ctx, "node"):
                node.pop("joined", None)
            node["status"] = MACHINES["node.create"].done
            record_event(ctx, cluster, f"Node {node['id']} is running", group=node["group"], node=node["id"])
    if checked:
        ctx.begin("node.deep-health-check", "hyperpod.nodes-up", name=name, ids=checked)
    when_effective(ctx, "node", "hyperpod.nodes-joined", name=name, ids=ids)
    _report(ctx, cluster)


@action("hyperpod.nodes-joined")
def nodes_joined(ctx: Context, *, name: str, ids: list[str]) -> None:
    """Mark running nodes as joined to Kubernetes."""
    cluster = ctx.table("clusters").get(name)
    if cluster is None:
        return
    for node in [cluster["nodes"][node_id] for node_id in ids if node_id in cluster["nodes"]]:
        if node["status"] != "Pending":
            node.pop("joined", None)
    _report(ctx, cluster)


def _fail(ctx: Context, cluster: Record, node: Record, reason: str) -> None:
    node.update(status="Failure", message=reason)
    text = f"Node {node['id']} failed: {reason}"
    record_event(ctx, cluster, text, group=node["group"], node=node["id"], level="Error")
    if cluster["settings"].get("NodeRecovery") == "Automatic":
        seconds = max(1.0, REPLACE_SECONDS * ctx.backend.settings.latency_factor)
        ctx.backend.later(ctx, seconds, "hyperpod.recover", {"name": cluster["name"], "node": node["id"]})


# Source: https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-lifecycle-best-practices-slurm-slurm-debug.html
def _log_script(ctx: Context, cluster: Record, node: Record) -> None:
    """Write the log of a lifecycle script that fails."""
    logs = ctx.backend.moto.backend("logs", ctx.region)
    group = f"/aws/sagemaker/Clusters/{cluster['name']}/{cluster['arn'].rpartition('/')[2]}"
    stream = f"LifecycleConfig/{node['group']}/{node['id']}"
    if group not in logs.groups:
        logs.create_log_group(group, {})
    logs.create_log_stream(group, stream)
    lines = ("Running the lifecycle script", f"{node['message']}: exit status 1")
    logs.put_log_events(group, stream, [{"timestamp": int(ctx.now * 1000), "message": line} for line in lines])
    ctx.backend.touched("logs")


@action("hyperpod.recover")
def recover(ctx: Context, *, name: str, node: str) -> None:
    """NodeRecovery Automatic replaces a failed node."""
    cluster = ctx.table("clusters").get(name)
    if cluster is None or cluster["nodes"].get(node, {}).get("status") != "Failure":
        return
    group = cluster["groups"][cluster["nodes"][node]["group"]]
    remove_nodes(ctx, cluster, [node])
    scale(ctx, cluster, group, since=None)


def remove_nodes(ctx: Context, cluster: Record, ids: list[str]) -> None:
    """Begin to shut nodes down."""
    for node_id in ids:
        cluster["nodes"][node_id]["status"] = GONE
    ctx.begin("node.delete", "hyperpod.nodes-down", name=cluster["name"], ids=ids)
    _report(ctx, cluster)


@action("hyperpod.nodes-down")
def nodes_down(ctx: Context, *, name: str, ids: list[str], failure: str = "") -> None:
    """Nodes are gone, or stay as failed ones."""
    cluster = ctx.table("clusters").get(name)
    if cluster is None:
        return
    for node_id in ids:
        node = cluster["nodes"].get(node_id)
        if node is None:
            continue
        if failure:
            node.update(status="Failure", message=failure)
            continue
        del cluster["nodes"][node_id]
        text = f"Node {node_id} was terminated"
        record_event(ctx, cluster, text, group=node["group"], node=node_id)
    for group in list(cluster["groups"].values()):
        name_of_group = group["spec"]["InstanceGroupName"]
        left = any(node["group"] == name_of_group for node in cluster["nodes"].values())
        if group["status"] == "Deleting" and not left:
            del cluster["groups"][name_of_group]
    _report(ctx, cluster)


def _report(ctx: Context, cluster: Record) -> None:
    for group in cluster["groups"].values():
        _settle_group(cluster, group)
    if any(is_joined(node) for node in cluster["nodes"].values()):
        nodes_arrived(ctx, cluster["settings"]["Orchestrator"]["Eks"]["ClusterArn"].rpartition("/")[2])
    ctx.controllers.noticed()


def _settle_group(cluster: Record, group: Record) -> None:
    """Finish reached goals: the minimum, and the size."""
    spec = group["spec"]
    count = current_count(cluster, spec["InstanceGroupName"])
    waits = cluster["status"] == "InService" and group["status"] in ("Creating", "Updating")
    if waits and "waiting" in group and count >= spec.get("MinInstanceCount", 0):
        group["status"] = "InService"
        del group["waiting"]
    if count == spec["InstanceCount"] == len(nodes_of(cluster, spec["InstanceGroupName"])):
        group.pop("scaling", None)

"""Volumes and network interfaces of nodes, and health checks on request."""

from __future__ import annotations

from typing import Any

from hpkit_local.aws.api import operation
from hpkit_local.aws.backend import Context, Record
from hpkit_local.aws.errors import ServiceError
from hpkit_local.aws.service import MACHINES
from hpkit_local.aws.services.sagemaker.events import record_event
from hpkit_local.aws.services.sagemaker.records import GONE, nodes_of, require
from hpkit_local.aws.services.sagemaker.rules import refuse

__all__: list[str] = []

# Device names of EBS volumes other than the root and the first data volume.
_DEVICES = tuple(f"/dev/sd{letter}" for letter in "fghijklmnop")


def _node(cluster: Record, node_id: str) -> Record:
    node: Record | None = cluster["nodes"].get(node_id)
    if node is None or node["status"] == GONE:
        raise ServiceError("ResourceNotFound", f"Node '{node_id}' of cluster '{cluster['name']}' not found")
    return node


def _in_ec2(ctx: Context, resource_type: str, key: str) -> Any:
    """Return a volume or an interface of moto's EC2; refuse one that does not exist."""
    backend = ctx.backend.moto.backend("ec2", ctx.region)
    resource = {"volume": backend.volumes, "network interface": backend.enis}[resource_type].get(key)
    if resource is None:
        raise refuse(f"The {resource_type} '{key}' does not exist")
    return resource


@operation("sagemaker", "AttachClusterNodeVolume")
def attach_cluster_node_volume(ctx: Context, params: Record) -> Record:
    """Attach an EBS volume to a node of its zone."""
    cluster = require(ctx, params["ClusterArn"])
    node, volume = _node(cluster, params["NodeId"]), params["VolumeId"]
    zone = str(getattr(_in_ec2(ctx, "volume", volume).zone, "name", ""))
    if zone and zone != node["zone"]:
        raise refuse(f"The volume '{volume}' is in {zone}, the node '{node['id']}' in {node['zone']}")
    for other in cluster["nodes"].values():
        if volume in other.get("volumes", {}):
            raise refuse(f"The volume '{volume}' is attached to the node '{other['id']}' already")
    volumes = node.setdefault("volumes", {})
    free = [device for device in _DEVICES if device not in {entry["device"] for entry in volumes.values()}]
    if not free:
        raise refuse(f"The node '{node['id']}' has {len(volumes)} volumes, and takes no more")
    volumes[volume] = {"device": free[0], "since": ctx.now}
    return _attachment(cluster, node, volume, volumes[volume], "attached")


@operation("sagemaker", "DetachClusterNodeVolume")
def detach_cluster_node_volume(ctx: Context, params: Record) -> Record:
    """Detach a volume from its node."""
    cluster = require(ctx, params["ClusterArn"])
    node, volume = _node(cluster, params["NodeId"]), params["VolumeId"]
    entry = node.get("volumes", {}).pop(volume, None)
    if entry is None:
        raise refuse(f"The volume '{volume}' is not attached to the node '{node['id']}'")
    return _attachment(cluster, node, volume, entry, "detached")


def _attachment(cluster: Record, node: Record, volume: str, entry: Record, status: str) -> Record:
    return {
        "ClusterArn": cluster["arn"],
        "NodeId": node["id"],
        "VolumeId": volume,
        "AttachTime": entry["since"],
        "Status": status,
        "DeviceName": entry["device"],
    }


@operation("sagemaker", "AttachClusterNodeNetworkInterface")
def attach_cluster_node_network_interface(ctx: Context, params: Record) -> Record:
    """Attach a network interface to a node."""
    cluster = require(ctx, params["ClusterName"])
    node, interface = _node(cluster, params["NodeId"]), params["NetworkInterfaceId"]
    _in_ec2(ctx, "network interface", interface)
    for other in cluster["nodes"].values():
        if interface in other.get("interfaces", {}):
            raise refuse(f"The network interface '{interface}' is attached to the node '{other['id']}' already")
    attachment = f"eni-attach-0{ctx.token(16, '0123456789abcdef')}"
    node.setdefault("interfaces", {})[interface] = attachment
    return {
        "ClusterArn": cluster["arn"],
        "NodeId": node["id"],
        "NetworkInterfaceId": interface,
        "AttachmentId": attachment,
    }


@operation("sagemaker", "StartClusterHealthCheck")
def start_cluster_health_check(ctx: Context, params: Record) -> Record:
    """Begin deep health checks on whole groups or on some of their nodes."""
    cluster = require(ctx, params["ClusterName"])
    if cluster["status"] != "InService":
        raise refuse(f"Cluster '{cluster['name']}' is {cluster['status']}; health checks need it InService")
    checked: dict[str, Record] = {}
    for entry in params["DeepHealthCheckConfigurations"]:
        name = entry["InstanceGroupName"]
        if name not in cluster["groups"]:
            raise refuse(f"Instance group '{name}' does not exist in cluster '{cluster['name']}'")
        named = entry.get("InstanceIds") or [node["id"] for node in nodes_of(cluster, name)]
        for node_id in named:
            node = _node(cluster, node_id)
            if node["group"] != name or node["status"] != MACHINES["node.create"].done:
                raise refuse(
                    f"Node '{node_id}' is {node['status']} in group '{node['group']}'; it must run in '{name}'"
                )
            checked[node_id] = node
    for node in checked.values():
        node["status"] = MACHINES["node.deep-health-check"].running
    if checked:
        record_event(ctx, cluster, f"Deep health checks of {len(checked)} nodes started")
        ctx.begin("node.deep-health-check", "hyperpod.nodes-up", name=cluster["name"], ids=sorted(checked))
    return {"ClusterArn": cluster["arn"]}

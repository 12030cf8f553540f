"""DescribeClusterNode and ListClusterNodes."""

from __future__ import annotations

from typing import Any

from hpkit_local.aws.api import operation, page
from hpkit_local.aws.backend import Context, Record
from hpkit_local.aws.errors import ServiceError
from hpkit_local.aws.services.sagemaker.records import kubernetes_details, moment, require

__all__ = ["node_details"]


def node_details(cluster: Record, node: Record) -> Record:
    """One node as DescribeClusterNode shows it."""
    spec = cluster["groups"][node["group"]]["spec"]
    details: Record = {
        "InstanceGroupName": node["group"],
        "InstanceId": node["id"],
        "NodeLogicalId": node["logical"],
        "InstanceStatus": _status(node),
        "InstanceType": node["type"],
        "LaunchTime": node["launched"],
        "PrivatePrimaryIp": node["ip"],
        "PrivateDnsHostname": _hostname(cluster, node),
        "Placement": {"AvailabilityZone": node["zone"], "AvailabilityZoneId": node["zone_id"]},
        "CurrentImageReleaseVersion": node["release"],
        "DesiredImageReleaseVersion": node["release"],
        "ImageVersionStatus": "UpToDate",
        "CapacityType": "Spot" if "Spot" in spec.get("CapacityRequirements", {}) else "OnDemand",
    }
    for member in ("LifeCycleConfig", "OverrideVpcConfig", "ThreadsPerCore", "InstanceStorageConfigs"):
        if member in spec:
            details[member] = spec[member]
    if "KubernetesConfig" in spec:
        details["KubernetesConfig"] = kubernetes_details(spec["KubernetesConfig"])
    if "updated" in node:
        details["LastSoftwareUpdateTime"] = node["updated"]
    return details


def _status(node: Record) -> Record:
    return {"Status": node["status"], **({"Message": node["message"]} if node["message"] else {})}


def _hostname(cluster: Record, node: Record) -> str:
    region = cluster["arn"].split(":")[3]
    domain = "ec2.internal" if region == "us-east-1" else f"{region}.compute.internal"
    return f"ip-{node['ip'].replace('.', '-')}.{domain}"


# Source: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_DescribeClusterNode.html
@operation("sagemaker", "DescribeClusterNode")
def describe_cluster_node(ctx: Context, params: Record) -> Record:
    """One node by instance id or by logical id."""
    cluster = require(ctx, params["ClusterName"])
    if ("NodeId" in params) == ("NodeLogicalId" in params):
        raise ServiceError("ValidationException", "Give exactly one of NodeId and NodeLogicalId")
    identifier = params.get("NodeId") or params.get("NodeLogicalId")
    for node in cluster["nodes"].values():
        if identifier in (node["id"], node["logical"]):
            return {"NodeDetails": node_details(cluster, node)}
    raise ServiceError("ResourceNotFound", f"Node '{identifier}' of cluster '{cluster['name']}' not found")


@operation("sagemaker", "ListClusterNodes")
def list_cluster_nodes(ctx: Context, params: Record) -> Record:
    """Summaries of nodes, filtered, sorted and in pages."""
    cluster = require(ctx, params["ClusterName"])
    after: Any = params.get("CreationTimeAfter")
    before: Any = params.get("CreationTimeBefore")
    matching = [
        node
        for node in cluster["nodes"].values()
        if params.get("InstanceGroupNameContains", "") in node["group"]
        and (after is None or node["launched"] > moment(after))
        and (before is None or node["launched"] < moment(before))
    ]
    key = "group" if params.get("SortBy") == "NAME" else "launched"
    matching.sort(key=lambda node: node[key], reverse=params.get("SortOrder") == "Descending")
    nodes, token = page(matching, size=params.get("MaxResults"), token=params.get("NextToken"), default=10)
    logical = bool(params.get("IncludeNodeLogicalIds"))
    summaries = [_summary(cluster, node, logical=logical) for node in nodes]
    return {"ClusterNodeSummaries": summaries, **({"NextToken": token} if token else {})}


def _summary(cluster: Record, node: Record, *, logical: bool) -> Record:
    summary: Record = {
        "InstanceGroupName": node["group"],
        "InstanceId": node["id"],
        "InstanceType": node["type"],
        "LaunchTime": node["launched"],
        "InstanceStatus": _status(node),
        "PrivateDnsHostname": _hostname(cluster, node),
        "CurrentImageReleaseVersion": node["release"],
        "ImageVersionStatus": "UpToDate",
    }
    if logical:
        summary["NodeLogicalId"] = node["logical"]
    if "updated" in node:
        summary["LastSoftwareUpdateTime"] = node["updated"]
    return summary

"""Cluster events and cluster operations: what continuous provisioning reports of its progress."""

from __future__ import annotations

from typing import Any

from hpkit_local.aws.api import operation, page
from hpkit_local.aws.backend import Context, Record
from hpkit_local.aws.errors import ServiceError
from hpkit_local.aws.services.sagemaker.records import moment, require

__all__ = ["finish_scaling", "record_event", "start_scaling"]

KEPT = 1000


def record_event(
    ctx: Context,
    cluster: Record,
    description: str,
    *,
    group: str = "",
    node: str = "",
    level: str = "Info",
    metadata: Record | None = None,
) -> None:
    """Write down something that happened to a cluster, a group or a node."""
    kind = "Instance" if node else "InstanceGroup" if group else "Cluster"
    event: Record = {
        "EventId": ctx.uuid(),
        "ClusterArn": cluster["arn"],
        "ClusterName": cluster["name"],
        "ResourceType": kind,
        "EventTime": ctx.now,
        "Description": description,
        "EventLevel": level,
    }
    if group:
        event["InstanceGroupName"] = group
    if node:
        event["InstanceId"] = node
    running = _running(cluster, group)
    if running is not None:
        event["OperationId"] = running["OperationId"]
    cluster["events"].append({"summary": event, "metadata": metadata})
    del cluster["events"][:-KEPT]


def start_scaling(ctx: Context, cluster: Record, group: str, *, before: Record, after: Record) -> None:
    """Open a Scaling operation for a group; one that still runs for it is superseded."""
    running = _running(cluster, group)
    if running is not None:
        _close(running, "Superseded")
    cluster["operations"].append(
        {
            "OperationId": ctx.uuid(),
            "ClusterArn": cluster["arn"],
            "Type": "Scaling",
            "Status": "InProgress",
            "CreationTime": ctx.now,
            "ScalingDetails": [
                {"InstanceGroupName": group, "Status": "InProgress", "Original": before, "Desired": after}
            ],
        }
    )
    del cluster["operations"][:-KEPT]


def finish_scaling(cluster: Record, group: str) -> None:
    """Close the group's running operation."""
    running = _running(cluster, group)
    if running is not None:
        _close(running, "Done")


def is_scaling(cluster: Record, group: str) -> bool:
    """Whether an operation runs for the group."""
    return _running(cluster, group) is not None


def _running(cluster: Record, group: str) -> Record | None:
    for entry in reversed(cluster["operations"]):
        if entry["Status"] == "InProgress" and entry["ScalingDetails"][0]["InstanceGroupName"] == group:
            found: Record = entry
            return found
    return None


def _close(entry: Record, status: str) -> None:
    entry["Status"] = status
    entry["ScalingDetails"][0]["Status"] = status


@operation("sagemaker", "ListClusterEvents")
def list_cluster_events(ctx: Context, params: Record) -> Record:
    """Events of a cluster, newest first unless asked otherwise."""
    cluster = require(ctx, params["ClusterName"])
    found = [entry["summary"] for entry in cluster["events"] if _wanted(entry["summary"], params)]
    found.sort(key=lambda event: event["EventTime"], reverse=params.get("SortOrder") != "Ascending")
    events, token = page(found, size=params.get("MaxResults"), token=params.get("NextToken"), default=10)
    return {"Events": events, **({"NextToken": token} if token else {})}


def _wanted(event: Record, params: Record) -> bool:
    pairs = (
        ("InstanceGroupName", "InstanceGroupName"),
        ("NodeId", "InstanceId"),
        ("ResourceType", "ResourceType"),
        ("OperationId", "OperationId"),
    )
    if any(wanted in params and params[wanted] != event.get(member) for wanted, member in pairs):
        return False
    return _between(event["EventTime"], params.get("EventTimeAfter"), params.get("EventTimeBefore"))


def _between(time: float, after: Any, before: Any) -> bool:
    return (after is None or time > moment(after)) and (before is None or time < moment(before))


@operation("sagemaker", "DescribeClusterEvent")
def describe_cluster_event(ctx: Context, params: Record) -> Record:
    """One event with its details."""
    cluster = require(ctx, params["ClusterName"])
    for entry in cluster["events"]:
        if entry["summary"]["EventId"] == params["EventId"]:
            details = dict(entry["summary"])
            if entry["metadata"]:
                details["EventDetails"] = {"EventMetadata": entry["metadata"]}
            return {"EventDetails": details}
    raise ServiceError("ResourceNotFound", f"Event {params['EventId']} of cluster {cluster['name']} not found")


@operation("sagemaker", "ListClusterOperations")
def list_cluster_operations(ctx: Context, params: Record) -> Record:
    """Operations of a cluster, newest first unless asked otherwise."""
    cluster = require(ctx, params["ClusterName"])
    found = [
        {name: value for name, value in entry.items() if name != "ScalingDetails"}
        for entry in cluster["operations"]
        if params.get("Status", entry["Status"]) == entry["Status"]
        and params.get("Type", entry["Type"]) == entry["Type"]
        and _between(entry["CreationTime"], params.get("CreationTimeAfter"), params.get("CreationTimeBefore"))
    ]
    found.sort(key=lambda entry: entry["CreationTime"], reverse=params.get("SortOrder") != "Ascending")
    entries, token = page(found, size=params.get("MaxResults"), token=params.get("NextToken"), default=10)
    return {"ClusterOperationSummaries": entries, **({"NextToken": token} if token else {})}


@operation("sagemaker", "DescribeClusterOperation")
def describe_cluster_operation(ctx: Context, params: Record) -> Record:
    """One operation with what it changes."""
    cluster = require(ctx, params["ClusterName"])
    for entry in cluster["operations"]:
        if entry["OperationId"] == params["OperationId"]:
            return dict(entry)
    raise ServiceError("ResourceNotFound", f"Operation {params['OperationId']} of cluster {cluster['name']} not found")

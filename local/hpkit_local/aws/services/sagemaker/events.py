"""Cluster events: what continuous provisioning reports of its progress."""

from __future__ import annotations

from typing import Any

from hpkit_local.aws.api import operation, page
from hpkit_local.aws.backend import Context, Record
from hpkit_local.aws.services.sagemaker.records import moment, require

__all__ = ["record_event"]

KEPT = 1000


def record_event(
    ctx: Context,
    cluster: Record,
    description: str,
    *,
    group: str = "",
    node: str = "",
    level: str = "Info",
) -> None:
    """Write down something that happened to a cluster, a group or a node."""
    resource_type = "Instance" if node else "InstanceGroup" if group else "Cluster"
    event: Record = {
        "EventId": ctx.uuid(),
        "ClusterArn": cluster["arn"],
        "ClusterName": cluster["name"],
        "ResourceType": resource_type,
        "EventTime": ctx.now,
        "Description": description,
        "EventLevel": level,
    }
    if group:
        event["InstanceGroupName"] = group
    if node:
        event["InstanceId"] = node
    cluster["events"].append(event)
    del cluster["events"][:-KEPT]


@operation("sagemaker", "ListClusterEvents")
def list_cluster_events(ctx: Context, params: Record) -> Record:
    """Return events of a cluster, by default newest first."""
    cluster = require(ctx, params["ClusterName"])
    found = [event for event in cluster["events"] if _wanted(event, params)]
    found.sort(key=lambda event: event["EventTime"], reverse=params.get("SortOrder") != "Ascending")
    events, token = page(found, size=params.get("MaxResults"), token=params.get("NextToken"), default=10)
    return {"Events": events, **({"NextToken": token} if token else {})}


def _wanted(event: Record, params: Record) -> bool:
    pairs = (
        ("InstanceGroupName", "InstanceGroupName"),
        ("NodeId", "InstanceId"),
        ("ResourceType", "ResourceType"),
    )
    if any(wanted in params and params[wanted] != event.get(member) for wanted, member in pairs):
        return False
    return _between(event["EventTime"], params.get("EventTimeAfter"), params.get("EventTimeBefore"))


def _between(time: float, after: Any, before: Any) -> bool:
    return (after is None or time > moment(after)) and (before is None or time < moment(before))

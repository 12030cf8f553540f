"""Nodes: add, delete, replace and reboot, with insufficient capacity or failing hardware."""

from __future__ import annotations

from typing import Any


def _group(cloud: Any, name: str = "gpu") -> dict[str, Any]:
    return next(group for group in cloud.describe()["InstanceGroups"] if group["InstanceGroupName"] == name)


def _add(cloud: Any, **entry: Any) -> dict[str, Any]:
    wanted = {"InstanceGroupName": "gpu", "IncrementTargetCountBy": 1, **entry}
    return dict(cloud.sm.batch_add_cluster_nodes(ClusterName="train", NodesToAdd=[wanted]))


def test_capacity_leaves_a_group_below_its_target_until_there_is_more(slow_cloud: Any) -> None:
    slow_cloud.endpoint.set_faults(capacity="1@gpu")
    slow_cloud.make_cluster()
    assert (_group(slow_cloud)["CurrentCount"], _group(slow_cloud)["TargetCount"]) == (1, 2)
    warnings = slow_cloud.sm.list_cluster_events(ClusterName="train", ResourceType="InstanceGroup")["Events"]
    assert any(
        event["EventLevel"] == "Warn" and event["Description"].startswith("Insufficient capacity") for event in warnings
    )
    slow_cloud.endpoint.set_faults(capacity=None)
    for seconds in (60, 240):
        slow_cloud.advance(seconds)
        slow_cloud.describe()
    assert _group(slow_cloud)["CurrentCount"] == 2, "continuous provisioning asks again"


def test_failed_nodes_are_replaced_when_recovery_is_automatic(slow_cloud: Any) -> None:
    slow_cloud.endpoint.set_faults(node_failure=1)
    slow_cloud.make_cluster()
    assert {node["InstanceStatus"]["Status"] for node in slow_cloud.nodes()} == {"Failure"}
    slow_cloud.endpoint.set_faults(node_failure=None)
    for seconds in (60, 240):
        slow_cloud.advance(seconds)
        slow_cloud.describe()
    assert {node["InstanceStatus"]["Status"] for node in slow_cloud.nodes()} == {"Running"}


def test_a_group_waits_for_its_minimum_and_rolls_back_after_three_hours(slow_cloud: Any) -> None:
    slow_cloud.endpoint.set_faults(capacity="1@gpu")
    slow_cloud.make_cluster(InstanceGroups=[slow_cloud.group(MinInstanceCount=2)])
    assert _group(slow_cloud)["Status"] == "Creating"
    assert _add(slow_cloud)["Failed"][0]["ErrorCode"] == "InvalidInstanceGroupStatus"
    slow_cloud.advance(3 * 3600 + 60)
    group = _group(slow_cloud)
    assert (group["Status"], group["TargetCount"], group["MinCount"]) == ("InService", 0, 0)

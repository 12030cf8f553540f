"""Nodes: add, delete, replace and reboot, with insufficient capacity or failing hardware."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _group(cloud: Any, name: str = "gpu") -> dict[str, Any]:
    return next(group for group in cloud.describe()["InstanceGroups"] if group["InstanceGroupName"] == name)


def _add(cloud: Any, **entry: Any) -> dict[str, Any]:
    wanted = {"InstanceGroupName": "gpu", "IncrementTargetCountBy": 1, **entry}
    return dict(cloud.sm.batch_add_cluster_nodes(ClusterName="train", NodesToAdd=[wanted]))


def test_added_nodes_raise_the_target_and_run_later(slow_cloud: Any) -> None:
    slow_cloud.make_cluster()
    (added,) = _add(slow_cloud)["Successful"]
    assert added["Status"] == "Pending"
    assert (_group(slow_cloud)["CurrentCount"], _group(slow_cloud)["TargetCount"]) == (2, 3)
    node = slow_cloud.sm.describe_cluster_node(ClusterName="train", NodeLogicalId=added["NodeLogicalId"])
    assert node["NodeDetails"]["InstanceStatus"]["Status"] == "Pending"
    slow_cloud.advance(240)
    assert _group(slow_cloud)["CurrentCount"] == 3


def test_adding_with_a_token_twice_adds_once(cloud: Any, refused: Callable[..., str]) -> None:
    cloud.make_cluster()
    entry = [{"InstanceGroupName": "gpu", "IncrementTargetCountBy": 1}]
    call = cloud.sm.batch_add_cluster_nodes
    first = call(ClusterName="train", ClientToken="t1", NodesToAdd=entry)
    again = call(ClusterName="train", ClientToken="t1", NodesToAdd=entry)
    assert first["Successful"] == again["Successful"]
    assert _group(cloud)["TargetCount"] == 3
    other = [{"InstanceGroupName": "gpu", "IncrementTargetCountBy": 2}]
    text = refused("ValidationException", call, ClusterName="train", ClientToken="t1", NodesToAdd=other)
    assert text == "Client token t1 was used by a BatchAddClusterNodes request with other parameters"


def test_deleting_nodes_lowers_the_target(slow_cloud: Any) -> None:
    slow_cloud.make_cluster()
    node = slow_cloud.nodes()[0]["InstanceId"]
    answer = slow_cloud.sm.batch_delete_cluster_nodes(ClusterName="train", NodeIds=[node, "i-0123456789abcdef0"])
    assert answer["Successful"] == [node]
    assert [(failed["NodeId"], failed["Code"]) for failed in answer["Failed"]] == [
        ("i-0123456789abcdef0", "NodeIdNotFound")
    ]
    assert (_group(slow_cloud)["CurrentCount"], _group(slow_cloud)["TargetCount"]) == (1, 1)
    slow_cloud.advance(120)
    assert node not in {entry["InstanceId"] for entry in slow_cloud.nodes()}
    again = slow_cloud.sm.batch_delete_cluster_nodes(ClusterName="train", NodeIds=[node])
    assert again["Failed"][0]["Code"] == "NodeIdNotFound"


def test_replaced_nodes_keep_the_count(slow_cloud: Any) -> None:
    slow_cloud.make_cluster()
    node = slow_cloud.nodes()[0]["InstanceId"]
    assert slow_cloud.sm.batch_replace_cluster_nodes(ClusterName="train", NodeIds=[node])["Successful"] == [node]
    slow_cloud.advance(240)
    assert _group(slow_cloud)["CurrentCount"] == 2
    assert node not in {entry["InstanceId"] for entry in slow_cloud.nodes()}


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


def test_events_tell_what_happened_to_whom(cloud: Any) -> None:
    cloud.make_cluster()
    node = cloud.nodes()[0]["InstanceId"]
    (event,) = cloud.sm.list_cluster_events(ClusterName="train", NodeId=node)["Events"]
    assert (event["ResourceType"], event["Description"]) == ("Instance", f"Node {node} is running")
    assert event["InstanceGroupName"] == "gpu"
    scaling = cloud.sm.list_cluster_events(ClusterName="train", InstanceGroupName="gpu", SortOrder="Ascending")
    assert scaling["Events"][0]["Description"] == "Scaling instance group gpu from 0 to 2"

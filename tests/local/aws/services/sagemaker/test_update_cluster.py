"""UpdateCluster: what can and can't change, and how groups are added and removed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


def _network(cloud: Any, subnet: int) -> dict[str, Any]:
    return {"SecurityGroupIds": [cloud.sg], "Subnets": [cloud.subnets[subnet]]}


IMMUTABLE: dict[str, tuple[Callable[[Any], dict[str, Any]], Callable[[Any], dict[str, Any]], str]] = {
    "InstanceType": (lambda _: {}, lambda _: {"InstanceType": "ml.g5.48xlarge"}, "InstanceType cannot be changed"),
    "ExecutionRole": (
        lambda _: {},
        lambda cloud: {"ExecutionRole": cloud.role("other", "sagemaker.amazonaws.com")},
        "ExecutionRole cannot be changed",
    ),
    "ThreadsPerCore": (
        lambda _: {"ThreadsPerCore": 1},
        lambda _: {"ThreadsPerCore": 2},
        "ThreadsPerCore cannot be changed from 1 to 2",
    ),
    "OverrideVpcConfig": (
        lambda cloud: {"OverrideVpcConfig": _network(cloud, 0)},
        lambda cloud: {"OverrideVpcConfig": _network(cloud, 1)},
        "OverrideVpcConfig cannot be changed",
    ),
    "OverrideVpcConfig added": (
        lambda _: {},
        lambda cloud: {"OverrideVpcConfig": _network(cloud, 1)},
        "OverrideVpcConfig cannot be added after creation",
    ),
    "CapacityRequirements": (
        lambda _: {"CapacityRequirements": {"OnDemand": {}}},
        lambda _: {"CapacityRequirements": {"Spot": {}}},
        "CapacityRequirements cannot be changed",
    ),
    "KMS key": (
        lambda _: {"InstanceStorageConfigs": [{"EbsVolumeConfig": {"VolumeSizeInGB": 10, "VolumeKmsKeyId": "a"}}]},
        lambda _: {"InstanceStorageConfigs": [{"EbsVolumeConfig": {"VolumeSizeInGB": 10, "VolumeKmsKeyId": "b"}}]},
        "the KMS key of a volume cannot be changed",
    ),
}


@pytest.mark.parametrize("member", IMMUTABLE)
def test_a_group_keeps(cloud: Any, refused: Callable[..., str], member: str) -> None:
    before, after, message = IMMUTABLE[member]
    cloud.make_cluster(InstanceGroups=[cloud.group(**before(cloud))])
    changed = cloud.group(**{**before(cloud), **after(cloud)})
    text = refused("ValidationException", cloud.sm.update_cluster, ClusterName="train", InstanceGroups=[changed])
    assert text.startswith("Instance group 'gpu'")
    assert message in text


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("Orchestrator", {"Eks": {"ClusterArn": "arn:aws:eks:us-west-2:123456789012:cluster/other"}}),
    ],
)
def test_the_cluster_keeps(cloud: Any, refused: Callable[..., str], member: str, value: Any) -> None:
    cloud.make_cluster()
    text = refused("ValidationException", cloud.sm.update_cluster, ClusterName="train", **{member: value})
    assert text.startswith(f"{member} of cluster 'train' cannot be changed")


def test_groups_left_out_of_an_update_stay(cloud: Any) -> None:
    cloud.make_cluster(InstanceGroups=[cloud.group("a"), cloud.group("b")])
    cloud.sm.update_cluster(ClusterName="train", InstanceGroups=[cloud.group("c", 1)])
    found = {group["InstanceGroupName"]: group["CurrentCount"] for group in cloud.describe()["InstanceGroups"]}
    assert found == {"a": 2, "b": 2, "c": 1}


def test_groups_leave_only_by_name_and_with_their_nodes(slow_cloud: Any) -> None:
    slow_cloud.make_cluster(InstanceGroups=[slow_cloud.group("a"), slow_cloud.group("b")])
    slow_cloud.sm.update_cluster(ClusterName="train", InstanceGroupsToDelete=["b"])
    slow_cloud.advance(120)
    found = {group["InstanceGroupName"]: group["Status"] for group in slow_cloud.describe()["InstanceGroups"]}
    assert found == {"a": "InService", "b": "Deleting"}
    assert {node["InstanceStatus"]["Status"] for node in slow_cloud.nodes()} == {"Running", "ShuttingDown"}
    slow_cloud.advance(120)
    assert [group["InstanceGroupName"] for group in slow_cloud.describe()["InstanceGroups"]] == ["a"]
    assert {node["InstanceGroupName"] for node in slow_cloud.nodes()} == {"a"}

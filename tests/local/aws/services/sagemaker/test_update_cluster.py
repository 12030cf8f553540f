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


def test_a_group_cannot_switch_to_flexible_types(cloud: Any, refused: Callable[..., str]) -> None:
    cloud.make_cluster()
    group = cloud.group(InstanceRequirements={"InstanceTypes": ["ml.g5.12xlarge"]})
    del group["InstanceType"]
    text = refused("ValidationException", cloud.sm.update_cluster, ClusterName="train", InstanceGroups=[group])
    assert "cannot switch from InstanceType to InstanceRequirements" in text


def test_a_flexible_group_keeps_the_types_that_run(cloud: Any, refused: Callable[..., str]) -> None:
    def flexible(*types: str) -> dict[str, Any]:
        group = cloud.group(InstanceRequirements={"InstanceTypes": list(types)})
        del group["InstanceType"]
        return dict(group)

    cloud.make_cluster(InstanceGroups=[flexible("ml.g5.12xlarge", "ml.g5.24xlarge")])
    cloud.sm.update_cluster(ClusterName="train", InstanceGroups=[flexible("ml.g5.12xlarge")])
    (group,) = cloud.describe()["InstanceGroups"]
    assert group["InstanceTypeDetails"] == [{"InstanceType": "ml.g5.12xlarge", "CurrentCount": 2}]
    text = refused(
        "ValidationException",
        cloud.sm.update_cluster,
        ClusterName="train",
        InstanceGroups=[flexible("ml.g5.48xlarge")],
    )
    assert "types ['ml.g5.12xlarge'] have running nodes and cannot be removed" in text


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


def test_continuous_provisioning_cannot_be_switched_on_later(cloud: Any, refused: Callable[..., str]) -> None:
    cloud.make_cluster(NodeProvisioningMode=None)
    text = refused(
        "ValidationException", cloud.sm.update_cluster, ClusterName="train", NodeProvisioningMode="Continuous"
    )
    assert text == "NodeProvisioningMode of cluster 'train' cannot be changed from None to Continuous"


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


@pytest.mark.parametrize(
    ("groups", "doomed", "message"),
    [
        ([], ["gpu"], "At least one instance group must remain in cluster 'train'"),
        ([], ["none"], "Instance group 'none' in InstanceGroupsToDelete does not exist"),
        (["gpu"], ["gpu"], "Instance group 'gpu' is in both InstanceGroups and InstanceGroupsToDelete"),
    ],
)
def test_deleting_groups_is_refused(
    cloud: Any, refused: Callable[..., str], groups: list[str], doomed: list[str], message: str
) -> None:
    cloud.make_cluster()
    request: dict[str, Any] = {"ClusterName": "train", "InstanceGroupsToDelete": doomed}
    if groups:
        request["InstanceGroups"] = [cloud.group(name) for name in groups]
    assert refused("ValidationException", cloud.sm.update_cluster, **request) == message


def test_labels_and_taints_are_replaced_as_a_whole(cloud: Any) -> None:
    cloud.make_cluster(InstanceGroups=[cloud.group(KubernetesConfig={"Labels": {"a": "1", "b": "2"}})])
    cloud.sm.update_cluster(ClusterName="train", InstanceGroups=[cloud.group(KubernetesConfig={"Labels": {"a": "3"}})])
    (group,) = cloud.describe()["InstanceGroups"]
    assert group["KubernetesConfig"]["DesiredLabels"] == {"a": "3"}


def test_settings_change_in_place(cloud: Any) -> None:
    cloud.make_cluster()
    tiered = {"Mode": "Enable", "InstanceMemoryAllocationPercentage": 30}
    cloud.sm.update_cluster(ClusterName="train", NodeRecovery="None", TieredStorageConfig=tiered)
    cluster = cloud.describe()
    assert (cluster["NodeRecovery"], cluster["TieredStorageConfig"]) == ("None", tiered)


def test_software_of_an_unknown_group_is_refused(cloud: Any, refused: Callable[..., str]) -> None:
    cloud.make_cluster()
    text = refused(
        "ValidationException",
        cloud.sm.update_cluster_software,
        ClusterName="train",
        InstanceGroups=[{"InstanceGroupName": "none"}],
    )
    assert text == "Instance group 'none' does not exist in cluster 'train'"


def test_a_cluster_whose_eks_cluster_is_gone_says_so(cloud: Any, refused: Callable[..., str]) -> None:
    cloud.make_cluster()
    cloud.eks.delete_cluster(name="kube")
    text = refused("ValidationException", cloud.sm.update_cluster, ClusterName="train", NodeRecovery="None")
    assert text == f"The EKS cluster {cloud.eks_arn} of cluster 'train' no longer exists"

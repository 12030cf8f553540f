"""Statuses of clusters, groups, nodes, the autoscaler and add-ons during changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any


def _group(cluster: dict[str, Any], name: str = "gpu") -> dict[str, Any]:
    return next(group for group in cluster["InstanceGroups"] if group["InstanceGroupName"] == name)


def test_a_continuous_cluster_is_in_service_before_its_nodes_run(slow_cloud: Any) -> None:
    slow_cloud.sm.create_cluster(**slow_cloud.request())
    created = slow_cloud.describe()
    assert (created["ClusterStatus"], _group(created)["Status"]) == ("Creating", "Creating")
    assert created["NodeProvisioningMode"] == "Continuous", "the mode must be remembered"
    slow_cloud.advance(1200)
    ready = slow_cloud.describe()
    assert (ready["ClusterStatus"], _group(ready)["Status"]) == ("InService", "InService")
    assert (_group(ready)["CurrentCount"], _group(ready)["TargetCount"]) == (0, 2)
    assert {node["InstanceStatus"]["Status"] for node in slow_cloud.nodes()} == {"Pending"}
    slow_cloud.advance(240)
    assert _group(slow_cloud.describe())["CurrentCount"] == 2
    assert {node["InstanceStatus"]["Status"] for node in slow_cloud.nodes()} == {"Running"}


def test_a_group_needs_a_lifecycle_script(slow_cloud: Any, refused: Callable[..., str]) -> None:
    bare = slow_cloud.group()
    del bare["LifeCycleConfig"]
    request = {**slow_cloud.request(), "InstanceGroups": [bare]}
    text = refused("ValidationException", slow_cloud.sm.create_cluster, **request)
    assert text == "LifeCycleConfig is required for instance group gpu"


def test_deep_health_checks_come_before_running_and_block_updates(slow_cloud: Any, refused: Callable[..., str]) -> None:
    slow_cloud.make_cluster(InstanceGroups=[slow_cloud.group(OnStartDeepHealthChecks=["InstanceStress"])])
    assert {node["InstanceStatus"]["Status"] for node in slow_cloud.nodes()} == {"DeepHealthCheckInProgress"}
    message = refused("ValidationException", slow_cloud.sm.update_cluster, ClusterName="train", NodeRecovery="None")
    assert message == "Cluster 'train' cannot be updated while deep health checks run"
    slow_cloud.advance(5400)
    assert {node["InstanceStatus"]["Status"] for node in slow_cloud.nodes()} == {"Running"}


def test_autoscaling_has_statuses_of_its_own(slow_cloud: Any, refused: Callable[..., str]) -> None:
    slow_cloud.make_cluster(ClusterRole=slow_cloud.karpenter_role)
    role, enabled = slow_cloud.karpenter_role, {"Mode": "Enable"}
    message = refused("ValidationException", slow_cloud.sm.update_cluster, ClusterName="train", AutoScaling=enabled)
    assert message.startswith("AutoScaling needs a ClusterRole"), "the role goes with the mode"
    slow_cloud.sm.update_cluster(ClusterName="train", AutoScaling=enabled, ClusterRole=role)
    slow_cloud.advance(120)
    assert slow_cloud.describe()["AutoScaling"]["Status"] == "Creating"
    slow_cloud.advance(180)
    scaling = slow_cloud.describe()["AutoScaling"]
    assert scaling == {"Mode": "Enable", "AutoScalerType": "Karpenter", "Status": "InService"}
    other = slow_cloud.role("karpenter2", "hyperpod.sagemaker.amazonaws.com")
    message = refused("ValidationException", slow_cloud.sm.update_cluster, ClusterName="train", ClusterRole=other)
    assert message.startswith("ClusterRole cannot be changed while autoscaling is enabled")
    slow_cloud.sm.update_cluster(ClusterName="train", AutoScaling={"Mode": "Disable"})
    slow_cloud.advance(120)
    assert slow_cloud.describe()["AutoScaling"]["Status"] == "Deleting"
    slow_cloud.advance(60)
    assert "AutoScaling" not in slow_cloud.describe()
    slow_cloud.sm.update_cluster(ClusterName="train", ClusterRole=other)


if TYPE_CHECKING:
    pass

GOVERNANCE = "amazon-sagemaker-hyperpod-taskgovernance"


def _addon(cloud: Any, name: str) -> dict[str, Any]:
    return dict(cloud.eks.describe_addon(clusterName="kube", addonName=name)["addon"])


def test_coredns_is_degraded_until_a_node_is_there(cloud: Any) -> None:
    cloud.eks.create_addon(clusterName="kube", addonName="coredns")
    degraded = _addon(cloud, "coredns")
    assert degraded["status"] == "DEGRADED"
    assert degraded["health"]["issues"][0]["code"] == "InsufficientNumberOfReplicas"
    cloud.make_cluster()
    assert _addon(cloud, "coredns")["status"] == "ACTIVE"


def test_task_governance_needs_a_node(cloud: Any) -> None:
    cloud.eks.create_addon(clusterName="kube", addonName=GOVERNANCE)
    assert _addon(cloud, GOVERNANCE)["status"] == "CREATE_FAILED"


def test_a_folder_is_linked_with_a_bucket_that_exists_and_only_once(cloud: Any, refused: Callable[..., str]) -> None:
    fsx = cloud.endpoint.client("fsx")
    persistent = {"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 250}
    systems = [
        fsx.create_file_system(
            FileSystemType="LUSTRE", StorageCapacity=1200, SubnetIds=cloud.subnets[:1], LustreConfiguration=lustre
        )["FileSystem"]["FileSystemId"]
        for lustre in (persistent, {"DeploymentType": "SCRATCH_1"})
    ]
    link = {"FileSystemId": systems[0], "FileSystemPath": "/data", "DataRepositoryPath": "s3://acme-data/"}
    create = fsx.create_data_repository_association
    assert "unable to validate access" in refused("BadRequest", create, **link)
    for name, region in (("acme-data", "us-west-2"), ("acme-far", "eu-west-1")):
        place = {"LocationConstraint": region}
        cloud.endpoint.client("s3", region).create_bucket(Bucket=name, CreateBucketConfiguration=place)
    create(**link)
    far = {"DataRepositoryPath": "s3://acme-far/", "S3": {"AutoImportPolicy": {"Events": ["NEW"]}}}
    assert "is in eu-west-1" in refused("BadRequest", create, **{**link, "FileSystemPath": "/far", **far})
    for other in (
        {"FileSystemPath": "/data/raw"},
        {"FileSystemPath": "/raw", "DataRepositoryPath": "s3://acme-data/raw/"},
    ):
        assert "overlap" in refused("BadRequest", create, **{**link, **other})
    refused("UnsupportedOperation", create, **{**link, "FileSystemId": systems[1]})

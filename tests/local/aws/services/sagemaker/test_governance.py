"""Compute quotas and cluster policies: rules, versions, statuses."""

from collections.abc import Callable
from typing import Any

import pytest

from hpkit_local.aws.services.sagemaker.quota import fill_pro_rata

G5 = "ml.g5.12xlarge"  # 48 vCPU, 192 GiB, 4 GPUs


def _describe(cloud: Any, quota: str, **more: Any) -> dict[str, Any]:
    return dict(cloud.sm.describe_compute_quota(ComputeQuotaId=quota, **more))


def test_quotas_are_deleted_before_the_policy(slow_cloud: Any, refused: Callable[..., str]) -> None:
    arn = slow_cloud.govern()
    quota, policy = slow_cloud.quota(arn), slow_cloud.policy(arn)
    slow_cloud.advance(20)
    delete = slow_cloud.sm.delete_cluster_scheduler_config
    assert quota in refused("ConflictException", delete, ClusterSchedulerConfigId=policy)
    slow_cloud.sm.delete_compute_quota(ComputeQuotaId=quota)
    slow_cloud.advance(20)
    delete(ClusterSchedulerConfigId=policy)


def test_the_service_writes_its_defaults_into_a_quota(cloud: Any) -> None:
    quota = _describe(cloud, cloud.quota(cloud.govern()))
    assert quota["ComputeQuotaConfig"] == {
        "ComputeQuotaResources": [{"InstanceType": G5, "Count": 1}],
        "ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 50},
        "PreemptTeamTasks": "LowerPriority",
    }
    assert quota["ComputeQuotaTarget"] == {"TeamName": "nlp", "FairShareWeight": 0}
    assert quota["ActivationState"] == "Enabled"


def test_an_update_must_name_the_current_version(cloud: Any, refused: Callable[..., str]) -> None:
    quota = cloud.quota(cloud.govern())
    for stale in (0, 2):
        text = refused("ConflictException", cloud.sm.update_compute_quota, ComputeQuotaId=quota, TargetVersion=stale)
        assert text == f"TargetVersion {stale} is not the current version 1 of ComputeQuota '{quota}'"
    cloud.sm.update_compute_quota(
        ComputeQuotaId=quota, TargetVersion=1, ComputeQuotaTarget={"TeamName": "nlp", "FairShareWeight": 9}
    )
    assert _describe(cloud, quota)["ComputeQuotaTarget"]["FairShareWeight"] == 9
    old = _describe(cloud, quota, ComputeQuotaVersion=1)
    assert old["ComputeQuotaTarget"]["FairShareWeight"] == 0, "former versions can be read"
    refused("ResourceNotFound", cloud.sm.describe_compute_quota, ComputeQuotaId=quota, ComputeQuotaVersion=7)


@pytest.mark.parametrize("kind", ["quota", "policy"])
def test_governance_needs_cluster_and_add_on(cloud: Any, refused: Callable[..., str], kind: str) -> None:
    make = getattr(cloud, kind)
    nowhere = "arn:aws:sagemaker:us-west-2:123456789012:cluster/abcdefghijkl"
    assert refused("ValidationException", make, arn=nowhere) == f"Cluster {nowhere} does not exist"
    arn = cloud.make_cluster()
    text = refused("ValidationException", make, arn=arn)
    assert text == (
        "EKS cluster 'kube' has no active add-on amazon-sagemaker-hyperpod-taskgovernance (not installed); "
        "install it first"
    )


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"Count": 1, "VCpu": 4.0}, "Count cannot be combined with VCpu for ml.g5.12xlarge"),
        ({}, "ml.g5.12xlarge needs Count or one of Accelerators, VCpu, MemoryInGiB, AcceleratorPartition"),
        (
            {"Accelerators": 1, "AcceleratorPartition": {"Type": "mig-1g.5gb", "Count": 1}},
            "Accelerators and AcceleratorPartition exclude each other for ml.g5.12xlarge",
        ),
        ({"InstanceType": "ml.c5.xlarge", "Accelerators": 1}, "ml.c5.xlarge has no accelerators"),
        (
            {"AcceleratorPartition": {"Type": "mig-1g.5gb", "Count": 1}},
            "ml.g5.12xlarge has no partition mig-1g.5gb (it has: none)",
        ),
    ],
)
def test_a_row_is_refused(cloud: Any, refused: Callable[..., str], row: dict[str, Any], message: str) -> None:
    arn = cloud.govern()
    text = refused("ValidationException", cloud.quota, arn=arn, rows=[{"InstanceType": G5, **row}])
    assert text == f"ComputeQuotaResources.1: {message}"


@pytest.mark.parametrize(
    ("given", "filled"),
    [
        ({"Accelerators": 2}, {"Accelerators": 2, "VCpu": 24.0, "MemoryInGiB": 96.0}),
        ({"VCpu": 12.0}, {"Accelerators": 0, "VCpu": 12.0, "MemoryInGiB": 48.0}),
        ({"MemoryInGiB": 48.0}, {"Accelerators": 0, "VCpu": 12.0, "MemoryInGiB": 48.0}),
        ({"Accelerators": 1, "VCpu": 2.0}, {"Accelerators": 1, "VCpu": 2.0, "MemoryInGiB": 48.0}),
        ({"Accelerators": 0, "VCpu": 12.0}, {"Accelerators": 0, "VCpu": 12.0, "MemoryInGiB": 48.0}),
        ({"Count": 3}, {"Count": 3}),
    ],
)
def test_fractions_are_filled_in_pro_rata(given: dict[str, Any], filled: dict[str, Any]) -> None:
    (row,) = fill_pro_rata([{"InstanceType": G5, **given}], "ComputeQuotaResources")
    assert row == {"InstanceType": G5, **filled}


def test_a_cluster_stays_while_quotas_or_a_policy_are_attached(cloud: Any, refused: Callable[..., str]) -> None:
    arn = cloud.govern()
    quota, policy = cloud.quota(arn), cloud.policy(arn)
    text = refused("ConflictException", cloud.sm.delete_cluster, ClusterName="train")
    assert text == (
        "Cluster 'train' cannot be deleted while these are attached: "
        f"compute quota quota-nlp ({quota}), cluster scheduler config policy ({policy})"
    )
    cloud.sm.delete_compute_quota(ComputeQuotaId=quota)
    refused("ConflictException", cloud.sm.delete_cluster, ClusterName="train")
    cloud.sm.delete_cluster_scheduler_config(ClusterSchedulerConfigId=policy)
    cloud.sm.delete_cluster(ClusterName="train")


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

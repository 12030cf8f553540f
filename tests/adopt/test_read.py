"""Reading a live platform: a failed call means unknown, and stops an adoption."""

import boto3
import pytest

from hpkit.adopt.organization import adopt
from hpkit.adopt.read import read
from hpkit.errors import ToolError


@pytest.fixture
def session(cloud, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", cloud.endpoint.url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    return boto3.Session(region_name="us-west-2")


def test_a_call_that_is_not_answered_is_unknown_and_not_absent(cloud, session):
    arn = cloud.govern()
    cloud.endpoint.set_faults(internal="1@ListComputeQuotas")
    platform = read(session, arn, on_progress=lambda _: None)
    assert platform.quotas == []
    assert [line.partition(":")[0] for line in platform.unknown] == ["sagemaker"]
    (blocker,) = adopt(platform, organization="acme", environment="prod").remarks.blockers
    assert blocker.startswith("not known, so nothing is imported: sagemaker:ListComputeQuotas")


def test_karpenters_objects_that_nobody_can_see_are_unknown(cloud, session):
    karpenter = {"Mode": "Enable", "AutoScalerType": "Karpenter"}
    arn = cloud.make_cluster(ClusterRole=cloud.karpenter_role, NodeRecovery="Automatic")
    cloud.sm.update_cluster(ClusterName=arn, AutoScaling=karpenter, ClusterRole=cloud.karpenter_role)
    cloud.advance(60)
    found = read(session, "train", on_progress=lambda _: None)
    assert found.autoscales
    assert ["the Kubernetes API of kube doesn't accept" in line for line in found.unknown] == [True]


def test_without_karpenter_and_teams_nobody_needs_a_way_to_the_kubernetes_api(cloud, session):
    arn = cloud.govern()
    cloud.quota(arn, "nlp")
    cloud.policy(arn)
    platform = read(session, arn, on_progress=lambda _: None)
    assert platform.unknown == ()
    assert [each["ComputeQuotaTarget"]["TeamName"] for each in platform.quotas] == ["nlp"]
    assert list(platform.addons) == ["amazon-sagemaker-hyperpod-taskgovernance"]


def test_a_cluster_that_is_not_there_is_said_with_the_services_own_words(cloud, session):
    del cloud
    with pytest.raises(ToolError, match="sagemaker:DescribeCluster: ResourceNotFound"):
        read(session, "nowhere", on_progress=lambda _: None)

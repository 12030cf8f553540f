"""The endpoint as a whole: pages, regions, parallel endpoints, controllers, wire format."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from hpkit_local.aws.clock import ManualClock
from hpkit_local.aws.controllers import ControllerError, Controllers, Document, EksConnection, RequeueAfter
from hpkit_local.aws.errors import Reply, ServiceError
from hpkit_local.aws.moto_state import MotoState
from hpkit_local.aws.patterns import compile_pattern
from hpkit_local.aws.protocol import service_model
from hpkit_local.aws.testing import running_endpoint
from hpkit_local.aws.validation import check_request


def test_lists_come_in_pages(cloud: Any, refused: Callable[..., str]) -> None:
    arn = cloud.govern()
    for team in ("a", "b", "c"):
        cloud.quota(arn, team)
    pages = list(
        cloud.sm.get_paginator("list_compute_quotas").paginate(SortBy="Name", PaginationConfig={"PageSize": 2})
    )
    assert [[entry["Name"] for entry in page["ComputeQuotaSummaries"]] for page in pages] == [
        ["quota-a", "quota-b"],
        ["quota-c"],
    ]
    first = cloud.sm.list_compute_quotas(MaxResults=1, SortBy="Name", SortOrder="Descending")
    assert first["ComputeQuotaSummaries"][0]["Name"] == "quota-c"
    assert cloud.sm.list_compute_quotas(NameContains="a-b")["ComputeQuotaSummaries"][0]["Name"] == "quota-b"
    text = refused("ValidationException", cloud.sm.list_compute_quotas, NextToken="nonsense")
    assert text == "Invalid pagination token: nonsense"
    refused("ValidationException", cloud.sm.list_compute_quotas, MaxResults=101)
    policies = cloud.eks.get_paginator("list_access_policies").paginate(PaginationConfig={"PageSize": 5})
    assert len([entry for page in policies for entry in page["accessPolicies"]]) == 14


def test_nodes_and_events_come_in_pages(cloud: Any) -> None:
    cloud.make_cluster(InstanceGroups=[cloud.group(count=25)])
    assert len(cloud.nodes()) == 25
    first = cloud.sm.list_cluster_nodes(ClusterName="train", MaxResults=10)
    assert (len(first["ClusterNodeSummaries"]), "NextToken" in first) == (10, True)
    events = cloud.sm.get_paginator("list_cluster_events").paginate(
        ClusterName="train", PaginationConfig={"PageSize": 7}
    )
    assert sum(len(page["Events"]) for page in events) >= 27


def test_filters_take_times(cloud: Any) -> None:
    cloud.make_cluster()
    created = cloud.describe()["CreationTime"]
    assert cloud.sm.list_clusters(CreationTimeAfter=created.replace(year=2000))["ClusterSummaries"]
    assert cloud.sm.list_clusters(CreationTimeBefore=created.replace(year=2000))["ClusterSummaries"] == []


def test_two_endpoints_in_one_process_do_not_see_each_other() -> None:
    with running_endpoint() as one, running_endpoint() as two:
        first = one.client("ec2").create_vpc(CidrBlock="10.1.0.0/16")["Vpc"]["VpcId"]
        for endpoint in (one, two):
            endpoint.client("s3").create_bucket(
                Bucket="same", CreateBucketConfiguration={"LocationConstraint": "us-west-2"}
            )
        second = two.client("ec2").create_vpc(CidrBlock="10.2.0.0/16")["Vpc"]["VpcId"]
        seen = [
            {vpc["VpcId"] for vpc in endpoint.client("ec2").describe_vpcs()["Vpcs"]} & {first, second}
            for endpoint in (one, two)
        ]
        assert seen == [{first}, {second}]
        assert one.client("sagemaker").list_clusters()["ClusterSummaries"] == []


def test_what_is_loaded_ahead_is_understood_and_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    answers, call = [], MotoState.call

    def heard(moto: MotoState, environ: dict[str, Any], *, service: str, operation: str) -> Reply:
        answered = call(moto, environ, service=service, operation=operation)
        answers.append((service, answered.status))
        return answered

    with monkeypatch.context() as patched, running_endpoint() as endpoint:
        patched.setattr(MotoState, "call", heard)
        endpoint.warm()
        assert answers
        assert {status for _, status in answers} == {200}
        assert endpoint.stats()["calls"] == {}


def test_regions_are_apart(cloud: Any, refused: Callable[..., str]) -> None:
    cloud.make_cluster()
    elsewhere = cloud.endpoint.client("sagemaker", "eu-west-1")
    refused("ResourceNotFound", elsewhere.describe_cluster, ClusterName="train")


def test_it_listens_on_loopback_only(cloud: Any) -> None:
    assert cloud.endpoint.url.startswith("http://127.0.0.1:")


class Recorder(Controllers):
    """Records which callbacks were called; quota_changed can request more time, or fail."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.patience = 0
        self.failure = ""
        self.documents: dict[str, tuple[Any, ...]] = {}
        for name in vars(Controllers):
            if not name.startswith("_") and name not in vars(Recorder):
                setattr(self, name, partial(self._hear, name))

    def _hear(self, name: str, *documents: Any, **_more: Any) -> None:
        self.heard.append(name)
        self.documents[name] = documents

    def eks_cluster_created(self, cluster: Document) -> EksConnection | None:
        self._hear("eks_cluster_created", cluster)
        return EksConnection("https://127.0.0.1:6443", "Q0E=")

    def quota_changed(self, quota: Document, cluster: Document) -> None:
        if self.patience:
            self.patience -= 1
            raise RequeueAfter(5)
        if self.failure:
            raise ControllerError(self.failure)
        self._hear("quota_changed", quota, cluster)


@pytest.fixture
def recorded(request: pytest.FixtureRequest) -> Any:
    cloud_type = type(request.getfixturevalue("cloud"))
    recorder, clock = Recorder(), ManualClock()
    with running_endpoint(latency_factor=1.0, clock=clock, controllers=recorder) as endpoint:
        made = cloud_type(endpoint, clock)
        made.eks.list_clusters()
        yield made, recorder


def test_controllers_hear_every_change_in_order(recorded: Any) -> None:
    cloud, recorder = recorded
    arn = cloud.make_cluster(ClusterRole=cloud.karpenter_role, AutoScaling={"Mode": "Enable"})
    cloud.join()
    found = cloud.eks.describe_cluster(name="kube")["cluster"]
    assert (found["endpoint"], found["certificateAuthority"]["data"]) == ("https://127.0.0.1:6443", "Q0E=")
    cloud.eks.create_addon(clusterName="kube", addonName="amazon-sagemaker-hyperpod-taskgovernance")
    cloud.advance(60)
    quota, policy = cloud.quota(arn), cloud.policy(arn)
    cloud.advance(20)
    cloud.sm.update_compute_quota(ComputeQuotaId=quota, TargetVersion=1)
    cloud.sm.update_cluster_scheduler_config(ClusterSchedulerConfigId=policy, TargetVersion=1)
    cloud.advance(15)
    cloud.sm.delete_compute_quota(ComputeQuotaId=quota)
    cloud.sm.delete_cluster_scheduler_config(ClusterSchedulerConfigId=policy)
    cloud.advance(20)
    cloud.sm.update_cluster(ClusterName="train", AutoScaling={"Mode": "Disable"})
    cloud.advance(180)
    cloud.eks.delete_addon(clusterName="kube", addonName="amazon-sagemaker-hyperpod-taskgovernance", preserve=True)
    cloud.advance(30)
    cloud.sm.delete_cluster(ClusterName="train")
    cloud.advance(600)
    cloud.sm.list_clusters()
    assert recorder.heard == [
        "started",
        "eks_cluster_requested",
        "eks_cluster_created",
        "access_entry_changed",  # For the cluster's creator.
        "access_entry_changed",
        "access_entry_changed",  # Both are effective now.
        "access_entry_changed",
        "cluster_created",
        "cluster_in_service",
        "autoscaling_enabled",
        "nodes_changed",
        "nodes_changed",  # They have joined Kubernetes.
        "addon_active",
        "quota_changed",
        "policy_changed",
        "quota_changed",
        "policy_changed",
        "quota_deleted",
        "policy_deleted",
        "cluster_in_service",
        "autoscaling_disabled",
        "addon_deleted",
        "cluster_deleted",
        "access_entry_deleted",
    ]
    quota_seen, cluster_seen = recorder.documents["quota_changed"]
    assert (quota_seen["ComputeQuotaTarget"]["TeamName"], cluster_seen["ClusterName"]) == ("nlp", "train")
    _, nodes = recorder.documents["nodes_changed"]
    assert [node["InstanceStatus"]["Status"] for node in nodes] == ["Running", "Running"]
    assert recorder.documents["addon_active"][0]["status"] == "ACTIVE"


def test_an_effect_can_take_its_time_or_fail(recorded: Any) -> None:
    cloud, recorder = recorded
    arn = cloud.govern()
    recorder.patience = 1
    slow = cloud.quota(arn, "slow")
    cloud.advance(20)
    assert cloud.sm.describe_compute_quota(ComputeQuotaId=slow)["Status"] == "Creating"
    cloud.advance(5)
    assert cloud.sm.describe_compute_quota(ComputeQuotaId=slow)["Status"] == "Created"
    recorder.failure = "the API server said no"
    bad = cloud.quota(arn, "bad")
    cloud.advance(20)
    found = cloud.sm.describe_compute_quota(ComputeQuotaId=bad)
    assert (found["Status"], found["FailureReason"]) == ("CreateFailed", "the API server said no")


def _raw(url: str, target: str, body: bytes) -> tuple[int, dict[str, Any]]:
    headers = {
        "Authorization": "AWS4-HMAC-SHA256 Credential=local/20260101/us-west-2/sagemaker/aws4_request",
        "X-Amz-Target": f"SageMaker.{target}",
        "Content-Type": "application/x-amz-json-1.1",
    }
    request = urllib.request.Request(url, data=body, headers=headers)  # noqa: S310 - our own loopback URL
    try:
        with urllib.request.urlopen(request, timeout=300) as answer:  # noqa: S310 - our own loopback URL
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        (b"{", "SerializationException", "the body is not JSON"),
        (b"[]", "SerializationException", "the body is not a JSON object"),
        (
            b'{"ClusterName": 7}',
            "SerializationException",
            "NUMBER_VALUE can not be converted to string at",
        ),
        (
            b"{}",
            "ValidationException",
            "1 validation error detected: Value null at 'clusterName' failed to satisfy constraint: Member must",
        ),
        (
            b'{"ClusterName": "x", "Colour": "red"}',
            "ValidationException",
            "Value 'red' at 'colour' failed to satisfy constraint: Member must be one that the API model has",
        ),
    ],
)
def test_requests_that_no_client_would_build_are_refused(body: bytes, code: str, message: str) -> None:
    with running_endpoint() as endpoint:
        status, answer = _raw(endpoint.url, "DescribeCluster", body)
    assert (status, answer["__type"]) == (400, code)
    assert message in answer["message"]


def _violations(operation: str, **params: Any) -> str:
    shape = service_model("sagemaker").operation_model(operation).input_shape
    with pytest.raises(ServiceError) as caught:
        check_request(shape, params, code="ValidationException")
    return caught.value.message


def test_every_broken_constraint_is_named_at_once() -> None:
    text = _violations("ListClusters", MaxResults=0, NameContains="a b", SortBy="AGE")
    assert text == (
        "3 validation errors detected: "
        "Value '0' at 'maxResults' failed to satisfy constraint: Member must have value greater than or equal to 1; "
        "Value 'a b' at 'nameContains' failed to satisfy constraint: "
        "Member must satisfy regular expression pattern: [a-zA-Z0-9\\-]+; "
        "Value 'AGE' at 'sortBy' failed to satisfy constraint: Member must satisfy enum value set: "
        "[CREATION_TIME, NAME]"
    )


def test_lists_maps_and_unions_are_checked_inside() -> None:
    group = {
        "InstanceGroupName": "g",
        "InstanceCount": -1,
        "ExecutionRole": "arn:aws:iam::123456789012:role/r",
        "KubernetesConfig": {"Labels": {"-": "ok"}},
        "InstanceStorageConfigs": [{}],
    }
    text = _violations("CreateCluster", ClusterName="c", InstanceGroups=[group])
    assert "Value '-1' at 'instanceGroups.1.member.instanceCount'" in text
    assert "Value '-' at 'instanceGroups.1.member.kubernetesConfig.labels.-.key'" in text
    assert "at 'instanceGroups.1.member.instanceStorageConfigs.1.member' failed to satisfy constraint: Exactly" in text


def test_patterns_of_the_models_are_understood() -> None:
    pattern = r"([\p{L}\p{Z}\p{N}_.:/=+\-@]*)"
    tags = compile_pattern(pattern)
    assert tags.fullmatch("équipe 日本/1")
    assert not tags.fullmatch("a\tb")
    short = compile_pattern(pattern, is_ascii=True)
    assert all(bool(short.fullmatch(each)) == bool(tags.fullmatch(each)) for each in map(chr, range(128)))
    team = compile_pattern(r"[a-z0-9]([-a-z0-9]*[a-z0-9]){0,39}?")
    assert team.fullmatch("nlp-2")
    assert not team.fullmatch("a" * 5000 + "_"), "a long wrong name must be refused in no time"


def test_a_log_group_takes_another_key_and_none(refused: Callable[..., str]) -> None:
    with running_endpoint() as endpoint:
        logs = endpoint.client("logs")
        logs.create_log_group(logGroupName="/there")
        key = "arn:aws:kms:us-west-2:123456789012:key/12345678-1234-1234-1234-123456789012"
        logs.associate_kms_key(logGroupName="/there", kmsKeyId=key)
        assert [each["kmsKeyId"] for each in logs.describe_log_groups()["logGroups"]] == [key]
        logs.disassociate_kms_key(logGroupName="/there")
        assert ["kmsKeyId" in each for each in logs.describe_log_groups()["logGroups"]] == [False]
        refused("ResourceNotFoundException", logs.disassociate_kms_key, logGroupName="/absent")


def test_a_file_system_has_the_name_that_it_is_mounted_by(cloud: Any) -> None:
    fsx = cloud.endpoint.client("fsx")
    fsx.create_file_system(FileSystemType="LUSTRE", StorageCapacity=1200, SubnetIds=cloud.subnets[:1])
    (system,) = fsx.describe_file_systems()["FileSystems"]
    assert len(system["LustreConfiguration"]["MountName"]) == 8

"""A network, roles, a bucket and an EKS cluster on a running endpoint, which HyperPod calls require."""

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import pytest
from botocore.exceptions import ClientError

from hpkit.catalog import kubernetes_versions
from hpkit_local.aws.lateness import LATENESS
from tests.endpoint import ManualClock, RunningEndpoint, running_endpoint

GOVERNANCE = "amazon-sagemaker-hyperpod-taskgovernance"


class Cloud:
    """Clients of one endpoint, and functions that create what tests need."""

    def __init__(
        self, endpoint: RunningEndpoint, clock: ManualClock | None = None, *, client: Callable[[str], Any] | None = None
    ) -> None:
        self.endpoint = endpoint
        self.clock = clock
        self.ec2, self.iam, self.s3, self.eks, self.sm = (
            (client or endpoint.client)(service) for service in ("ec2", "iam", "s3", "eks", "sagemaker")
        )
        self.vpc = self.ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        self.subnets = [
            self.ec2.create_subnet(VpcId=self.vpc, CidrBlock=f"10.0.{i}.0/24", AvailabilityZone=f"us-west-2{z}")[
                "Subnet"
            ]["SubnetId"]
            for i, z in enumerate("ab")
        ]
        self.sg = self.ec2.create_security_group(GroupName="nodes", Description="nodes", VpcId=self.vpc)["GroupId"]
        own = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": self.sg}]}]
        self.ec2.authorize_security_group_ingress(GroupId=self.sg, IpPermissions=own)
        self.ec2.authorize_security_group_egress(GroupId=self.sg, IpPermissions=own)
        self.eks_role = self.role("eks", "eks.amazonaws.com")
        self.node_role = self.role("node", "sagemaker.amazonaws.com")
        self.karpenter_role = self.role("karpenter", "hyperpod.sagemaker.amazonaws.com")
        self.s3.create_bucket(Bucket="sagemaker-scripts", CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
        self.s3.put_object(Bucket="sagemaker-scripts", Key="on_create.sh")
        newest = self.eks.describe_cluster_versions(versionStatus="STANDARD_SUPPORT")["clusterVersions"]
        offered = [each["clusterVersion"] for each in newest if each["clusterVersion"] in kubernetes_versions()]
        self.version = offered[0]
        self.eks_arn = self.make_eks("kube")

    def role(self, name: str, service: str) -> str:
        """Create a role that `service` may assume."""
        statement = {"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        return str(self.iam.create_role(RoleName=name, AssumeRolePolicyDocument=policy)["Role"]["Arn"])

    def make_eks(self, name: str, **more: Any) -> str:
        """Create an EKS cluster and wait until it is active."""
        wanted = {
            "name": name,
            "roleArn": self.eks_role,
            "version": self.version,
            "resourcesVpcConfig": {"subnetIds": self.subnets},
            "accessConfig": {"authenticationMode": "API"},
            **more,
        }
        self.advance(LATENESS["role"])
        arn = str(self.eks.create_cluster(**wanted)["cluster"]["arn"])
        self.advance(720)
        return arn

    def group(self, name: str = "gpu", count: int = 2, **more: Any) -> dict[str, Any]:
        """Return a valid instance group."""
        return {
            "InstanceGroupName": name,
            "InstanceType": "ml.g5.12xlarge",
            "InstanceCount": count,
            "ExecutionRole": self.node_role,
            "LifeCycleConfig": {"SourceS3Uri": "s3://sagemaker-scripts", "OnCreate": "on_create.sh"},
            **more,
        }

    def request(self, **more: Any) -> dict[str, Any]:
        """Return a valid CreateCluster request; None removes a member."""
        wanted = {
            "ClusterName": "train",
            "InstanceGroups": [self.group()],
            "VpcConfig": {"SecurityGroupIds": [self.sg], "Subnets": self.subnets},
            "Orchestrator": {"Eks": {"ClusterArn": self.eks_arn}},
            "NodeProvisioningMode": "Continuous",
            **more,
        }
        return {name: value for name, value in wanted.items() if value is not None}

    def make_cluster(self, **more: Any) -> str:
        """Create a HyperPod cluster and wait until its nodes run."""
        self.advance(LATENESS["role"])
        arn = str(self.sm.create_cluster(**self.request(**more))["ClusterArn"])
        self.advance(1200)
        self.describe()
        self.advance(240)
        return arn

    def join(self) -> None:
        """Wait until running nodes have joined Kubernetes."""
        self.describe()
        self.advance(LATENESS["node"])

    def govern(self) -> str:
        """Create a cluster with the task governance add-on."""
        arn = self.make_cluster()
        self.join()
        self.eks.create_addon(clusterName="kube", addonName=GOVERNANCE)
        self.advance(60)
        return arn

    def quota(self, arn: str, team: str = "nlp", *, rows: list[dict[str, Any]] | None = None, **more: Any) -> str:
        """Create a quota without waiting for it."""
        wanted = {
            "Name": f"quota-{team}",
            "ClusterArn": arn,
            "ComputeQuotaConfig": {"ComputeQuotaResources": rows or [{"InstanceType": "ml.g5.12xlarge", "Count": 1}]},
            "ComputeQuotaTarget": {"TeamName": team},
            **more,
        }
        return str(self.sm.create_compute_quota(**wanted)["ComputeQuotaId"])

    def policy(self, arn: str, **more: Any) -> str:
        """Create a cluster policy without waiting for it."""
        config = {"PriorityClasses": [{"Name": "training", "Weight": 80}]}
        wanted = {"Name": "policy", "ClusterArn": arn, "SchedulerConfig": config, **more}
        return str(self.sm.create_cluster_scheduler_config(**wanted)["ClusterSchedulerConfigId"])

    def describe(self, name: str = "train") -> dict[str, Any]:
        """Describe a cluster."""
        return dict(self.sm.describe_cluster(ClusterName=name))

    def nodes(self, name: str = "train") -> list[dict[str, Any]]:
        """List all nodes of a cluster, across pages."""
        pages = self.sm.get_paginator("list_cluster_nodes").paginate(ClusterName=name)
        return [node for page in pages for node in page["ClusterNodeSummaries"]]

    def advance(self, seconds: float) -> None:
        """Advance the clock; without a manual clock, every change is immediate."""
        if self.clock is not None:
            self.clock.advance(seconds)


@pytest.fixture(autouse=True)
def _no_managed_policies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Omit AWS's 1,500 managed policies from in-process endpoints: creating them takes longer than most tests."""
    monkeypatch.setenv("MOTO_IAM_LOAD_MANAGED_POLICIES", "false")


@pytest.fixture(scope="session")
def served() -> Iterator[tuple[RunningEndpoint, Callable[[str], Any]]]:
    """Use one address and its clients for all tests: creating clients takes longer than most tests."""
    with running_endpoint() as endpoint:
        yield endpoint, cache(endpoint.client)


Served = tuple[RunningEndpoint, Callable[[str], Any]]


@cache
def _built(served: Served, latency_factor: float, start: float | None) -> tuple[Cloud, Mapping[str, bytes]]:
    """Build a cloud on a served endpoint; return it with its state."""
    endpoint, client = served
    clock = None if start is None else ManualClock(start)
    endpoint.reset(latency_factor=latency_factor, clock=clock)
    return Cloud(endpoint, clock, client=client), endpoint.state()


def new_cloud(served: Served, *, latency_factor: float = 0.0, start: float | None = None) -> Cloud:
    """Return a cloud on an otherwise empty endpoint; with a start time, on a clock that the test advances.

    It is built once, and its state is restored for each test: building it takes longer than most tests.
    """
    built, state = _built(served, latency_factor, start)
    cloud = copy.copy(built)
    cloud.clock = None if built.clock is None else ManualClock(built.clock())
    cloud.endpoint.reset(latency_factor=latency_factor, clock=cloud.clock, state=state)
    return cloud


@pytest.fixture
def cloud(served: Served) -> Cloud:
    """Return a cloud with latency factor 0: every change is complete before the next call."""
    return new_cloud(served)


@pytest.fixture
def slow_cloud(served: Served) -> Cloud:
    """Return a cloud with latency factor 1, on a clock that the test advances: every intermediate status is visible."""
    return new_cloud(served, latency_factor=1.0, start=1_800_000_000.0)


@pytest.fixture
def refused() -> Callable[..., str]:
    """Make a call that must be rejected with `code`; return the message."""

    def call(code: str, operation: Callable[..., Any], **params: Any) -> str:
        with pytest.raises(ClientError) as caught:
            operation(**params)
        error = caught.value.response["Error"]
        assert error["Code"] == code, error
        return str(error["Message"])

    return call

"""The worker's cloud for tests of the controllers, controlled with boto3; Kubernetes is only read."""

import boto3
import pytest
from botocore.config import Config

from hpkit_local.kubernetes.api import Api
from tests.local.aws.conftest import GOVERNANCE, Cloud
from tests.local.controllers.karpenter import update
from tests.running import bring_dependencies, eventually

__all__ = ["GOVERNANCE"]

REGION = "us-west-2"


class Aws:
    """Clients of an instance's AWS endpoint."""

    def __init__(self, instance):
        self.url = f"http://127.0.0.1:{instance.ports()['aws']}"
        self.clients = {}

    def client(self, service, *, key="local", token=None):
        name = (service, key)
        if name not in self.clients:
            self.clients[name] = boto3.client(
                service,
                region_name=REGION,
                endpoint_url=self.url,
                aws_access_key_id=key,
                aws_secret_access_key=key,
                aws_session_token=token,
                config=Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}),
            )
        return self.clients[name]


class Environment(Cloud):
    """Functions that create what each test needs, and wait until the instance has done it."""

    def __init__(self, aws, api):
        self.api = api
        super().__init__(aws, client=aws.client)

    def make_eks(self, name, **more):
        arn = super().make_eks(name, **more)
        eventually(lambda: self.eks.describe_cluster(name=name)["cluster"]["status"] == "ACTIVE", "EKS is ACTIVE")
        bring_dependencies(self.api)
        return arn

    def make_cluster(self, **more):
        arn = super().make_cluster(**more)
        eventually(lambda: self.describe()["ClusterStatus"] == "InService", "the cluster is InService")
        return arn

    def govern(self):
        self.eks.create_addon(clusterName="kube", addonName=GOVERNANCE)
        eventually(lambda: self.addon()["status"] != "CREATING", "the add-on has arrived")
        return self.addon()

    def addon(self):
        return self.eks.describe_addon(clusterName="kube", addonName=GOVERNANCE)["addon"]

    def quota_settled(self, quota):
        def status():
            return self.sm.describe_compute_quota(ComputeQuotaId=quota)["Status"]

        eventually(lambda: not status().endswith("ing"), f"quota {quota} has settled")
        return self.sm.describe_compute_quota(ComputeQuotaId=quota)

    def policy_settled(self, policy):
        def status():
            return self.sm.describe_cluster_scheduler_config(ClusterSchedulerConfigId=policy)["Status"]

        eventually(lambda: not status().endswith("ing"), f"policy {policy} has settled")
        return self.sm.describe_cluster_scheduler_config(ClusterSchedulerConfigId=policy)

    def delete_quota(self, quota):
        self.sm.delete_compute_quota(ComputeQuotaId=quota)
        eventually(lambda: quota not in {each["ComputeQuotaId"] for each in self.quotas()}, f"quota {quota} is gone")

    def policies(self):
        return self.sm.list_cluster_scheduler_configs()["ClusterSchedulerConfigSummaries"]

    def quotas(self):
        return self.sm.list_compute_quotas()["ComputeQuotaSummaries"]


@pytest.fixture(scope="module")
def aws(instance):
    return Aws(instance)


@pytest.fixture(scope="module")
def api(instance):
    return Api.of_kubeconfig(instance.kubeconfig, field_manager="test")


@pytest.fixture(scope="module")
def built(aws, api):
    """Create a network, roles, and EKS cluster `kube` once."""
    return Environment(aws, api)


@pytest.fixture
def environment(built):
    """Return the environment; EKS cluster `kube` is created again if a test deleted it."""
    if "kube" not in built.eks.list_clusters()["clusters"]:
        built.eks_arn = built.make_eks("kube")
    return built


@pytest.fixture
def cluster(environment, api):
    """Return a HyperPod cluster `train` of 11 ml.c5.2xlarge, created if it doesn't exist, and its ARN."""
    if not environment.sm.list_clusters()["ClusterSummaries"]:
        groups = [environment.group("cpu", 11, InstanceType="ml.c5.2xlarge")]
        environment.make_cluster(InstanceGroups=groups, ClusterRole=environment.karpenter_role)
        eventually(lambda: len(api.items("/api/v1/nodes")) == 11, "all nodes are registered")
    return environment.describe()["ClusterArn"]


@pytest.fixture
def scaled(environment, cluster, api):
    """Turn on autoscaling, with an empty group `burst`; both are removed after the test."""
    burst = environment.group(
        "burst",
        0,
        InstanceType="ml.g5.8xlarge",
        OverrideVpcConfig={"SecurityGroupIds": [environment.sg], "Subnets": environment.subnets[:1]},
        KubernetesConfig={"Labels": {"pool": "burst"}},
    )
    karpenter = {"Mode": "Enable", "AutoScalerType": "Karpenter"}
    update(environment, [burst], AutoScaling=karpenter, ClusterRole=environment.karpenter_role)
    eventually(lambda: environment.describe()["AutoScaling"]["Status"] == "InService", "autoscaling is on")
    yield
    environment.sm.update_cluster(ClusterName="train", AutoScaling={"Mode": "Disable"})
    eventually(lambda: "AutoScaling" not in environment.describe(), "autoscaling is off")
    update(environment, InstanceGroupsToDelete=["burst"])

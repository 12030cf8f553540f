"""A Pulumi project with the real engine: its program declares the contents of `spec.json`."""

from tests.pulumi_project import PulumiProject

TYPE = "ml.g5.12xlarge"
GOVERNANCE = "amazon-sagemaker-hyperpod-taskgovernance"
PROGRAM = """
import json
from pathlib import Path

from pulumi import ResourceOptions

from hpkit.program.sdk import Cluster, ClusterSchedulerConfig, ComputeQuota

made = {}
spec = json.loads(Path("spec.json").read_text())
cluster = Cluster("train", **spec["cluster"])
for name, quota in spec["quotas"].items():
    after = ResourceOptions(depends_on=[made[other] for other in spec.get("after", {}).get(name, [])])
    made[name] = ComputeQuota(name, name=name, cluster_arn=cluster.cluster_arn, opts=after, **quota)
if spec["policy"]:
    ClusterSchedulerConfig("policy", name="policy", cluster_arn=cluster.cluster_arn, scheduler_config=spec["policy"])
"""


class Project(PulumiProject):
    """A project of a cluster with quotas and a policy, on an endpoint."""

    def __init__(self, folder, endpoint, cloud, program=PROGRAM):
        super().__init__(folder, program, AWS_ACCESS_KEY_ID="testing", AWS_SECRET_ACCESS_KEY="testing")  # noqa: S106
        self.cloud = cloud
        self.run("config", "set", "hyperpod:region", "us-west-2")
        self.run("config", "set", "hyperpod:endpoint", endpoint.url)
        self.spec = self.first_spec()

    def first_spec(self):
        cloud = self.cloud
        group = {
            "instanceGroupName": "gpu",
            "instanceType": TYPE,
            "instanceCount": 4,
            "executionRole": cloud.node_role,
            "lifeCycleConfig": {"sourceS3Uri": "s3://sagemaker-scripts", "onCreate": "on_create.sh"},
        }
        quotas = {
            team: {
                "compute_quota_config": {"computeQuotaResources": [{"instanceType": TYPE, "count": count}]},
                "compute_quota_target": {"teamName": team, "fairShareWeight": 10},
            }
            for team, count in (("john", 3), ("smith", 1))
        }
        return {
            "cluster": {
                "cluster_name": "train",
                "instance_groups": [group],
                "vpc_config": {"securityGroupIds": [cloud.sg], "subnets": cloud.subnets},
                "orchestrator": {"eks": {"clusterArn": cloud.eks_arn}},
                "node_provisioning_mode": "Continuous",
                "node_recovery": "Automatic",
            },
            "quotas": quotas,
            "policy": {"priorityClasses": [{"name": "training", "weight": 80}], "fairShare": "Enabled"},
        }

    def run(self, *arguments, check=True):
        result = super().run(*arguments, check=check)
        assert "Traceback" not in result.stdout + result.stderr
        return result

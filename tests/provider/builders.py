"""A Pulumi project under the real engine, for tests: its program declares what `spec.json` says."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from hpkit.errors import ToolError
from hpkit_local.aws.controllers import Controllers
from hpkit_local.toolchain import tool_path
from hpkit_provider.resources.compute_quota.amounts import reserved_amounts, total

ROOT = Path(__file__).parents[2]
TYPE = "ml.g5.12xlarge"
GOVERNANCE = "amazon-sagemaker-hyperpod-taskgovernance"
PROGRAM = """
import json
from pathlib import Path

from pulumi import ResourceOptions

from hpkit.program.sdk import Cluster, ClusterSchedulerConfig, ComputeQuota

spec = json.loads(Path("spec.json").read_text())
cluster = Cluster("train", **spec["cluster"])
made = {}
for name, quota in spec["quotas"].items():
    after = ResourceOptions(depends_on=[made[other] for other in spec.get("after", {}).get(name, [])])
    made[name] = ComputeQuota(name, name=name, cluster_arn=cluster.cluster_arn, opts=after, **quota)
if spec["policy"]:
    ClusterSchedulerConfig("policy", name="policy", cluster_arn=cluster.cluster_arn, scheduler_config=spec["policy"])
"""


class Project:
    """A Pulumi project in a folder of its own, with its own state."""

    def __init__(self, folder, endpoint, cloud):
        try:
            tools = [tool_path(name).parent for name in ("pulumi", "pulumi-language-python")]
        except ToolError as error:
            pytest.skip(str(error))
        self.folder, self.cloud = folder, cloud
        runtime = {"name": "python", "options": {"virtualenv": str(Path(sys.prefix))}}
        project = {"name": "hpkit", "runtime": runtime}
        (folder / "Pulumi.yaml").write_text(json.dumps(project))
        (folder / "__main__.py").write_text(textwrap.dedent(PROGRAM))
        (folder / "state").mkdir()
        self.environment = {
            **os.environ,
            "PATH": os.pathsep.join([*map(str, tools), str(Path(sys.prefix) / "bin"), os.environ["PATH"]]),
            "PULUMI_HOME": str(folder / "home"),
            "PULUMI_BACKEND_URL": f"file://{folder / 'state'}",
            "PULUMI_CONFIG_PASSPHRASE": "local",
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
        }
        self.run("stack", "init", "dev")
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
        command = ["pulumi", *arguments, "--non-interactive"]
        result = subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=300
        )
        assert "Traceback" not in result.stdout + result.stderr
        assert not check or result.returncode == 0, result.stdout + result.stderr
        return result

    def write(self):
        (self.folder / "spec.json").write_text(json.dumps(self.spec))

    def preview(self, *options):
        """Return operation by resource name, `same` left out."""
        return self.preview_with_words(*options)[0]

    def preview_with_words(self, *options):
        """Return the same, and all that the preview says."""
        self.write()
        said = self.run("preview", "--json", *options).stdout
        named = {step["urn"].rpartition("::")[2]: step["op"] for step in json.loads(said)["steps"]}
        return {name: op for name, op in named.items() if op not in ("same", "refresh")}, said

    def up(self, *options):
        self.write()
        return self.run("up", "--yes", "--skip-preview", *options)


class ReservationLog(Controllers):
    """What is reserved, by measure, at every moment: told by the endpoint itself whenever a quota arrives."""

    def __init__(self):
        self.live, self.moments = {}, []

    def quota_changed(self, quota, cluster):
        del cluster
        self.live[quota["Name"]] = reserved_amounts(quota["ComputeQuotaConfig"])
        self.moments.append(total(self.live.values()))

    def quota_deleted(self, quota, cluster):
        del cluster
        del self.live[quota["Name"]]
        self.moments.append(total(self.live.values()))

    def begin(self):
        """Forget what was: count from here on."""
        self.moments.clear()

"""The plugin under the real Pulumi engine: up, no change, edits, refresh, import, destroy."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from hpkit.errors import ToolError
from local.aws.testing import running_endpoint
from local.toolchain import tool_path
from tests.local.aws.conftest import Cloud

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
PROGRAM = """
import json
from pathlib import Path

from hpkit.resources import Cluster, ClusterSchedulerConfig, ComputeQuota

spec = json.loads(Path("spec.json").read_text())
cluster = Cluster("train", **spec["cluster"])
for name, quota in spec["quotas"].items():
    ComputeQuota(name, name=name, cluster_arn=cluster.cluster_arn, **quota)
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
        plugin = {"name": "hyperpod", "path": str(ROOT / "infra" / "provider")}
        runtime = {"name": "python", "options": {"virtualenv": str(Path(sys.prefix))}}
        project = {"name": "hpkit", "runtime": runtime, "plugins": {"providers": [plugin]}}
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
            "instanceType": "ml.g5.12xlarge",
            "instanceCount": 4,
            "executionRole": cloud.node_role,
            "lifeCycleConfig": {"sourceS3Uri": "s3://sagemaker-scripts", "onCreate": "on_create.sh"},
        }
        quotas = {
            team: {
                "compute_quota_config": {"computeQuotaResources": [{"instanceType": "ml.g5.12xlarge", "count": count}]},
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

    def preview(self):
        """Return operation by resource name, `same` left out."""
        self.write()
        steps = json.loads(self.run("preview", "--json").stdout)["steps"]
        named = {step["urn"].rpartition("::")[2]: step["op"] for step in steps}
        return {name: op for name, op in named.items() if op != "same"}

    def up(self):
        self.write()
        return self.run("up", "--yes", "--skip-preview")


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    with running_endpoint() as endpoint:
        cloud = Cloud(endpoint)
        yield Project(tmp_path_factory.mktemp("project"), endpoint, cloud)


def test_up_then_no_change(project):
    # The add-on needs the nodes, and governance needs the add-on: the cluster comes first here.
    wanted = project.spec
    project.spec = {**wanted, "quotas": {}, "policy": None}
    project.up()
    project.cloud.eks.create_addon(clusterName="kube", addonName="amazon-sagemaker-hyperpod-taskgovernance")
    project.spec = wanted
    assert project.preview() == {"john": "create", "smith": "create", "policy": "create"}
    project.up()
    assert project.preview() == {}
    live = project.cloud.describe()
    assert live["InstanceGroups"][0]["TargetCount"] == 4


def test_a_label_is_an_update_in_place_of_its_group_only(project):
    group = project.spec["cluster"]["instance_groups"][0]
    group["kubernetesConfig"] = {"labels": {"acme.example/pool": "gpu"}}
    assert project.preview() == {"train": "update"}
    project.up()
    assert project.preview() == {}
    labels = project.cloud.describe()["InstanceGroups"][0]["KubernetesConfig"]["DesiredLabels"]
    assert labels == {"acme.example/pool": "gpu"}


def test_quota_moves_between_teams_at_full_capacity(project):
    for team, count in (("john", 1), ("smith", 3)):
        config = project.spec["quotas"][team]["compute_quota_config"]
        config["computeQuotaResources"][0]["count"] = count
    assert project.preview() == {"john": "update", "smith": "update"}
    assert "will find no room" not in project.run("preview").stdout, "what one gives up is room for the other"
    project.up()
    assert project.preview() == {}


def test_room_that_only_a_later_delete_frees_is_reported_at_preview(project):
    quotas = project.spec["quotas"]
    rows = quotas["john"]["compute_quota_config"]["computeQuotaResources"]
    rows[0]["count"] = 4
    try:
        project.spec["quotas"] = {"john": quotas["john"]}
        project.write()
        said = project.run("preview").stdout
        assert "The quota 'john' will find no room (3 × ml.g5.12xlarge too few): it is held by smith" in said
        rows[0]["count"] = 1
        project.write()
        assert "will find no room" not in project.run("preview").stdout
    finally:
        rows[0]["count"] = 1
        project.spec["quotas"] = quotas


def test_other_subnets_of_the_cluster_are_shown_as_a_replacement(project):
    subnets = project.spec["cluster"]["vpc_config"]["subnets"]
    project.spec["cluster"]["vpc_config"]["subnets"] = subnets[:1]
    try:
        assert project.preview()["train"] in ("replace", "create-replacement", "delete-replaced")
    finally:
        project.spec["cluster"]["vpc_config"]["subnets"] = subnets


def test_drift_made_by_hand_is_found_and_mended(project):
    quotas = project.cloud.sm.list_compute_quotas(NameContains="john")["ComputeQuotaSummaries"]
    described = project.cloud.sm.describe_compute_quota(ComputeQuotaId=quotas[0]["ComputeQuotaId"])
    project.cloud.sm.update_compute_quota(
        ComputeQuotaId=described["ComputeQuotaId"],
        TargetVersion=described["ComputeQuotaVersion"],
        ComputeQuotaTarget={"TeamName": "john", "FairShareWeight": 99},
    )
    project.run("refresh", "--yes")
    assert project.preview() == {"john": "update"}
    project.up()
    again = project.cloud.sm.describe_compute_quota(ComputeQuotaId=described["ComputeQuotaId"])
    assert again["ComputeQuotaTarget"]["FairShareWeight"] == 10


def test_what_is_imported_by_its_arn_needs_no_change(project):
    sagemaker = project.cloud.sm
    quotas = sagemaker.list_compute_quotas()["ComputeQuotaSummaries"]
    (policy,) = sagemaker.list_cluster_scheduler_configs()["ClusterSchedulerConfigSummaries"]
    arns = [
        ("Cluster", "train", project.cloud.describe()["ClusterArn"]),
        ("ClusterSchedulerConfig", "policy", policy["ClusterSchedulerConfigArn"]),
        *(("ComputeQuota", quota["Name"], quota["ComputeQuotaArn"]) for quota in quotas),
    ]
    settings = {
        key: project.run("config", "get", key).stdout.strip() for key in ("hyperpod:region", "hyperpod:endpoint")
    }
    project.run("stack", "init", "other")
    try:
        for key, value in settings.items():
            project.run("config", "set", key, value)
        for token, name, arn in arns:
            kind = f"hyperpod:index:{token}"
            project.run("import", kind, name, arn, "--yes", "--protect=false", "--generate-code=false")
        # Only the stack itself, which holds outputs of a program, is new.
        assert {name: op for name, op in project.preview().items() if not name.startswith("hpkit-")} == {}
    finally:
        project.run("stack", "rm", "other", "--yes", "--force")
        project.run("stack", "select", "dev")


def test_destroy_leaves_nothing(project):
    project.run("destroy", "--yes", "--skip-preview")
    assert project.cloud.sm.list_clusters()["ClusterSummaries"] == []
    assert project.cloud.sm.list_compute_quotas()["ComputeQuotaSummaries"] == []
    assert project.cloud.sm.list_cluster_scheduler_configs()["ClusterSchedulerConfigSummaries"] == []

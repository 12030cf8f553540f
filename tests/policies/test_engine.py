"""The pack in the real Pulumi engine with the real plugin: resource, stack and remediation policies, waivers."""

import copy
import datetime
import json
import re
from pathlib import Path

import pytest

from tests.endpoint import running_endpoint
from tests.local.aws.conftest import Cloud
from tests.policies.builders import LISTED_TAGS
from tests.provider.builders import Project

pytestmark = [pytest.mark.engine, pytest.mark.timeout(1800)]

ROOT = Path(__file__).parents[2]
PROGRAM = """
import json
import re
from pathlib import Path

import pulumi
from hpkit.program.sdk import Cluster, ComputeQuota

spec = json.loads(Path("spec.json").read_text())
options = pulumi.ResourceOptions(protect=spec["protect"])
cluster = Cluster("train", **spec["cluster"], opts=options)
for name, quota in spec["quotas"].items():
    ComputeQuota(name, name=name, cluster_arn=cluster.cluster_arn, **quota)
"""
UNTIL = (datetime.datetime.now(tz=datetime.UTC).date() + datetime.timedelta(days=300)).isoformat()


class PolicedProject(Project):
    """A project that is previewed with the pack."""

    def __init__(self, folder, endpoint, cloud):
        super().__init__(folder, endpoint, cloud, PROGRAM)
        self.run("stack", "init", "acme-dev")
        self.spec["protect"] = True
        for part in (self.spec["cluster"], *self.spec["quotas"].values()):
            part["tags"] = LISTED_TAGS
        self.happy = copy.deepcopy(self.spec)

    def police(self, config=None, *command):
        """Return the engine's output with the pack, and whether the preview succeeded."""
        self.write()
        file = self.folder / "policy.json"
        file.write_text(json.dumps(config or {}))
        pack = ["--policy-pack", str(ROOT / "policies"), "--policy-pack-config", str(file)]
        result = self.run(*(command or ("preview",)), *pack, check=False)
        return result.stdout + result.stderr, result.returncode == 0


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    with running_endpoint() as endpoint:
        yield PolicedProject(tmp_path_factory.mktemp("policed"), endpoint, Cloud(endpoint))


@pytest.fixture
def project(running):
    running.spec = copy.deepcopy(running.happy)
    return running


def waiver(resource, until):
    return {"resource": resource, "reason": "for the test", "until": until}


def test_quota_beyond_the_capacity_of_its_cluster_fails_the_preview(project):
    rows = project.spec["quotas"]["smith"]["compute_quota_config"]["computeQuotaResources"]
    rows[0]["count"] = 2
    output, passed = project.police({"quota-fits-capacity": {"waivers": [waiver("train", UNTIL)]}})
    assert not passed
    assert "Loading policy packs" in output
    violated = re.findall(r"\[mandatory\]  (\S+)", output)
    assert violated == ["policy-configuration", "quota-fits-capacity"], "all others pass while nothing is made yet"
    assert "can't run policy" not in output, "the quotas are matched with their cluster though its ARN is not known"
    assert "5 × ml.g5.12xlarge" in output
    assert "quota-fits-capacity can't be waived. Remove its waivers from stacks/acme.policy.json" in output


@pytest.mark.nightly
def test_a_remediation_changes_what_is_made(project):
    project.spec["cluster"]["node_recovery"] = "None"
    output, passed = project.police({"cluster-node-recovery": "mandatory"}, "up", "--yes", "--skip-preview")
    assert not passed
    assert "`nodeRecovery` of `train` is None" in output
    assert project.cloud.sm.list_clusters()["ClusterSummaries"] == [], "the violation came before the cluster"
    project.spec["cluster"]["tags"] = []
    project.spec["quotas"] = {}
    tags = {each["key"]: each["value"] for each in LISTED_TAGS}
    remediations = {
        "cluster-node-recovery": "remediate",
        "mandatory-tags": {"enforcementLevel": "remediate", "values": tags},
    }
    output, passed = project.police(remediations, "up", "--yes", "--skip-preview")
    assert passed, output
    live = project.cloud.describe()
    assert live["NodeRecovery"] == "Automatic"
    assert {each["Key"] for each in project.cloud.sm.list_tags(ResourceArn=live["ClusterArn"])["Tags"]} >= set(tags)

"""The plugin with the real Pulumi engine: up, no change, a failed creation, destroy."""

import pytest

from hpkit_local.aws.testing import running_endpoint
from tests.local.aws.conftest import Cloud
from tests.provider.builders import GOVERNANCE, Project

pytestmark = [pytest.mark.engine, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def endpoint():
    with running_endpoint() as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def project(tmp_path_factory, endpoint):
    return Project(tmp_path_factory.mktemp("project"), endpoint, Cloud(endpoint))


def test_up_then_no_change(project):
    # The add-on needs the nodes, and governance needs the add-on, so the cluster is created first.
    wanted = project.spec
    project.spec = {**wanted, "quotas": {}, "policy": None}
    project.up()
    project.cloud.eks.create_addon(clusterName="kube", addonName=GOVERNANCE)
    project.spec = wanted
    project.up()
    assert project.preview() == {}
    live = project.cloud.describe()
    assert live["InstanceGroups"][0]["TargetCount"] == 4


def test_a_creation_that_fails_half_way_is_kept_in_the_state_and_made_anew(project, endpoint):
    before = project.spec["quotas"]
    john = before["john"]["compute_quota_config"]["computeQuotaResources"][0]
    vision = {
        "compute_quota_config": {"computeQuotaResources": [{**john, "count": 0}]},
        "compute_quota_target": {"teamName": "vision"},
    }
    project.spec["quotas"] = {**before, "vision": vision}
    endpoint.set_faults({"failed-create": "1@quota"})
    project.write()
    assert project.run("up", "--yes", "--skip-preview", check=False).returncode != 0
    endpoint.set_faults({"failed-create": None})
    kept = project.resources()["vision"]
    assert kept["outputs"]["status"] == "CreateFailed"
    assert kept["initErrors"]
    project.up()
    assert project.preview() == {}
    live = project.cloud.sm.list_compute_quotas(NameContains="vision")["ComputeQuotaSummaries"]
    assert [(entry["Status"], entry["ComputeQuotaArn"] != kept["id"]) for entry in live] == [("Created", True)]


def test_destroy_leaves_nothing(project):
    project.run("destroy", "--yes", "--skip-preview")
    assert project.cloud.sm.list_clusters()["ClusterSummaries"] == []
    assert project.cloud.sm.list_compute_quotas()["ComputeQuotaSummaries"] == []
    assert project.cloud.sm.list_cluster_scheduler_configs()["ClusterSchedulerConfigSummaries"] == []

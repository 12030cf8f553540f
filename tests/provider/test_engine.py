"""The plugin with the real Pulumi engine: up, no change, a failed creation, destroy; and many quotas at once."""

import pytest

from tests.endpoint import running_endpoint
from tests.local.aws.conftest import Cloud
from tests.provider.builders import GOVERNANCE, TYPE, Project
from tests.provider.harness import check_sums

# By day, the plugin runs without an engine, and with it in the life of handson-dev.
pytestmark = [pytest.mark.engine, pytest.mark.nightly, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def endpoint():
    with running_endpoint() as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def project(tmp_path_factory, endpoint):
    return Project(tmp_path_factory.mktemp("project"), endpoint, Cloud(endpoint))


def failed_up(project, endpoint, **faults):
    """Return the output of an `up` that fails because of faults of the endpoint."""
    endpoint.set_faults(faults)
    project.write()
    done = project.run("up", "--yes", "--skip-preview", check=False)
    endpoint.set_faults(dict.fromkeys(faults))
    assert done.returncode != 0
    return done.stdout + done.stderr


def test_a_failed_creation_and_a_failed_update_are_shown_by_the_next_preview_and_made_anew(project, endpoint):
    # The add-on needs the nodes, and governance needs the add-on, so the cluster is created first.
    wanted = project.spec
    project.spec = {**wanted, "quotas": {}, "policy": None}
    project.up()
    project.cloud.eks.create_addon(clusterName="kube", addonName=GOVERNANCE)

    project.spec = {**wanted, "after": {"smith": ["john"]}, "policy": None}
    failed_up(project, endpoint, **{"failed-create": "1@quota"})
    kept = project.resources()["john"]
    assert (kept["outputs"]["status"], bool(kept["initErrors"])) == ("CreateFailed", True)

    project.spec["cluster"]["instance_groups"][0]["imageReleaseVersion"] = "1.2.3"
    said = failed_up(project, endpoint, **{"failed-software": 1})
    assert "Software update of gpu was rolled back" in said

    project.spec["policy"] = wanted["policy"]
    assert project.preview() == {"train": "update", "john": "replace", "smith": "create", "policy": "create"}
    project.up()
    assert project.preview() == {}
    live = project.cloud.sm.list_compute_quotas(NameContains="john")["ComputeQuotaSummaries"]
    assert [(entry["Status"], entry["ComputeQuotaArn"] != kept["id"]) for entry in live] == [("Created", True)]
    assert project.cloud.describe()["InstanceGroups"][0]["TargetCount"] == 4


def test_destroy_leaves_nothing(project):
    project.run("destroy", "--yes", "--skip-preview")
    assert project.cloud.sm.list_clusters()["ClusterSummaries"] == []
    assert project.cloud.sm.list_compute_quotas()["ComputeQuotaSummaries"] == []
    assert project.cloud.sm.list_cluster_scheduler_configs()["ClusterSchedulerConfigSummaries"] == []


class Governed:
    """A project with a cluster, and quotas of whole instances."""

    def __init__(self, folder, endpoint, *, nodes):
        self.endpoint, self.cloud = endpoint, Cloud(endpoint)
        self.project = Project(folder, endpoint, self.cloud)
        self.project.spec["cluster"]["instance_groups"][0]["instanceCount"] = nodes
        self.declare({}, policy=None)
        self.project.up()
        self.cloud.eks.create_addon(clusterName="kube", addonName=GOVERNANCE)

    def declare(self, counts, **more):
        quotas = {
            team: {
                "compute_quota_config": {"computeQuotaResources": [{"instanceType": TYPE, "count": count}]},
                "compute_quota_target": {"teamName": team, "fairShareWeight": 10},
            }
            for team, count in counts.items()
        }
        self.project.spec = {**self.project.spec, "quotas": quotas, **more}

    def counts(self):
        pages = self.cloud.sm.get_paginator("list_compute_quotas").paginate()
        entries = [entry for page in pages for entry in page["ComputeQuotaSummaries"]]
        assert {entry["Status"] for entry in entries} <= {"Created", "Updated"}
        return {entry["Name"]: entry["ComputeQuotaConfig"]["ComputeQuotaResources"][0]["Count"] for entry in entries}


@pytest.fixture
def governed(tmp_path, request):
    with running_endpoint() as endpoint:
        yield Governed(tmp_path, endpoint, nodes=request.param)


@pytest.mark.parametrize("governed", [300], indirect=True)
def test_two_hundred_quotas_converge_under_throttles(governed, monkeypatch):
    governed.endpoint.set_faults({"throttle": "0.2", "slow-update": "0.05@quota", "slow-create": "0.05@quota"})
    check_sums(monkeypatch, {TYPE: 300})
    teams = [f"team-{number:03}" for number in range(200)]
    first = {team: 1 if index < 100 else 2 for index, team in enumerate(teams)}
    second = {team: 3 - count for team, count in first.items()}
    for declared in (first, second):
        governed.declare(declared)
        governed.project.up("--parallel", "200")
        governed.endpoint.set_faults({"throttle": None})
        assert governed.counts() == declared
        governed.endpoint.set_faults({"throttle": "0.2"})

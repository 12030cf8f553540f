"""The plugin under the real Pulumi engine: up, no change, edits, refresh, import, destroy."""

import json

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
    # The add-on needs the nodes, and governance needs the add-on: the cluster comes first here.
    wanted = project.spec
    project.spec = {**wanted, "quotas": {}, "policy": None}
    project.up()
    project.cloud.eks.create_addon(clusterName="kube", addonName=GOVERNANCE)
    project.spec = wanted
    assert project.preview() == {"john": "create", "smith": "create", "policy": "create"}
    project.up()
    assert project.preview() == {}
    live = project.cloud.describe()
    assert live["InstanceGroups"][0]["TargetCount"] == 4


@pytest.mark.nightly
def test_a_label_is_an_update_in_place_of_its_group_only(project):
    group = project.spec["cluster"]["instance_groups"][0]
    group["kubernetesConfig"] = {"labels": {"acme.example/pool": "gpu"}}
    assert project.preview() == {"train": "update"}
    project.up()
    labels = project.cloud.describe()["InstanceGroups"][0]["KubernetesConfig"]["DesiredLabels"]
    assert labels == {"acme.example/pool": "gpu"}


def test_quota_moves_between_teams_at_full_capacity(project):
    for team, count in (("john", 1), ("smith", 3)):
        config = project.spec["quotas"][team]["compute_quota_config"]
        config["computeQuotaResources"][0]["count"] = count
    changes, said = project.preview_with_words()
    assert changes == {"john": "update", "smith": "update"}, "and the label that was set is no difference"
    assert "doesn't fit" not in said, "what one gives up is there for the other"
    # In which order Python's threads register the two is open: one who waits for room needs a place beside the other's.
    project.up("--parallel", "2")
    assert project.preview() == {}


@pytest.mark.nightly
def test_capacity_that_only_a_later_delete_frees_is_reported_at_preview(project):
    quotas = project.spec["quotas"]
    resources = quotas["john"]["compute_quota_config"]["computeQuotaResources"]
    resources[0]["count"] = 4
    try:
        project.spec["quotas"] = {"john": quotas["john"]}
        project.write()
        said = project.run("preview").stdout
        assert "The quota 'john' doesn't fit (3 × ml.g5.12xlarge too few): smith" in said
        resources[0]["count"] = 1
        project.write()
        assert "doesn't fit" not in project.run("preview").stdout
    finally:
        resources[0]["count"] = 1
        project.spec["quotas"] = quotas


@pytest.mark.nightly
def test_other_subnets_of_the_cluster_are_refused_unless_it_may_be_replaced(project):
    subnets = project.spec["cluster"]["vpc_config"]["subnets"]
    project.spec["cluster"]["vpc_config"]["subnets"] = subnets[:1]
    try:
        project.write()
        refused = project.run("preview", check=False)
        assert refused.returncode != 0
        said = refused.stdout + refused.stderr
        for text in ("REPLACE the HyperPod cluster train", "nodes: gpu 4 × ml.g5.12xlarge", "teams: john, smith"):
            assert text in said
        project.spec["cluster"]["allow_replace"] = True
        assert project.preview()["train"] in ("replace", "create-replacement", "delete-replaced")
    finally:
        project.spec["cluster"]["vpc_config"]["subnets"] = subnets
        project.spec["cluster"].pop("allow_replace", None)


@pytest.mark.nightly
def test_drift_made_by_hand_is_found_and_mended(project):
    quotas = project.cloud.sm.list_compute_quotas(NameContains="john")["ComputeQuotaSummaries"]
    described = project.cloud.sm.describe_compute_quota(ComputeQuotaId=quotas[0]["ComputeQuotaId"])
    project.cloud.sm.update_compute_quota(
        ComputeQuotaId=described["ComputeQuotaId"],
        TargetVersion=described["ComputeQuotaVersion"],
        ComputeQuotaTarget={"TeamName": "john", "FairShareWeight": 99},
    )
    assert project.preview("--refresh") == {"john": "update"}
    project.up("--refresh")
    again = project.cloud.sm.describe_compute_quota(ComputeQuotaId=described["ComputeQuotaId"])
    assert again["ComputeQuotaTarget"]["FairShareWeight"] == 10


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
    resources = json.loads(project.run("stack", "export").stdout)["deployment"]["resources"]
    (kept,) = [resource for resource in resources if resource["urn"].endswith("::vision")]
    assert kept["outputs"]["status"] == "CreateFailed"
    assert kept["initErrors"]
    project.up()
    assert project.preview() == {}
    live = project.cloud.sm.list_compute_quotas(NameContains="vision")["ComputeQuotaSummaries"]
    assert [(entry["Status"], entry["ComputeQuotaArn"] != kept["id"]) for entry in live] == [("Created", True)]
    project.spec["quotas"] = before
    project.up()


@pytest.mark.nightly
def test_what_is_imported_by_its_arn_needs_no_change(project):
    sagemaker = project.cloud.sm
    quotas = sagemaker.list_compute_quotas()["ComputeQuotaSummaries"]
    (policy,) = sagemaker.list_cluster_scheduler_configs()["ClusterSchedulerConfigSummaries"]
    arns = [
        ("Cluster", "train", project.cloud.describe()["ClusterArn"]),
        ("ClusterSchedulerConfig", "policy", policy["ClusterSchedulerConfigArn"]),
        *(("ComputeQuota", quota["Name"], quota["ComputeQuotaArn"]) for quota in quotas),
    ]
    resources = [{"type": f"hyperpod:index:{token}", "name": name, "id": arn} for token, name, arn in arns]
    (project.folder / "import.json").write_text(json.dumps({"resources": resources}))
    settings = {
        key: project.run("config", "get", key).stdout.strip() for key in ("hyperpod:region", "hyperpod:endpoint")
    }
    project.run("stack", "init", "other")
    try:
        for key, value in settings.items():
            project.run("config", "set", key, value)
        project.run("import", "--file", "import.json", "--yes", "--protect=false", "--generate-code=false")
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

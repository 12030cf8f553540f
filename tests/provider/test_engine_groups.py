"""Groups that come, leave, change hands and get a zone more, under the real Pulumi engine."""

import json
import textwrap

import pytest

from hpkit_local.aws.testing import running_endpoint
from tests.local.aws.conftest import Cloud
from tests.provider.builders import Project

pytestmark = [pytest.mark.nightly, pytest.mark.engine, pytest.mark.timeout(1800)]

# A guard stands for the NodeClass: to the engine it is a resource that names groups and depends on them.
PROGRAM = """
import json
from pathlib import Path

from pulumi import ResourceOptions

from hpkit.program.sdk import AutoscaledGroup, ChangeGuard, Cluster

spec = json.loads(Path("spec.json").read_text())
cluster = Cluster("train", **spec["cluster"])
groups = {
    name: AutoscaledGroup(
        name,
        cluster_arn=cluster.cluster_arn,
        instance_group_name=name,
        opts=ResourceOptions(deleted_with=cluster),
    )
    for name in spec["cluster"].get("autoscaled_instance_groups", [])
}
after = ResourceOptions(depends_on=[cluster, *groups.values()])
named = {"groups": ",".join(groups)}
version = spec.get("version", "1.30")
ChangeGuard("class", subject="class", identity=named, allow_replace=["groups"], version=version, opts=after)
"""
KEPT = "Instance group system keeps its subnets"


@pytest.fixture(scope="module")
def endpoint():
    with running_endpoint() as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def project(tmp_path_factory, endpoint):
    project = Project(tmp_path_factory.mktemp("project"), endpoint, Cloud(endpoint))
    (project.folder / "__main__.py").write_text(textwrap.dedent(PROGRAM))
    project.spec["cluster"] |= {
        "cluster_role": project.cloud.karpenter_role,
        "auto_scaling": {"mode": "Enable", "autoScalerType": "Karpenter"},
    }
    declare(project, static=["system"], autoscaled=["burst-a", "burst-b", "burst-c"])
    project.up()
    return project


def declare(project, *, static, autoscaled, subnets=1):
    cluster, cloud = project.spec["cluster"], project.cloud
    model = {key: value for key, value in cluster["instance_groups"][0].items() if key != "overrideVpcConfig"}
    override = {"subnets": cloud.subnets[:subnets], "securityGroupIds": [cloud.sg]}
    cluster["instance_groups"] = [
        {**model, "instanceGroupName": name, "instanceCount": int(name in static), "overrideVpcConfig": override}
        for name in (*static, *autoscaled)
    ]
    cluster["autoscaled_instance_groups"] = list(autoscaled)


def steps(project):
    """Run; return what was done, in the order in which it was finished."""
    events = [json.loads(line) for line in project.up("--json").stdout.splitlines() if line.startswith("{")]
    done = [event["resOutputsEvent"]["metadata"] for event in events if "resOutputsEvent" in event]
    return [(step["op"], step["urn"].rpartition("::")[2]) for step in done if step["op"] != "same"]


def live(project):
    return sorted(group["InstanceGroupName"] for group in project.cloud.describe()["InstanceGroups"])


def test_groups_that_leave_go_after_what_names_them_and_all_at_once(project):
    declare(project, static=["system"], autoscaled=["burst-a"])
    done = steps(project)
    assert done[:2] == [("update", "train"), ("update", "class")]
    assert sorted(done[2:]) == [("delete", "burst-b"), ("delete", "burst-c")]
    assert live(project) == ["burst-a", "system"]
    assert project.preview() == {}
    project.run("refresh", "--yes", "--skip-preview", "--expect-no-changes")


def test_a_group_that_is_made_static_stays_even_when_the_run_that_changed_the_cluster_failed_later(project):
    declare(project, static=["system", "burst-a"], autoscaled=[])
    project.spec["version"] = "1.40"  # the class refuses that, after the cluster was updated
    project.write()
    assert project.run("up", "--yes", "--skip-preview", check=False).returncode != 0
    del project.spec["version"]
    assert project.preview() == {"burst-a": "delete", "class": "update"}
    assert steps(project) == [("update", "class"), ("delete", "burst-a")]
    assert live(project) == ["burst-a", "system"]
    assert project.preview() == {}


def test_a_run_that_leaves_the_cluster_out_deletes_no_group(project):
    declare(project, static=["system", "burst-a"], autoscaled=["burst-d"])
    project.up()
    only = ["--target", "urn:pulumi:dev::hpkit::hyperpod:index:AutoscaledGroup::burst-d", "--target-dependents"]
    refused = project.run("destroy", "--yes", "--skip-preview", *only, check=False)
    assert refused.returncode != 0
    assert "'burst-d' stays" in refused.stdout + refused.stderr
    assert live(project) == ["burst-a", "burst-d", "system"]
    project.up()
    assert project.preview() == {}


def test_a_zone_more_changes_nothing_that_lives_and_is_said_once(project):
    before = project.cloud.describe()["InstanceGroups"]
    declare(project, static=["system", "burst-a"], autoscaled=["burst-d"], subnets=2)
    project.write()
    previewed = project.run("preview")
    assert KEPT in previewed.stdout + previewed.stderr
    assert project.preview() == {}
    run = project.up()
    assert KEPT in run.stdout + run.stderr
    project.run("refresh", "--yes", "--skip-preview", "--expect-no-changes")
    again = project.up("--expect-no-changes")
    assert KEPT not in again.stdout + again.stderr
    assert project.cloud.describe()["InstanceGroups"] == before
    declare(project, static=["system", "burst-a", "next"], autoscaled=["burst-d"], subnets=2)
    assert project.preview() == {"train": "update"}
    project.up()
    assert project.preview() == {}
    subnets = {
        group["InstanceGroupName"]: len(group["OverrideVpcConfig"]["Subnets"])
        for group in project.cloud.describe()["InstanceGroups"]
    }
    assert subnets == {"burst-a": 1, "burst-d": 1, "next": 2, "system": 1}


def test_destroy_deletes_the_cluster_and_no_group_by_itself(project, endpoint):
    before = endpoint.stats()["calls"].get("sagemaker.UpdateCluster", 0)
    project.run("destroy", "--yes", "--skip-preview")
    assert project.cloud.sm.list_clusters()["ClusterSummaries"] == []
    assert endpoint.stats()["calls"].get("sagemaker.UpdateCluster", 0) == before

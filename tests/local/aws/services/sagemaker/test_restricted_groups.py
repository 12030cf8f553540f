"""Restricted instance groups: created, changed and removed next to ordinary ones."""

from tests.local.aws.conftest import Cloud


def restricted(cloud: Cloud, count: int = 2, **more):
    environment = {"FSxLustreConfig": {"SizeInGiB": 1200, "PerUnitStorageThroughput": 125}}
    return {
        "InstanceGroupName": "nova",
        "InstanceType": "ml.p5.48xlarge",
        "InstanceCount": count,
        "ExecutionRole": cloud.node_role,
        "EnvironmentConfig": environment,
        **more,
    }


def test_a_restricted_group_is_shown_apart_from_the_others(cloud):
    cloud.make_cluster(RestrictedInstanceGroups=[restricted(cloud)])
    live = cloud.describe()
    assert [group["InstanceGroupName"] for group in live["InstanceGroups"]] == ["gpu"]
    (nova,) = live["RestrictedInstanceGroups"]
    assert (nova["CurrentCount"], nova["TargetCount"], nova["Status"]) == (2, 2, "InService")
    assert nova["EnvironmentConfig"]["FSxLustreConfig"]["SizeInGiB"] == 1200


def test_a_cluster_may_have_restricted_groups_only(cloud):
    cloud.make_cluster(InstanceGroups=None, RestrictedInstanceGroups=[restricted(cloud)])
    assert cloud.describe()["InstanceGroups"] == []


def test_a_restricted_group_grows_and_goes(cloud):
    cloud.make_cluster(RestrictedInstanceGroups=[restricted(cloud)])
    cloud.sm.update_cluster(ClusterName="train", RestrictedInstanceGroups=[restricted(cloud, 3)])
    assert cloud.describe()["RestrictedInstanceGroups"][0]["TargetCount"] == 3
    cloud.sm.update_cluster(ClusterName="train", InstanceGroupsToDelete=["nova"])
    cloud.describe()
    assert "RestrictedInstanceGroups" not in cloud.describe()


def test_a_group_never_changes_its_kind(cloud, refused):
    cloud.make_cluster(RestrictedInstanceGroups=[restricted(cloud)])
    group = {key: value for key, value in restricted(cloud).items() if key != "EnvironmentConfig"}
    said = refused("ValidationException", cloud.sm.update_cluster, ClusterName="train", InstanceGroups=[group])
    assert "is one of RestrictedInstanceGroups and cannot become the other kind" in said

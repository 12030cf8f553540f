"""Restricted instance groups: registered separately, counted wherever nodes are counted, and excluded from quota."""

from types import SimpleNamespace

import pytest

from hpkit.changes import change
from hpkit.changes.review.cost import minimum_cost
from hpkit.plan.derive import quotas_of
from hpkit.plan.protected import contents_of
from hpkit.preflight.needs import InstanceNeed, instance_needs, volume_need
from hpkit.program.iam.account import AwsAccount
from hpkit.program.iam.deployer import calling_types, deployer_policies
from hpkit.program.recording import tree_of
from tests.builders import group, organization, team
from tests.program.recorder import recorded_from

ROLE = "arn:aws:iam::123456789012:role/nova"
PLAN = "arn:aws:sagemaker:us-west-2:123456789012:training-plan/nova"
LUSTRE = {"sizeInGiB": 4800, "perUnitStorageThroughput": 250}


def nova(**more):
    restricted = group("nova", "ml.g5.12xlarge", 2, executionRole=ROLE, environmentConfig={"fSxLustreConfig": LUSTRE})
    return {**restricted, **more}


def with_groups(*restricted, **environment):
    data = organization(
        teams=[team("ada")],
        allocations={"ada": [{"instanceType": "ml.g5.12xlarge", "count": 4}]},
        environment=environment,
    )
    data["environments"]["dev"]["cluster"] |= {"restrictedInstanceGroups": list(restricted)} if restricted else {}
    return data


def cluster_of(data):
    return recorded_from(data).one("hyperpod:index:Cluster").inputs


def test_a_restricted_group_is_registered_with_what_its_shape_has_and_nothing_else():
    data = with_groups(
        nova(
            instanceStorageConfigs=[{"ebsVolumeConfig": {"volumeSizeInGB": 850}}],
            deepHealthChecks=["InstanceStress"],
            trainingPlanArn=PLAN,
            threadsPerCore=2,
        )
    )
    inputs = cluster_of(data)
    (restricted,) = inputs["restrictedInstanceGroups"]
    assert restricted == {
        "instanceGroupName": "nova",
        "instanceType": "ml.g5.12xlarge",
        "instanceCount": 2,
        "executionRole": ROLE,
        "overrideVpcConfig": inputs["instanceGroups"][0]["overrideVpcConfig"],
        "environmentConfig": {"fSxLustreConfig": LUSTRE},
        "threadsPerCore": 2,
        "instanceStorageConfigs": [{"ebsVolumeConfig": {"volumeSizeInGB": 850}}],
        "onStartDeepHealthChecks": ["InstanceStress"],
        "trainingPlanArn": PLAN,
    }
    assert [each["instanceGroupName"] for each in inputs["instanceGroups"]] == ["gpu"]
    assert volume_need(recorded_from(data)) == 850


def test_what_all_restricted_groups_share_is_registered_once():
    data = with_groups({key: value for key, value in nova().items() if key != "environmentConfig"})
    shared = {"sharedEnvironmentConfig": {"fSxLustreDeletionPolicy": "Keep", "fSxLustreConfig": LUSTRE}}
    data["environments"]["dev"]["cluster"]["restrictedInstanceGroupsConfig"] = shared
    inputs = cluster_of(data)
    assert inputs["restrictedInstanceGroupsConfig"] == shared
    assert "environmentConfig" not in inputs["restrictedInstanceGroups"][0]


def test_a_cluster_without_restricted_groups_is_registered_as_before():
    assert not [key for key in cluster_of(with_groups()) if key.startswith("restricted")]


def test_a_restricted_group_counts_as_nodes_and_not_as_capacity_of_teams():
    recording = recorded_from(with_groups(nova()))
    plan = recording.plan
    assert [quota.capacity.permanent for quota in quotas_of(plan)] == [4]
    assert instance_needs(recording)[0] == (InstanceNeed("ml.g5.12xlarge", spot=False, permanent=6, maximum=6),)
    assert minimum_cost(plan, lambda _, region: SimpleNamespace(monthly=10, region=region)).known == 60
    assert "nova 2 × ml.g5.12xlarge" in contents_of(plan)["cluster"]
    assert "2 × ml.g5.12xlarge in us-west-2a, restricted" in str(tree_of(recording))


def test_a_deployer_may_pass_the_role_of_a_restricted_group():
    recording = recorded_from(with_groups(nova()))
    types = calling_types(each.type for each in recording.resources.values())
    account = AwsAccount("aws", "us-west-2", "123456789012")
    statements = [
        statement
        for policy in deployer_policies(recording.plan, account, types)
        for statement in policy.document["Statement"]
        if "iam:PassRole" in statement["Action"] and ROLE in statement["Resource"]
    ]
    assert len(statements) == 1
    assert "sagemaker.amazonaws.com" in str(statements[0]["Condition"])


def codes(before, after):
    found = change(recorded_from(with_groups(*before)), recorded_from(after))
    return {(each.code, each.subject): each.refused for each in found.decisions}


def test_a_restricted_group_leaves_only_when_it_is_named():
    assert codes([nova()], with_groups()) == {("group-removed", "nova"): True}
    assert codes([nova()], with_groups(allowDelete={"instanceGroups": ["nova"]})) == {("group-removed", "nova"): False}


@pytest.mark.parametrize(
    "edit", [{"executionRole": f"{ROLE}-2"}, {"instanceType": "ml.g5.24xlarge"}, {"threadsPerCore": 1}]
)
def test_what_the_service_refuses_on_a_restricted_group_that_exists_is_refused(edit):
    assert codes([nova(threadsPerCore=2)], with_groups(nova(**edit))) == {("immutable", "nova"): True}


def test_more_nodes_and_another_file_system_are_refused_by_nobody():
    other = {"fSxLustreConfig": {**LUSTRE, "sizeInGiB": 7200}}
    assert codes([nova()], with_groups(nova(instanceCount=3, environmentConfig=other))) == {}


def test_a_group_never_becomes_one_of_the_other_kind():
    after = with_groups()
    plain = {key: value for key, value in nova().items() if key != "environmentConfig"}
    after["environments"]["dev"]["cluster"]["instanceGroups"].append(plain)
    assert codes([nova()], after) == {("immutable", "nova"): True}

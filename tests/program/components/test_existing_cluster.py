"""Governance alone, for a cluster that another stack or tool manages."""

import pulumi
import pytest

from hpkit.plan.derive import derive
from hpkit.program.iam.deployer import calling_types, deployer_policies
from hpkit.program.iam.documents import policy_of_members
from hpkit.program.iam.live import AwsAccount
from hpkit.program.recording import Answers
from tests import builders
from tests.program.recorder import recording_of

CREATED = ("ec2/", "s3/", "kms/", "iam/", "eks/cluster:", "index:Cluster\0", "Release", "eks/nodeGroup")
GPU = {"instanceGroupName": "gpu", "instanceType": "ml.g5.12xlarge", "instanceCount": 4}


def plan(*, protect=False, **governance):
    data = builders.organization(
        teams=[builders.team("nlp")],
        allocations={"nlp": [{"instanceType": "ml.g5.12xlarge", "count": 3}]},
        environment={"eks": {"version": "1.35", "existing": {"name": "theirs"}}},
    )
    dev = data["environments"]["dev"]
    del dev["network"]
    dev["cluster"]["existing"] = True
    dev["protect"] = protect
    dev["governance"] |= governance
    assert builders.rules(data) <= {"ACC006", "CAP005"}
    return derive(builders.typed(data), "dev")


def live(*groups, eks="theirs"):
    arn = f"arn:aws:eks:us-west-2:123456789012:cluster/{eks}"
    cluster = "arn:aws:sagemaker:us-west-2:123456789012:cluster/abcdefghijkl"
    return Answers(
        cluster={"clusterArn": cluster, "orchestrator": {"eks": {"clusterArn": arn}}, "instanceGroups": list(groups)}
    )


def test_only_governance_and_access_are_created_and_the_deployer_needs_no_other_rights():
    recording = recording_of(plan())
    types = {each.type for each in recording.resources.values()}
    assert not [each for each in types if any(part in f"{each}\0" for part in CREATED)]
    assert recording.one("index:ComputeQuota").inputs["clusterArn"].endswith(":cluster/abcdefghijkl")
    assert recording.one("eks/addon:Addon").inputs["clusterName"] == "theirs"
    account = AwsAccount(partition="aws", region="us-west-2", id="123456789012")
    policies = deployer_policies(recording.plan, account, calling_types(types))
    actions = {
        action
        for policy in policies
        for statement in policy.document["Statement"]
        if statement["Effect"] == "Allow"
        for action in statement["Action"]
    }
    assert {action.partition(":")[0] for action in actions if "Describe" not in action} <= {"eks", "sagemaker"}
    assert not actions & {"sagemaker:CreateCluster", "sagemaker:UpdateCluster", "sagemaker:DeleteCluster"}


def test_protect_keeps_the_cluster_policy():
    assert [recording_of(plan(protect=each)).one("ClusterSchedulerConfig").protect for each in (True, False)] == [
        True,
        False,
    ]


def test_members_describe_a_cluster_whose_tags_are_not_the_stacks():
    governed = plan()
    (team,) = governed.teams
    account = AwsAccount(partition="aws", region="us-west-2", id="123456789012")
    assert "aws:ResourceTag" not in str(policy_of_members(governed, team, account))


def test_an_addon_that_is_installed_and_its_configuration_are_left_alone():
    recording = recording_of(plan(installed=True))
    assert not recording.all("eks/addon:Addon")
    assert not recording.all("ConfigMapPatch")
    assert recording.all("index:ComputeQuota")


@pytest.mark.parametrize(
    ("there", "message"),
    [
        (live({**GPU, "instanceCount": 3}), "gpu has 3 instances instead of 4"),
        (live({**GPU, "instanceType": "ml.g5.8xlarge"}), "gpu has ml.g5.8xlarge instead of ml.g5.12xlarge"),
        (live({**GPU, "instanceGroupName": "other"}), "it has no instance group gpu"),
        (live(GPU, eks="another"), "the EKS cluster of acme is another"),
    ],
)
def test_a_cluster_with_less_than_the_file_states_is_refused(there, message):
    with pytest.raises(pulumi.RunError, match=message):
        recording_of(plan(), there)


def test_instances_that_no_team_can_reserve_are_a_warning(monkeypatch):
    messages = []
    monkeypatch.setattr(pulumi.log, "warn", messages.append)
    flexible = {"instanceGroupName": "more", "instanceRequirements": {"instanceTypes": ["ml.p5.48xlarge"]}}
    recording_of(plan(), live({**GPU, "instanceCount": 5}, flexible | {"instanceCount": 1}))
    assert "gpu has 5 instances instead of 4; it also has more" in messages[0]


def test_karpenter_that_elastic_quota_relies_on_must_be_on():
    data = builders.organization(
        teams=[builders.team("nlp")],
        groups=[builders.group("burst", "ml.g5.12xlarge", 0)],
        allocations={"nlp": [{"instanceType": "ml.g5.12xlarge", "count": 1, "elastic": True}]},
        environment={"eks": {"version": "1.35", "existing": {"name": "theirs"}}},
    )
    dev = data["environments"]["dev"]
    del dev["network"]
    dev["cluster"]["existing"] = True
    pool = {"name": "burst", "nodeClass": "burst", "limits": {"nvidia.com/gpu": 4}}
    dev["autoscaling"] = {"nodeClasses": [{"name": "burst", "instanceGroups": ["burst"]}], "nodePools": [pool]}
    governed, burst = derive(builders.typed(data), "dev"), {**GPU, "instanceGroupName": "burst", "instanceCount": 0}
    there = live(burst)
    with pytest.raises(pulumi.RunError, match=r"managed Karpenter is off.*--auto-scaling Mode=Enable"):
        recording_of(governed, there)
    there.cluster["autoScaling"] = {"mode": "Enable"}
    assert not recording_of(governed, there).all("NodePool")

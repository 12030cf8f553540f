"""Which resources wait for changes that AWS makes effective late, and which don't."""

import pytest

from hpkit.catalog import TASK_GOVERNANCE, addons
from hpkit.plan.derive import derive
from hpkit.plan.endpoint import awaited_groups
from tests.builders import group, organization, team, typed
from tests.program.recorder import recorded, recorded_from

READINESS = "hyperpod:index:Readiness"
CHECKS = ["InstanceStress"]
TAINT = [{"key": "team", "value": "nlp", "effect": "NoSchedule"}]


@pytest.fixture(scope="module")
def enterprise():
    return recorded("enterprise-prod")


def awaited(*groups):
    plan = derive(typed(organization(groups=list(groups))), "dev")
    return [each.name for each in awaited_groups(plan)]


def test_nothing_inside_the_cluster_is_made_before_the_deployer_is_admitted(enterprise):
    access = enterprise.one(READINESS, "access")
    inside = [each for each in enterprise.resources.values() if each.type.startswith("kubernetes:")]
    assert len(inside) > 10
    assert [each.name for each in inside if not enterprise.waits(each, access)] == []
    entries = enterprise.all("eks/accessPolicyAssociation:AccessPolicyAssociation")
    administrators = [each for each in entries if "ClusterAdmin" in each.inputs["policyArn"]]
    assert all(enterprise.waits(access, each) for each in administrators)


def test_eks_waits_until_its_role_can_use_the_key(enterprise):
    eks, key = enterprise.one("eks/cluster:Cluster"), enterprise.one(READINESS, "key")
    assert enterprise.waits(eks, key)
    rights = [
        enterprise.one("iam/rolePolicy:RolePolicy", "control-plane"),
        enterprise.one("iam/rolePolicyAttachment:RolePolicyAttachment", "control-plane"),
    ]
    assert all(enterprise.waits(key, each) for each in rights)
    slow = [*enterprise.all("ec2/natGateway:NatGateway"), *enterprise.all("ec2/vpcEndpoint:VpcEndpoint")]
    assert [each.name for each in slow if enterprise.waits(key, each)] == []


def test_other_services_use_the_key_when_it_can_be_used_everywhere():
    given = {"teams": [team("nlp", registry=["train"])], "groups": [group("gpu", "ml.g5.12xlarge", 1)]}
    allocations = {"nlp": [{"instanceType": "ml.g5.12xlarge", "count": 1}]}
    program = recorded_from(organization(**given, allocations=allocations))
    key = program.one(READINESS, "key")
    assert program.waits(program.one("cloudwatch/logGroup:LogGroup"), key)
    assert program.waits(program.one("ecr/repository:Repository"), key)


@pytest.mark.parametrize("stack", ["enterprise-prod", "autoscale-dev"])
def test_pods_with_a_role_wait_until_their_association_is_in_force(stack):
    program = recorded(stack)
    addons = {association.name: association for association in program.all("eks/addon:Addon")}
    associations = program.all("eks/podIdentityAssociation:PodIdentityAssociation")
    waits = {
        association.name: association
        for association in program.all(READINESS)
        if "podIdentityAssociations" in association.inputs
    }
    known = {account for wait in waits.values() for account in wait.inputs["podIdentityAssociations"]}
    assert known == {
        f"{association.inputs['namespace']}/{association.inputs['serviceAccount']}" for association in associations
    }
    for association in associations:
        user = program.one("helm.sh/v3:Release", "keda") if association.name == "keda" else addons[association.name]
        between = [wait for wait in waits.values() if program.waits(user, wait) and program.waits(wait, association)]
        assert between, association.name
    assert not any(program.waits(addons["vpc-cni"], wait) for wait in waits.values())


@pytest.mark.parametrize(
    ("stack", "named"),
    [
        ("autoscale-dev", {"coredns", TASK_GOVERNANCE}),
        ("enterprise-prod", {"amazon-sagemaker-hyperpod-observability", TASK_GOVERNANCE}),
    ],
)
def test_add_ons_that_need_nodes_wait_for_ready_ones(stack, named):
    program = recorded(stack)
    nodes = program.one(READINESS, "nodes")
    assert program.waits(nodes, program.one("hyperpod:index:Cluster"))
    needing = {each.name for each in addons() if each.needs_nodes}
    made = {each.name: each for each in program.all("eks/addon:Addon") if each.name in needing}
    assert named <= made.keys()
    assert [name for name, each in made.items() if not program.waits(each, nodes)] == []


def test_keda_waits_for_ready_nodes_and_karpenters_objects_do_not():
    program = recorded("autoscale-dev")
    nodes = program.one(READINESS, "nodes")
    assert program.waits(program.one("helm.sh/v3:Release", "keda"), nodes)
    classes = program.all("karpenter.sagemaker.amazonaws.com/v1:HyperpodNodeClass")
    assert classes
    assert not any(program.waits(each, nodes) for each in classes)


def test_policy_and_quotas_wait_until_kueue_runs(enterprise):
    kueue = enterprise.one(READINESS, "kueue")
    assert kueue.inputs["deployments"] == ["kueue-system/kueue-controller-manager"]
    governed = [
        *enterprise.all("hyperpod:index:ClusterSchedulerConfig"),
        *enterprise.all("hyperpod:index:ComputeQuota"),
    ]
    assert all(enterprise.waits(each, kueue) for each in governed)


def test_groups_without_accelerators_are_waited_for_if_there_are_any():
    gpu, system = group("gpu", "ml.g5.12xlarge", 4), group("system", "ml.m5.4xlarge", 1)
    assert awaited(gpu, system) == ["system"]
    assert awaited(gpu, group("none", "ml.m5.4xlarge", 0)) == ["gpu"]
    assert awaited(gpu, group("closed", "ml.m5.4xlarge", 1, taints=TAINT)) == ["gpu"]


def test_groups_with_deep_health_checks_are_waited_for_only_where_there_are_no_others():
    checked = group("checked", "ml.p4d.24xlarge", 2, deepHealthChecks=CHECKS)
    assert awaited(checked, group("gpu", "ml.g5.12xlarge", 4)) == ["gpu"]
    assert awaited(checked) == ["checked"]


def test_where_only_karpenter_adds_nodes_none_is_waited_for():
    burst = {**group("burst", "ml.g5.8xlarge", 0), "availabilityZone": "us-west-2b"}
    scaling = {"autoscaling": {"nodeClasses": [{"name": "burst", "instanceGroups": ["burst"]}], "nodePools": []}}
    program = recorded_from(organization(groups=[burst], environment=scaling))
    assert [each.name for each in program.all(READINESS) if "instanceGroups" in each.inputs] == []
    assert program.waits(
        next(each for each in program.all("eks/addon:Addon") if each.name == "coredns"),
        program.one("hyperpod:index:Cluster"),
    )


def test_the_time_for_nodes_is_the_files():
    data = organization()
    data["environments"]["dev"]["cluster"]["nodesReadyMinutes"] = 150
    assert recorded_from(data).one(READINESS, "nodes").inputs["minutes"] == 150


def test_queues_and_teams_do_not_wait_for_all_instances_and_nothing_does_with_0_minutes(enterprise):
    capacity = enterprise.one(READINESS, "capacity")
    assert (capacity.inputs["minutes"], capacity.inputs["instanceCounts"]) == (20, {"gpu": 10, "system": 2})
    waiting = [
        each for each in enterprise.resources.values() if each is not capacity and enterprise.waits(each, capacity)
    ]
    assert {each.type for each in waiting} <= {"hyperpod:index:ChangeGuard"}
    data = organization()
    data["environments"]["dev"]["cluster"]["capacityWaitMinutes"] = 0
    assert "capacity" not in {each.name for each in recorded_from(data).all(READINESS)}

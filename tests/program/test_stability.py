"""An edit only affects its own resources, and the order of a destroy works."""

import copy

import pytest
import yaml

from generate.urns import FOLDER, parse_urns, registered
from hpkit.plan.derive import derive
from hpkit.program.components.admission.policies import policies_of
from hpkit.program.components.scheduling import autoscaling
from hpkit.program.recording import record
from hpkit.program.recording.record import RecordedResource
from hpkit.project import load, project_root
from tests.builders import group, organization, team
from tests.program.recorder import STACKS, recorded, recorded_from
from tests.program.test_stacks import NAMES

BASE = organization(
    teams=[team("alpha"), team("gamma", members=["arn:aws:iam::123456789012:role/gamma"])],
    groups=[group("gpu", "ml.g5.12xlarge", 4), group("system", "ml.m5.4xlarge", 1, availabilityZone="us-west-2b")],
    allocations={
        "alpha": [{"instanceType": "ml.g5.12xlarge", "count": 2}],
        "gamma": [{"instanceType": "ml.g5.12xlarge", "count": 1}],
    },
)


def edited(change):
    data = copy.deepcopy(BASE)
    change(data, data["environments"]["dev"])
    return recorded_from(data)


def differences(change):
    """Return (type, name) of resources that are new, removed, or have different inputs."""
    before, after = recorded_from(BASE), edited(change)
    inputs = {(each.type, each.name): each.inputs for each in before.resources.values()}
    outputs = {(each.type, each.name): each.inputs for each in after.resources.values()}
    return {
        f"{resource_type.rpartition(':')[2]} {name}"
        for resource_type, name in inputs.keys() | outputs.keys()
        if inputs.get((resource_type, name)) != outputs.get((resource_type, name))
    }


POLICIES = {f"ValidatingAdmissionPolicy {policy.name}" for policy in policies_of(())}
# Nodes and teams that a rejection would mention: for the plugin, not a difference.
WORDS = {"ChangeGuard keep", "ChangeGuard keep-base", "hyperpod hyperpod"}


def test_the_order_in_the_file_means_nothing():
    def shuffle(data, dev):
        data["teams"].reverse()
        dev["cluster"]["instanceGroups"].reverse()
        dev["network"]["zones"].reverse()
        dev["governance"]["allocations"] = dict(reversed(dev["governance"]["allocations"].items()))

    assert differences(shuffle) == set()


def test_a_team_in_the_middle_adds_what_is_its_own():
    def add(data, dev):
        data["teams"].insert(1, team("beta", members=["arn:aws:iam::123456789012:role/beta"]))
        dev["governance"]["allocations"]["beta"] = [{"instanceType": "ml.g5.12xlarge", "count": 1}]

    changed = differences(add)
    # In place: each policy names the namespaces of teams with members.
    assert {each for each in changed if each.startswith("ValidatingAdmissionPolicy ")} == POLICIES
    assert changed - POLICIES == {
        "ComputeQuota beta",
        "LimitRange beta",
        "ResourceQuota beta",
        "NamespacePatch beta",
        "AccessEntry 123456789012:role/beta",
        "Role beta",
        "RoleBinding beta",
        "ClusterRoleBinding hpkit-data-scientist",
        "ChangeGuard keep-parts",
        *WORDS,
    }


def test_a_zone_before_the_others_adds_what_is_its_own_and_moves_no_gateway():
    zone = {"availabilityZone": "us-west-2c", "nodeCidr": "10.3.0.0/16"}
    changed = differences(lambda _, dev: dev["network"]["zones"].insert(0, zone))
    own = {each for each in changed if each.endswith("nodes-us-west-2c")}
    # In place: the endpoint gets the new route table, and the role may create interfaces in the new subnet.
    assert changed - own == {"VpcEndpoint endpoint-s3", "RolePolicy nodes", "ChangeGuard keep-groups"}
    assert {each.partition(" ")[0] for each in own} == {
        "VpcIpv4CidrBlockAssociation",
        "Subnet",
        "RouteTable",
        "RouteTableAssociation",
        "Route",
    }


def test_growing_a_group_touches_the_cluster_alone():
    def grow(_, dev):
        dev["cluster"]["instanceGroups"][0]["instanceCount"] = 5

    assert differences(grow) == {"Cluster cluster", "Readiness capacity", *WORDS}


def test_shifting_quota_touches_the_two_quotas_alone():
    def shift(_, dev):
        dev["governance"]["allocations"]["alpha"][0]["count"] = 1
        dev["governance"]["allocations"]["gamma"][0]["count"] = 2

    assert differences(shift) == {
        *("ComputeQuota alpha", "ResourceQuota alpha"),
        *("ComputeQuota gamma", "ResourceQuota gamma"),
    }


def test_removing_governance_removes_addon_policy_quotas_and_rights():
    changed = differences(lambda _, dev: dev.pop("governance"))
    assert "Addon amazon-sagemaker-hyperpod-taskgovernance" in changed
    assert {"ClusterSchedulerConfig policy", "ComputeQuota alpha", "ComputeQuota gamma", "RoleBinding gamma"} <= changed
    assert not {"Cluster cluster", "Vpc vpc"} & changed


@pytest.mark.parametrize("stack", sorted(file.stem for file in (project_root() / FOLDER).glob("*.txt")))
def test_what_an_example_ever_registered_it_registers_still_under_the_same_name(stack):
    before = parse_urns((project_root() / FOLDER / f"{stack}.txt").read_text(encoding="utf-8"))
    gone = sorted(before - registered(stack).keys())
    assert gone == [], "these are in people's state, and the next `up` would delete them: give them back their names"


# What connects nodes, controllers, control plane and AWS.
CONNECTIVITY = (
    "ec2/natGateway:NatGateway",
    "ec2/internetGateway:InternetGateway",
    "ec2/route:Route",
    "ec2/routeTableAssociation:RouteTableAssociation",
    "ec2/vpcEndpoint:VpcEndpoint",
    "vpc/securityGroupEgressRule:SecurityGroupEgressRule",
    "vpc/securityGroupIngressRule:SecurityGroupIngressRule",
)
# What AWS, or a controller in the cluster, deletes over the network.
IN_THE_CLUSTER = (
    "eks/accessEntry:AccessEntry",
    "eks/accessPolicyAssociation:AccessPolicyAssociation",
    "eks/addon:Addon",
    "hyperpod:index:AutoscaledGroup",
    "hyperpod:index:Cluster",
    "hyperpod:index:ClusterSchedulerConfig",
    "hyperpod:index:ComputeQuota",
)


def in_the_cluster(program) -> list[RecordedResource]:
    """Return everything inside the EKS cluster, and HyperPod's resources on it."""
    inside = [each for each in program.resources.values() if each.type.startswith("kubernetes:")]
    return inside + [each for kind in IN_THE_CLUSTER for each in program.all(kind)]


def cut(program, later) -> list[tuple[str, str]]:
    """Return the parts of the network that may be deleted while these still exist, with what needs them."""
    return [
        (f"{resource.type}:{resource.name}", missed.name)
        for resource_type in CONNECTIVITY
        for resource in program.all(resource_type)
        for missed in later
        if not program.waits(missed, resource)
    ]


@pytest.mark.parametrize("stack", NAMES)
def test_the_network_outlives_everything_in_the_cluster(stack):
    program = recorded(stack)
    assert program.all("ec2/routeTableAssociation:RouteTableAssociation")
    assert {each.type for each in in_the_cluster(program)} >= {"hyperpod:index:ComputeQuota", "aws:eks/addon:Addon"}
    assert cut(program, in_the_cluster(program)) == []


def test_so_it_does_with_charts_warm_pools_and_people():
    data = yaml.safe_load((STACKS / "autoscale.yaml").read_text(encoding="utf-8"))
    dev = data["environments"]["dev"]
    dev["cluster"]["dependencies"] = {"chart": "oci://example.com/chart", "version": "1.0.0"}
    dev["autoscaling"]["keda"] = {}
    dev["autoscaling"]["nodePools"][0]["warmPool"] = {"replicas": 1, "requests": {"cpu": "1"}}
    dev["eks"]["administrators"] = ["arn:aws:iam::123456789012:role/admin"]
    data["teams"][0]["members"] = ["arn:aws:iam::123456789012:role/scientists"]
    program = recorded_from(data)
    kinds = {each.type.rpartition(":")[2] for each in in_the_cluster(program)}
    assert kinds >= {"Release", "NodePool", "HyperpodNodeClass", "Deployment", "RoleBinding", "AccessPolicyAssociation"}
    assert cut(program, in_the_cluster(program)) == []


@pytest.mark.parametrize("stack", NAMES)
def test_the_control_plane_waits_for_no_gateway(stack):
    program = recorded(stack)
    slow = [*program.all("ec2/natGateway:NatGateway"), *program.all("ec2/vpcEndpoint:VpcEndpoint")]
    eks = program.one("eks/cluster:Cluster")
    assert [each.name for each in slow if program.waits(eks, each)] == []


def test_administrators_are_let_in_before_all_else_and_shut_out_last():
    data = yaml.safe_load((STACKS / "handson.yaml").read_text(encoding="utf-8"))
    data["environments"]["dev"]["eks"]["administrators"] = ["arn:aws:iam::123456789012:role/admin"]
    program = recorded_from(data)
    (entry,) = (each for each in program.all("eks/accessEntry:AccessEntry") if each.name.endswith("role/admin"))
    association = program.one("eks/accessPolicyAssociation:AccessPolicyAssociation")
    assert program.waits(association, entry)
    others = [each for each in in_the_cluster(program) if not each.type.startswith("aws:eks/access")]
    assert others
    assert [each.name for each in others if not program.waits(each, association)] == []


def test_a_node_pool_has_an_hour_to_drain_its_nodes(monkeypatch):
    limits = {}

    class Seen(autoscaling.KubernetesObject):
        def __init__(self, name, kind, *, opts, **fields):
            limits[kind.rpartition(":")[2]] = opts.custom_timeouts and opts.custom_timeouts.delete
            super().__init__(name, kind, opts=opts, **fields)

    monkeypatch.setattr(autoscaling, "KubernetesObject", Seen)
    record(derive(load(STACKS / "autoscale.yaml").parsed.organization, "dev"))
    assert limits == {"HyperpodNodeClass": None, "NodePool": "1h"}

"""The order of a destroy works: network and access are deleted after everything that needs them."""

import pytest
import yaml

from hpkit.plan.derive import derive
from hpkit.program.components.scheduling import autoscaling
from hpkit.program.recording import record
from hpkit.program.recording.record import RecordedResource
from hpkit.project import load
from tests.program.recorder import STACKS, recorded, recorded_from
from tests.program.test_stacks import NAMES

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

    class Seen(autoscaling.CustomResource):
        def __init__(self, name, *, opts, **properties):
            limits[properties["kind"]] = opts.custom_timeouts and opts.custom_timeouts.delete
            super().__init__(name, opts=opts, **properties)

    monkeypatch.setattr(autoscaling, "CustomResource", Seen)
    record(derive(load(STACKS / "autoscale.yaml").parsed.organization, "dev"))
    assert limits == {"HyperpodNodeClass": None, "NodePool": "1h"}

"""What `hpkit plan` shows is what the program registers, by the names that AWS will show."""

from collections import Counter

import pytest

from hpkit.plan.outline import outline
from tests.builders import group, organization, team
from tests.program.recorder import ACCOUNT, STACKS, recorded, recorded_from

NAMES = sorted(file.stem.removeprefix("Pulumi.") for file in STACKS.glob("Pulumi.*.yaml") if "-" in file.stem)
# Kind in the outline → type of the program and the input that holds the physical name (none: the resource's own name).
SHOWN = {
    "ec2.Vpc": ("aws:ec2/vpc:Vpc", None),
    "ec2.Subnet": ("aws:ec2/subnet:Subnet", ""),
    "ec2.NatGateway": ("aws:ec2/natGateway:NatGateway", ""),
    "ec2.VpcEndpoint": ("aws:ec2/vpcEndpoint:VpcEndpoint", ""),
    "ec2.SecurityGroup": ("aws:ec2/securityGroup:SecurityGroup", "name"),
    "s3.Bucket": ("aws:s3/bucket:Bucket", "bucket"),
    "fsx.LustreFileSystem": ("aws:fsx/lustreFileSystem:LustreFileSystem", None),
    "kms.Key": ("aws:kms/key:Key", None),
    "cloudwatch.LogGroup": ("aws:cloudwatch/logGroup:LogGroup", "name"),
    "eks.Cluster": ("aws:eks/cluster:Cluster", "name"),
    "eks.Addon": ("aws:eks/addon:Addon", "addonName"),
    "hyperpod.ClusterSchedulerConfig": ("hyperpod:index:ClusterSchedulerConfig", "name"),
    "hyperpod.ComputeQuota": ("hyperpod:index:ComputeQuota", "name"),
    "helm.Release": ("kubernetes:helm.sh/v3:Release", "name"),
    "amp.Workspace": ("aws:amp/workspace:Workspace", "alias"),
    "grafana.Workspace": ("aws:grafana/workspace:Workspace", "name"),
}


def flat(node):
    yield node
    for child in node.children:
        yield from flat(child)


def known(text, region):
    """Put in what only AWS knows."""
    zones = {"<first zone>": f"{region}a", "<second zone>": f"{region}b", "<account-id>": ACCOUNT}
    for shown, real in zones.items():
        text = text.replace(shown, real)
    return text


def compare(program):
    shown = [node for node in flat(outline(program.plan)) if node.kind]
    for kind, (made_as, key) in SHOWN.items():
        names = Counter(known(node.name, program.plan.spec.region) for node in shown if node.kind == kind)
        made = program.all(made_as)
        if key is None:
            assert names.total() == len(made), kind
        else:
            assert names == Counter(each.inputs[key] if key else each.name for each in made), kind


@pytest.mark.parametrize("stack", NAMES)
def test_the_outline_of_an_example_has_what_the_program_makes(stack):
    compare(recorded(stack))


def test_the_outline_shows_file_system_charts_and_workspaces_as_they_are_made():
    data = organization(
        environment={
            "storage": {"lustre": {"availabilityZone": "us-west-2a", "storageCapacityGiB": 1200}},
            "observability": {"cloudwatch": True, "prometheus": True, "grafana": True},
        }
    )
    data["environments"]["dev"]["cluster"]["dependencies"] = {"chart": "charts/x", "version": "0.1.0"}
    data["environments"]["dev"]["network"]["natGateways"] = "PerZone"
    compare(recorded_from(data))


def test_the_outline_leaves_out_what_is_there_already():
    role = "arn:aws:iam::123456789012:role/live"
    data = organization(
        teams=[team("nlp")],
        groups=[
            group("gpu", "ml.g5.12xlarge", 4, executionRole=role, lifecycleScript="s3://live/run.sh"),
            group("burst", "ml.g5.8xlarge", 0, executionRole=role, lifecycleScript="None"),
        ],
        environment={
            "storage": {"existing": {"bucket": "live"}},
            "autoscaling": {"nodeClasses": [{"name": "burst", "instanceGroups": ["burst"]}], "clusterRole": role},
            "governance": {
                "allocations": {"nlp": [{"instanceType": "ml.g5.12xlarge", "count": 2}]},
                "quotaNames": {"nlp": "language"},
                "policyName": "live",
            },
        },
    )
    program = recorded_from(data)
    compare(program)
    shown = {node.kind: node.name for node in flat(outline(program.plan))}
    assert "s3.Bucket" not in shown
    assert shown["hyperpod.ComputeQuota"] == "language"
    roles = {node.name for node in flat(outline(program.plan)) if node.kind == "iam.Role"}
    assert roles == {each.inputs["name"] for each in program.all("aws:iam/role:Role")}


@pytest.mark.parametrize("stack", NAMES)
def test_every_role_of_the_outline_is_one_that_the_program_makes(stack):
    program = recorded(stack)
    made = {each.inputs["name"] for each in program.all("aws:iam/role:Role")}
    shown = {node.name for node in flat(outline(program.plan)) if node.kind == "iam.Role"}
    assert shown
    assert shown <= made

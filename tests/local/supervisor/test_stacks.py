"""Stacks per instance, the default instance of a command, and existing resources that a file names."""

import json

import pytest

from hpkit.errors import SelectionError, ToolError
from hpkit.plan.derive import derive
from hpkit_local.cli.local_env import stack_environment
from hpkit_local.processes import identify
from hpkit_local.supervisor.existing import create_existing
from hpkit_local.supervisor.local_cloud import LocalCloud, State
from hpkit_local.supervisor.local_clouds import StackThere, stacks_of, stacks_up, the_only
from tests.builders import group, organization, typed
from tests.endpoint import running_endpoint

PROVIDER = {"type": "pulumi:providers:aws", "custom": True, "inputs": {"region": "eu-west-1"}}
VPC = {"type": "aws:ec2/vpc:Vpc", "custom": True, "inputs": {}}
COMPONENT = {"type": "hpkit:index:Network"}


def put(instance, stack, *resources, latest="latest"):
    folder = instance.state_folder / ".pulumi" / "stacks" / "hpkit"
    folder.mkdir(parents=True, exist_ok=True)
    state = {"resources": list(resources)} if resources else None
    (folder / f"{stack}.json").write_text(json.dumps({"version": 3, "checkpoint": {latest: state}}))


@pytest.fixture
def make(tmp_path):
    def instance(name, *, runs=False, stack=""):
        made = LocalCloud.named(name, root=tmp_path)
        made.folder.mkdir(parents=True)
        if runs:
            # Any live process works.
            made.write_state(State(identify(1)))
        if stack:
            put(made, stack, PROVIDER, VPC)
        return made

    return instance


def test_a_stack_is_up_while_it_has_resources_of_its_own(make):
    instance = make("one")
    put(instance, "full", PROVIDER, VPC, VPC, COMPONENT)
    put(instance, "bare", PROVIDER, COMPONENT)
    put(instance, "empty")
    put(instance, "imported", VPC, latest="Latest")
    put(instance, "reads", PROVIDER, VPC, {**VPC, "external": True}, {**VPC, "delete": True})
    assert stacks_up(instance) == [
        StackThere("full", 2, "eu-west-1"),
        StackThere("imported", 1, ""),
        StackThere("reads", 1, "eu-west-1"),
    ]
    assert [each.name for each in stacks_of(instance)] == ["bare", "empty", "full", "imported", "reads"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"checkpoint": {"latest": {"resources": [1]}}}'])
def test_a_file_that_is_no_state_is_no_stack(make, text):
    instance = make("one")
    put(instance, "whole", VPC)
    (instance.state_folder / ".pulumi" / "stacks" / "hpkit" / "odd.json").write_text(text)
    assert [each.name for each in stacks_of(instance)] == ["whole"]


@pytest.mark.parametrize(
    ("stack", "name"),
    [("handson-dev", "handson-dev"), ("Acme_Dev.2", "acme-dev-2"), ("-a-", "a"), (f"{'a' * 39}-b", "a" * 39)],
)
def test_an_instance_is_named_after_its_stack_as_far_as_names_go(tmp_path, stack, name):
    assert LocalCloud.of_stack(stack, root=tmp_path).name == name


def test_the_only_one_that_runs_is_meant_else_the_only_one_there_is_else_default(make, tmp_path):
    assert the_only(tmp_path, command="x").name == "default"
    make("idle")
    assert the_only(tmp_path, command="x").name == "idle"
    make("busy", runs=True)
    assert the_only(tmp_path, command="x").name == "busy"


def test_of_several_the_commands_are_listed_with_what_is_on_each(make, tmp_path):
    make("idle")
    make("other")
    with pytest.raises(SelectionError, match="2 local clouds exist, but none is running; choose one:") as caught:
        the_only(tmp_path, command="hpkit local env")
    for name in ("busy", "calm"):
        make(name, runs=True, stack=f"{name}-dev")
    with pytest.raises(SelectionError) as caught:
        the_only(tmp_path, command="hpkit local env")
    assert str(caught.value).splitlines() == [
        "2 local clouds run here; choose one:",
        "  hpkit local env --name busy    # stack busy-dev",
        "  hpkit local env --name calm    # stack calm-dev",
    ]


def test_a_stack_is_previewed_on_the_running_instance_that_has_it(make, tmp_path):
    dev, prod = make("acme-dev", runs=True, stack="acme-dev"), make("acme-prod", runs=True, stack="acme-prod")
    (prod.folder / "ports.json").write_text('{"aws": 12345}')
    shell = {"PATH": "/bin", "PULUMI_BACKEND_URL": dev.state_folder.as_uri(), "OTHER": "kept"}
    assert stack_environment(tmp_path, "acme-dev", shell) == shell
    own = stack_environment(tmp_path, "acme-prod", shell)
    assert own["PULUMI_BACKEND_URL"] == prod.state_folder.as_uri()
    assert (own["AWS_ENDPOINT_URL"], own["AWS_REGION"]) == ("http://127.0.0.1:12345", "eu-west-1")
    assert (own["PATH"], own["OTHER"]) == ("/bin", "kept")
    with pytest.raises(ToolError, match=r"no running local cloud.*acme-test.*local up --stack acme-test"):
        stack_environment(tmp_path, "acme-test", shell)
    elsewhere = {**shell, "PULUMI_BACKEND_URL": "file:///other"}
    assert stack_environment(tmp_path, "acme-prod", elsewhere) == elsewhere


NETWORK = {
    "vpcId": "vpc-0a1b2c3d4e5f60718",
    "subnets": {"us-west-2a": "subnet-0a1b2c3d4e5f60718", "usw2-az2": "subnet-0a1b2c3d4e5f60719"},
    "controlPlaneSubnets": ["subnet-0a1b2c3d4e5f60720", "subnet-0a1b2c3d4e5f60721"],
    "securityGroupIds": ["sg-0a1b2c3d4e5f60718"],
}
ROLE = "arn:aws:iam::123456789012:role/ml/nodes"


def plan_of(**eks):
    groups = [group("gpu", "ml.g5.12xlarge", 2, executionRole=ROLE, lifecycleScript="s3://acme-scripts/on-create.sh")]
    environment = {"network": {"existing": NETWORK}, "eks": {"version": "1.35", "existing": {"name": "corp"}, **eks}}
    return derive(typed(organization(groups=groups, environment=environment)), "dev")


def test_what_the_file_names_is_created_once():
    with running_endpoint() as endpoint:
        environment = {"AWS_ENDPOINT_URL": endpoint.url, "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
        assert create_existing(plan_of(), environment) == [
            "vpc-0a1b2c3d4e5f60718",
            *(f"subnet-0a1b2c3d4e5f607{number}" for number in (18, 19, 20, 21)),
            "sg-0a1b2c3d4e5f60718",
            "role nodes",
            "bucket acme-scripts",
            "EKS cluster corp",
        ]
        assert create_existing(plan_of(), environment) == []
        zones = {
            subnet["SubnetId"][-2:]: subnet["AvailabilityZoneId"]
            for subnet in endpoint.client("ec2").describe_subnets()["Subnets"]
            if subnet["VpcId"] == NETWORK["vpcId"]
        }
        assert (zones["18"], zones["19"]) == ("usw2-az2", "usw2-az2")
        assert endpoint.client("iam").get_role(RoleName="nodes")["Role"]["Arn"] == ROLE
        assert endpoint.client("eks").describe_cluster(name="corp")["cluster"]["status"] == "ACTIVE"


def test_what_the_local_cloud_refuses_is_an_error_of_one_line():
    with running_endpoint() as endpoint, pytest.raises(ToolError, match="acme-dev uses can't be created"):
        create_existing(
            plan_of(version="1.20"),
            {"AWS_ENDPOINT_URL": endpoint.url, "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"},
        )

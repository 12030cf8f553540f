"""The fake plugin at work on programs of its own: look-ups, default tags, refusals, faults, interrupted creations."""

from __future__ import annotations

import json

import pytest

from hpkit_local.aws.testing import running_endpoint
from tests.local.plugins.aws.harness import Project

pytestmark = [pytest.mark.engine, pytest.mark.timeout(1800)]

TRUST = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Principal": {"Service": "eks.amazonaws.com"}, "Action": "sts:AssumeRole"}],
    }
)
PROGRAM = f"""
import json

import pulumi
import pulumi_aws as aws

config = pulumi.Config()
vpc = aws.ec2.Vpc("vpc", cidr_block="10.0.0.0/16", tags={{"Name": "mine"}})
subnets = [
    aws.ec2.Subnet(f"sub-{{z}}", vpc_id=vpc.id, cidr_block=f"10.0.{{i}}.0/24", availability_zone=f"us-west-2{{z}}")
    for i, z in enumerate("ab")
]
role = aws.iam.Role("role", assume_role_policy={TRUST!r})
cluster = aws.eks.Cluster("kube", name="kube", role_arn=role.arn, vpc_config={{"subnet_ids": [s.id for s in subnets]}})
if config.get("wrong") == "queue":
    aws.sqs.Queue("queue")
if config.get("wrong") == "routes":
    aws.ec2.RouteTable("table", vpc_id=vpc.id, routes=[{{"cidr_block": "0.0.0.0/0"}}])
pulumi.export("account", aws.get_caller_identity().account_id)
pulumi.export("partition", aws.get_partition().partition)
pulumi.export("zones", aws.get_availability_zones(state="available").names)
found = aws.eks.get_cluster_output(name=cluster.name)
pulumi.export("same", pulumi.Output.all(found.endpoint, cluster.endpoint).apply(lambda each: each[0] == each[1]))
pulumi.export("authority", found.certificate_authorities[0].data)
pulumi.export("group", cluster.vpc_config.cluster_security_group_id)
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    with running_endpoint() as endpoint:
        project = Project(tmp_path_factory.mktemp("project"), endpoint, program=PROGRAM)
        project.run("config", "set", "--path", "aws:defaultTags.tags.team", "ml")
        project.run("config", "set", "--path", "aws:allowedAccountIds[0]", "123456789012")
        yield project


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("queue", "The local cloud has no fake of aws:sqs/queue:Queue; docs/reference/fake-plugins.md lists"),
        pytest.param(
            "routes",
            "the local cloud's aws:ec2/routeTable:RouteTable has no property 'routes'",
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_what_is_not_offered_is_named_at_preview(project, wrong, said):
    project.run("config", "set", "wrong", wrong)
    result = project.run("preview", check=False)
    project.run("config", "rm", "wrong")
    assert result.returncode != 0
    assert said in result.stdout


@pytest.mark.nightly
def test_another_account_than_the_allowed_is_refused(project):
    project.run("config", "set", "--path", "aws:allowedAccountIds[0]", "999999999999")
    said = project.run("preview", check=False)
    project.run("config", "set", "--path", "aws:allowedAccountIds[0]", "123456789012")
    assert said.returncode != 0
    assert "The account is 123456789012; aws:allowedAccountIds allows 999999999999 only." in said.stdout


@pytest.mark.nightly
def test_a_creation_that_fails_half_way_stays_in_state(project):
    project.endpoint.set_faults(failed_create="1@eks", throttle=0.2)
    said = project.run("up", "--yes", "--skip-preview", check=False)
    assert said.returncode != 0
    assert "ended in status FAILED: fault injected: failed-create" in said.stdout
    assert project.resources()["kube"]["id"] == "kube", "what exists is known, so that it is not made twice"
    project.endpoint.set_faults(failed_create=None, throttle=None)
    project.run("destroy", "--yes", "--skip-preview")
    assert project.endpoint.client("eks").list_clusters()["clusters"] == []


@pytest.mark.nightly
def test_look_ups_and_default_tags_and_throttles(project):
    project.endpoint.set_faults(throttle=0.1)
    project.run("up", "--yes", "--skip-preview")
    project.endpoint.set_faults(throttle=None)
    found = json.loads(project.run("stack", "output", "--json").stdout)
    plain = {name: found[name] for name in ("account", "partition", "same")}
    assert plain == {"account": "123456789012", "partition": "aws", "same": True}
    assert found["zones"][0] == "us-west-2a"
    assert found["group"].startswith("sg-")
    assert found["authority"]
    vpc = project.resources()["vpc"]
    assert vpc["outputs"]["tagsAll"] == {"Name": "mine", "team": "ml"}
    (live,) = project.endpoint.client("ec2").describe_vpcs(VpcIds=[vpc["id"]])["Vpcs"]
    assert {tag["Key"]: tag["Value"] for tag in live["Tags"]} == {"Name": "mine", "team": "ml"}
    project.run("refresh", "--yes", "--skip-preview", "--expect-no-changes")
    project.run("destroy", "--yes", "--skip-preview")

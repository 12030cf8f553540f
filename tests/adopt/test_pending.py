"""Resources that a killed `up` may have created are found in the account and added to the state."""

from types import SimpleNamespace

import boto3
import pytest
from botocore.stub import Stubber

from generate.examples import example_stacks
from hpkit.adopt.live_objects import default_egress_rules, unrecorded
from hpkit.adopt.pending import find_ids, is_looked_for, unfinished, with_found
from hpkit.program.recording import record
from hpkit.project import load_stack
from tests.endpoint import running_endpoint
from tests.program.recorder import recorded

PROVIDER = "urn:pulumi:acme-dev::acme::pulumi:providers:aws::aws"
TAGS = {"hpkit:environment": "dev", "Name": "acme-dev"}
# Creating these again is safe, because AWS returns the existing resource.
REPEATED = {
    *("aws:cloudwatch/eventRule:EventRule", "aws:cloudwatch/eventTarget:EventTarget"),
    *("aws:eks/accessPolicyAssociation:AccessPolicyAssociation", "aws:grafana/roleAssociation:RoleAssociation"),
    *("aws:iam/rolePolicy:RolePolicy", "aws:iam/rolePolicyAttachment:RolePolicyAttachment"),
    *("aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration", "aws:s3/bucketObjectv2:BucketObjectv2"),
    *("aws:s3/bucketOwnershipControls:BucketOwnershipControls", "aws:s3/bucketPolicy:BucketPolicy"),
    "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock",
    "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration",
    *("aws:s3/bucketVersioning:BucketVersioning", "aws:sns/topicSubscription:TopicSubscription"),
}


def state(*types, **inputs):
    provider = {"urn": PROVIDER, "type": "pulumi:providers:aws", "id": "1", "custom": True}
    provider["inputs"] = {"defaultTags": '{"tags": {"hpkit:environment": "dev"}}'}
    pending = [
        {"type": "creating", "resource": {"urn": f"urn::{kind}::it", "type": kind, "provider": f"{PROVIDER}::1"}}
        for kind in types
    ]
    for each in pending:
        each["resource"]["inputs"] = inputs
    other = {"type": "updating", "resource": {"urn": "urn::other", "type": types[0]}}
    return {"deployment": {"resources": [provider], "pending_operations": [*pending, other]}}


class Session:
    """A session whose EC2 lists these VPCs, once, for all tags."""

    def __init__(self, *vpcs):
        self._vpcs = [{"VpcId": each} for each in vpcs]

    def client(self, service):
        client = boto3.client(service, region_name="us-west-2", aws_access_key_id="a", aws_secret_access_key="b")  # noqa: S106
        stubber = Stubber(client)
        filters = [{"Name": f"tag:{key}", "Values": [value]} for key, value in sorted(TAGS.items(), reverse=True)]
        stubber.add_response("describe_vpcs", {"Vpcs": self._vpcs}, {"Filters": filters})
        stubber.activate()
        return client


def test_a_named_resource_has_its_id_by_its_inputs_and_a_tagged_one_by_its_tags(monkeypatch):
    monkeypatch.setattr("hpkit.adopt.pending.is_owned", lambda *_: True)
    killed = state("aws:iam/role:Role", "aws:ec2/vpc:Vpc", "aws:s3/bucketVersioning:BucketVersioning", name="nodes")
    for each in killed["deployment"]["pending_operations"][:-1]:
        each["resource"]["inputs"] = {"name": "nodes", "tags": {"Name": "acme-dev"}}
    ids = find_ids(Session("vpc-1"), unfinished(killed), killed)
    assert ids == {"urn::aws:iam/role:Role::it": "nodes", "urn::aws:ec2/vpc:Vpc::it": "vpc-1"}
    repaired = with_found(killed, unfinished(killed), ids, {})["deployment"]
    assert [each.get("id") for each in repaired["resources"]] == ["1", "nodes", "vpc-1"]
    assert repaired["pending_operations"] == []


def test_a_topic_is_found_by_its_name_and_tags(monkeypatch):
    killed = state("aws:sns/topic:Topic", name="acme-dev-alerts", tags={"Name": "acme-dev"})
    tags = [{"Key": key, "Value": value} for key, value in TAGS.items()]
    with running_endpoint() as endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint.url)
        session = boto3.Session("a", "b", region_name="us-west-2")
        assert find_ids(session, unfinished(killed), killed) == {}
        arn = session.client("sns").create_topic(Name="acme-dev-alerts", Tags=tags)["TopicArn"]
        assert find_ids(session, unfinished(killed), killed) == {"urn::aws:sns/topic:Topic::it": arn}


def test_of_two_that_could_be_it_none_is_taken_and_one_of_the_state_is_no_choice():
    killed = state("aws:ec2/vpc:Vpc", tags={"Name": "acme-dev"})
    with pytest.raises(ValueError, match="Vpc it could be any of vpc-1, vpc-2"):
        find_ids(Session("vpc-1", "vpc-2"), unfinished(killed), killed)
    killed["deployment"]["resources"].append({"urn": "urn::1", "type": "aws:ec2/vpc:Vpc", "id": "vpc-1"})
    assert find_ids(Session("vpc-1", "vpc-2"), unfinished(killed), killed) == {"urn::aws:ec2/vpc:Vpc::it": "vpc-2"}


def test_what_a_later_up_made_superfluous_is_deleted_unless_it_could_contain_data():
    killed = state("aws:ec2/vpc:Vpc", "aws:kms/key:Key", tags={"Name": "acme-dev"})
    for operation, id_ in zip(killed["deployment"]["pending_operations"], ("vpc-1", "key-1"), strict=False):
        killed["deployment"]["resources"].append({**operation["resource"], "id": id_})
    creations = unfinished(killed)
    assert [each.recorded_id for each in creations] == ["vpc-1", "key-1"]
    ids = find_ids(Session("vpc-1", "vpc-2"), creations[:1], killed)
    ids["urn::aws:kms/key:Key::it"] = "key-2"
    repaired = with_found(killed, creations, ids, {})["deployment"]
    assert [(each["id"], each.get("delete", False)) for each in repaired["resources"]] == [
        ("1", False),
        ("vpc-1", False),
        ("key-1", False),
        ("vpc-2", True),
    ]


def test_a_creation_that_was_killed_twice_is_one():
    assert len(unfinished(state("aws:ec2/vpc:Vpc", "aws:ec2/vpc:Vpc"))) == 1


def test_tags_of_the_plugin_hyperpod_are_a_list():
    killed = state("hyperpod:index:Cluster", tags=[{"key": "Name", "value": "acme-dev"}])
    assert [creation.tags for creation in unfinished(killed)] == [TAGS]


def test_a_resource_that_no_state_names_is_looked_for_only_where_everything_that_it_uses_is_recorded():
    resources = recorded("handson-dev").resources
    address, vpc, subnet, policy = (
        next(each for each in resources.values() if each.type.endswith(f":{name}"))
        for name in ("Eip", "Vpc", "Subnet", "RolePolicy")
    )
    provider = {"urn": vpc.provider, "type": "pulumi:providers:aws", "id": "1"}
    stack = {"urn": "urn::stack", "type": "pulumi:pulumi:Stack"}
    known = [stack, provider]
    first = unrecorded({"deployment": {"resources": known}}, recorded("handson-dev"))
    urns = {each.urn for each in first}
    assert (address.urn in urns, subnet.urn in urns, policy.urn in urns) == (True, False, False)
    known.append({"urn": vpc.urn, "type": vpc.type, "id": "vpc-7", "outputs": {"arn": "arn:vpc-7"}})
    second = unrecorded({"deployment": {"resources": known}}, recorded("handson-dev"))
    (found,) = (each for each in second if each.urn == subnet.urn)
    assert (found.inputs["vpcId"], found.entry["provider"]) == ("vpc-7", f"{vpc.provider}::1")
    assert vpc.urn not in {each.urn for each in second}
    # If the refresh is interrupted, it is still unfinished.
    repaired = with_found({"deployment": {"resources": known}}, [found], {found.urn: "subnet-7"}, {})
    assert [(each.urn, each.recorded_id) for each in unfinished(repaired)] == [(found.urn, "subnet-7")]


@pytest.mark.parametrize("stack", example_stacks())
def test_every_type_that_an_example_creates_is_looked_for_or_created_again_without_harm(stack):
    (plan,) = load_stack(stack).plans.values()
    types = {each.type for each in record(plan).resources.values() if each.type.startswith("aws:")}
    assert {each for each in types if not is_looked_for(each)} <= REPEATED


def test_the_rule_that_aws_gives_each_new_security_group_is_the_one_of_the_program():
    recording = recorded("startup-dev")
    missing = next(urn for urn in recording.resources if urn.endswith("SecurityGroupEgressRule::nodes-to-anywhere"))
    resources = [
        {"urn": urn, "type": each.type, "id": f"{each.name}-id", "inputs": dict(each.inputs)}
        for urn, each in recording.resources.items()
        if urn != missing
    ]
    rule = {"SecurityGroupRuleId": "sgr-1", "IsEgress": True, "IpProtocol": "-1", "CidrIpv4": "0.0.0.0/0"}
    client = boto3.client("ec2", region_name="us-west-2", aws_access_key_id="a", aws_secret_access_key="b")  # noqa: S106
    stubber = Stubber(client)
    filters = [{"Name": "group-id", "Values": ["nodes-id"]}]
    stubber.add_response("describe_security_group_rules", {"SecurityGroupRules": [rule]}, {"Filters": filters})
    stubber.activate()
    session = SimpleNamespace(client=lambda _: client)
    rules, ids = default_egress_rules(session, {"deployment": {"resources": resources}}, recording)
    assert ids == {missing: "sgr-1"}
    assert [each.urn for each in rules] == [missing]

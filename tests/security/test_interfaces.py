"""What a pod that uses the node's role can do to other network interfaces."""

import json

import pytest

from hpkit.plan.derive import derive
from hpkit.program.recording import record
from tests import builders
from tests.security.evaluation import Request, allows

ANY = "arn:aws:ec2:us-west-2:123456789012:network-interface/eni-0123456789abcdef0"
NODE = "arn:aws:iam::123456789012:role/acme-dev-us-west-2-nodes"
ACTIONS = [
    "AssignPrivateIpAddresses",
    "AttachNetworkInterface",
    "CreateNetworkInterfacePermission",
    "CreateTags",
    "DeleteNetworkInterface",
    "DetachNetworkInterface",
    "ModifyNetworkInterfaceAttribute",
]


@pytest.fixture(scope="module")
def rights():
    found = record(derive(builders.typed(builders.organization()), "dev"))
    vpc = f"arn:aws:ec2:us-west-2:123456789012:vpc/{found.one('ec2/vpc:Vpc').made['id']}"
    return vpc, json.loads(found.one("iam/rolePolicy:RolePolicy", "nodes").inputs["policy"])


@pytest.mark.parametrize("action", ACTIONS)
def test_a_node_cannot_change_interfaces_of_others(rights, action):
    own, document = rights
    others = own.replace("vpc-id", "vpc-0databases")
    assert others != own
    assert allows(Request(NODE, f"ec2:{action}", ANY, {"ec2:Vpc": own}), identity=[document])
    assert not allows(Request(NODE, f"ec2:{action}", ANY, {"ec2:Vpc": others}), identity=[document])


def test_a_node_can_tag_the_interface_that_it_creates(rights):
    new = {"ec2:CreateAction": "CreateNetworkInterface"}
    assert allows(Request(NODE, "ec2:CreateTags", ANY, new), identity=[rights[1]])
    assert not allows(Request(NODE, "ec2:CreateTags", ANY, {"ec2:CreateAction": "RunInstances"}), identity=[rights[1]])

"""Nodes become unreachable when their network loses something that existed when they were created."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def network(cloud: Any) -> dict[str, str]:
    """Give the cloud's subnets what a stack's own network has, and create a cluster there."""
    ec2 = cloud.ec2
    group = cloud.sg
    own = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[own])
    gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=cloud.vpc)
    address = ec2.allocate_address(Domain="vpc")["AllocationId"]
    nat = ec2.create_nat_gateway(SubnetId=cloud.subnets[1], AllocationId=address)["NatGateway"]["NatGatewayId"]
    table = ec2.create_route_table(VpcId=cloud.vpc)["RouteTable"]["RouteTableId"]
    association = ec2.associate_route_table(RouteTableId=table, SubnetId=cloud.subnets[0])["AssociationId"]
    ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", NatGatewayId=nat)
    place = {"Subnets": cloud.subnets[:1], "SecurityGroupIds": [group]}
    cloud.make_cluster(InstanceGroups=[cloud.group(count=2, OverrideVpcConfig=place)])
    return {"group": group, "nat": nat, "table": table, "association": association}


def cut_off(cloud: Any) -> set[str]:
    return set(cloud.endpoint.snapshot().cut_off)


CUTS = {
    "the rule that lets nodes in": lambda ec2, found: ec2.revoke_security_group_ingress(
        GroupId=found["group"],
        IpPermissions=[{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": found["group"]}]}],
    ),
    "the rule that lets nodes out": lambda ec2, found: ec2.revoke_security_group_egress(
        GroupId=found["group"], IpPermissions=[{"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}]
    ),
    "the route": lambda ec2, found: ec2.delete_route(RouteTableId=found["table"], DestinationCidrBlock="0.0.0.0/0"),
    "the association of the route table": lambda ec2, found: ec2.disassociate_route_table(
        AssociationId=found["association"]
    ),
    "the gateway": lambda ec2, found: ec2.delete_nat_gateway(NatGatewayId=found["nat"]),
}


@pytest.mark.parametrize("what", CUTS)
def test_nodes_need(cloud: Any, network: dict[str, str], what: str) -> None:
    assert cut_off(cloud) == set()
    CUTS[what](cloud.ec2, network)
    assert len(cut_off(cloud)) == 2


def test_nodes_come_back_with_their_route(cloud: Any, network: dict[str, str]) -> None:
    cloud.ec2.delete_route(RouteTableId=network["table"], DestinationCidrBlock="0.0.0.0/0")
    assert cut_off(cloud)
    way = {"RouteTableId": network["table"], "NatGatewayId": network["nat"]}
    cloud.ec2.create_route(**way, DestinationCidrBlock="0.0.0.0/0")
    assert cut_off(cloud) == set()


def endpoint(cloud: Any, service: str) -> str:
    made = cloud.ec2.create_vpc_endpoint(
        VpcId=cloud.vpc,
        ServiceName=f"com.amazonaws.us-west-2.{service}",
        VpcEndpointType="Interface",
        SubnetIds=cloud.subnets[1:],
        SecurityGroupIds=[cloud.sg],
    )
    return str(made["VpcEndpoint"]["VpcEndpointId"])


def test_endpoints_may_take_the_place_of_a_route_and_none_that_of_another(cloud: Any, network: dict[str, str]) -> None:
    first, _ = endpoint(cloud, "sts"), endpoint(cloud, "ecr.api")
    cloud.ec2.delete_route(RouteTableId=network["table"], DestinationCidrBlock="0.0.0.0/0")
    assert cut_off(cloud) == set(), "the network is closed now"
    cloud.sm.update_cluster(
        ClusterName="train",
        InstanceGroups=[
            cloud.group(count=3, OverrideVpcConfig=cloud.describe()["InstanceGroups"][0]["OverrideVpcConfig"])
        ],
    )
    cloud.advance(1200)
    cloud.describe()
    cloud.ec2.delete_vpc_endpoints(VpcEndpointIds=[first])
    assert len(cut_off(cloud)) == 1, "the node that came when there was no route needs them all"


def test_what_a_network_never_had_is_not_asked_of_it(cloud: Any) -> None:
    cloud.make_cluster()
    assert cloud.nodes()
    assert cut_off(cloud) == set(), "its ways may be of a kind that this endpoint does not know"

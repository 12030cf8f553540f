"""GuardDuty's resources in a VPC prevent its deletion until the plugin deletes them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from hpkit_local.aws.services.ec2.resources.vpc import RESOURCE_TYPES
from hpkit_local.plugins.aws.calls import Calls, Clients
from hpkit_local.plugins.aws.config import Settings
from hpkit_provider.engine.task import Task

TAGS = [{"Key": "GuardDutyManaged", "Value": "true"}]


@pytest.fixture
def left(cloud: Any) -> dict[str, str]:
    """Create a VPC with a subnet, and the resources that Runtime Monitoring creates in it."""
    vpc = cloud.ec2.create_vpc(CidrBlock="10.7.0.0/16")["Vpc"]["VpcId"]
    subnet = cloud.ec2.create_subnet(VpcId=vpc, CidrBlock="10.7.0.0/24")["Subnet"]["SubnetId"]
    group = cloud.ec2.create_security_group(
        GroupName=f"GuardDutyManagedSecurityGroup-{vpc}",
        Description="Associated with VPC endpoint",
        VpcId=vpc,
        TagSpecifications=[{"ResourceType": "security-group", "Tags": TAGS}],
    )["GroupId"]
    endpoint = cloud.ec2.create_vpc_endpoint(
        VpcId=vpc,
        ServiceName="com.amazonaws.us-west-2.guardduty-data",
        VpcEndpointType="Interface",
        SubnetIds=[subnet],
        SecurityGroupIds=[group],
        TagSpecifications=[{"ResourceType": "vpc-endpoint", "Tags": TAGS}],
    )["VpcEndpoint"]["VpcEndpointId"]
    return {"vpc": vpc, "subnet": subnet, "group": group, "endpoint": endpoint}


def test_a_subnet_a_group_and_a_vpc_stay_while_an_endpoint_is_in_them(
    cloud: Any, left: dict[str, str], refused: Callable[..., str]
) -> None:
    subnet = refused("DependencyViolation", cloud.ec2.delete_subnet, SubnetId=left["subnet"])
    assert subnet == f"The subnet '{left['subnet']}' has dependencies and cannot be deleted."
    group = refused("DependencyViolation", cloud.ec2.delete_security_group, GroupId=left["group"])
    assert group == f"resource {left['group']} has a dependent object"
    cloud.ec2.modify_vpc_endpoint(VpcEndpointId=left["endpoint"], RemoveSubnetIds=[left["subnet"]])
    cloud.ec2.delete_subnet(SubnetId=left["subnet"])
    vpc = refused("DependencyViolation", cloud.ec2.delete_vpc, VpcId=left["vpc"])
    assert vpc == f"The vpc '{left['vpc']}' has dependencies and cannot be deleted."
    cloud.ec2.delete_vpc_endpoints(VpcEndpointIds=[left["endpoint"]])
    assert refused("DependencyViolation", cloud.ec2.delete_vpc, VpcId=left["vpc"]) == vpc, "the group is left"
    cloud.ec2.delete_security_group(GroupId=left["group"])
    cloud.ec2.delete_vpc(VpcId=left["vpc"])


def test_the_plugin_takes_away_what_guardduty_left_and_nothing_else(
    cloud: Any, left: dict[str, str], refused: Callable[..., str]
) -> None:
    resource_types = {each.token: each for each in RESOURCE_TYPES}

    def delete(token: str, resource: str) -> None:
        resource_type = resource_types[token]
        task = Task("urn", 5.0, threading.Event())
        clients = Clients(Settings(cloud.endpoint.url, "us-west-2"), task.cancel)
        call = Calls(clients, task, service="ec2", region="us-west-2", allowed=resource_type.allowed, owner=token)
        assert resource_type.delete is not None
        resource_type.delete(call, resource, {"vpcId": left["vpc"]})

    delete("aws:ec2/subnet:Subnet", left["subnet"])
    delete("aws:ec2/vpc:Vpc", left["vpc"])
    refused("InvalidVpcID.NotFound", cloud.ec2.describe_vpcs, VpcIds=[left["vpc"]])
    refused("InvalidGroup.NotFound", cloud.ec2.describe_security_groups, GroupIds=[left["group"]])
    assert cloud.ec2.describe_vpcs(VpcIds=[cloud.vpc])["Vpcs"], "another VPC stays"


def test_an_unknown_endpoint_service_is_refused_by_name_and_left_out_by_filter(cloud: Any):
    names = ["com.amazonaws.us-west-2.none", "com.amazonaws.us-west-2.s3"]
    with pytest.raises(cloud.ec2.exceptions.ClientError, match="InvalidServiceName"):
        cloud.ec2.describe_vpc_endpoint_services(ServiceNames=names)
    found = cloud.ec2.describe_vpc_endpoint_services(Filters=[{"Name": "service-name", "Values": names}])
    kinds = [each["ServiceType"][0]["ServiceType"] for each in found["ServiceDetails"]]
    assert (set(found["ServiceNames"]), sorted(kinds)) == ({names[1]}, ["Gateway", "Interface"])

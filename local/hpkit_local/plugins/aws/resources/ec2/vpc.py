"""Amazon VPC: the network itself, its address ranges, its subnets and its endpoints."""

from typing import Any, Final

from hpkit_local.plugins.aws.calls import Calls, Retry, until
from hpkit_local.plugins.aws.resource_type import Function, PlannedUpdate, ResourceType, properties
from hpkit_local.plugins.aws.shapes import (
    arn,
    change_tags,
    creating,
    describe_one,
    in_specification,
    listed,
    reading,
    settled,
)
from hpkit_provider.engine.errors import PluginError
from hpkit_provider.engine.values import Props

__all__ = ["FUNCTIONS", "RESOURCE_TYPES"]

_ATTRIBUTES = {"enableDnsSupport": "EnableDnsSupport", "enableDnsHostnames": "EnableDnsHostnames"}
_SUBNET = "cidrBlock availabilityZone availabilityZoneId"
_ENDPOINT = "vpcId serviceName vpcEndpointType policy=PolicyDocument"
_SETS = {"subnetIds": "SubnetIds", "routeTableIds": "RouteTableIds", "securityGroupIds": "SecurityGroupIds"}


def _read_vpc(call: Calls, vpc: str, _entry: dict[str, Any]) -> Props:
    mine = [{"Name": "vpc-id", "Values": [vpc]}]
    main = call("DescribeRouteTables", Filters=[*mine, {"Name": "association.main", "Values": ["true"]}])["RouteTables"]
    acls = call("DescribeNetworkAcls", Filters=[*mine, {"Name": "default", "Values": ["true"]}])["NetworkAcls"]
    groups = call("DescribeSecurityGroups", Filters=[*mine, {"Name": "group-name", "Values": ["default"]}])
    table = main[0]["RouteTableId"] if main else None
    return {
        "mainRouteTableId": table,
        "defaultRouteTableId": table,
        "defaultNetworkAclId": acls[0]["NetworkAclId"] if acls else None,
        "defaultSecurityGroupId": next((group["GroupId"] for group in groups["SecurityGroups"]), None),
        **{
            name: call("DescribeVpcAttribute", VpcId=vpc, Attribute=name)[member]["Value"]
            for name, member in _ATTRIBUTES.items()
        },
    }


def _update_vpc(call: Calls, vpc: str, change: PlannedUpdate) -> None:
    # One attribute per call, as the API requires; DNS names require DNS support, so that comes first.
    for name, member in _ATTRIBUTES.items():
        if name in change:
            call("ModifyVpcAttribute", VpcId=vpc, **{member: {"Value": change.new[name]}})


# The tag of resources that GuardDuty's Runtime Monitoring creates in a VPC and leaves there.
_BY_GUARDDUTY: Final = {"Name": "tag:GuardDutyManaged", "Values": ["true"]}


def _of_guardduty(call: Calls, **filters: str) -> list[dict[str, Any]]:
    """Return GuardDuty's endpoints in a VPC: the real provider deletes them if they block the VPC's deletion.

    Source: hashicorp/terraform-provider-aws pull request 46953, which the pinned pulumi-aws has: the pages of its
    aws.ec2.Vpc and aws.ec2.Subnet.
    """
    chosen = [_BY_GUARDDUTY, *({"Name": name.replace("_", "-"), "Values": [value]} for name, value in filters.items())]
    answer = call("DescribeVpcEndpoints", Filters=chosen)["VpcEndpoints"]
    return [each for each in answer if "guardduty-data" in each["ServiceName"] and each["State"] != "deleted"]


def _delete_vpc(call: Calls, vpc: str, _state: Props) -> None:
    endpoints = [each["VpcEndpointId"] for each in _of_guardduty(call, vpc_id=vpc)]
    if endpoints:
        call("DeleteVpcEndpoints", VpcEndpointIds=endpoints)
    named = {"Name": "group-name", "Values": [f"GuardDutyManagedSecurityGroup-{vpc}"]}
    groups = call("DescribeSecurityGroups", Filters=[_BY_GUARDDUTY, named])["SecurityGroups"]
    for group in groups:
        call.find("DeleteSecurityGroup", GroupId=group["GroupId"])
    call.find("DeleteVpc", VpcId=vpc)


def _settle_range(call: Calls, _association: str, _change: PlannedUpdate) -> None:
    call.settle(10.0)  # terraform-provider-aws 6.58.0, ec2/waitVPCCIDRBlockAssociationCreated


def _read_range(call: Calls, association: str, _recorded: Props) -> Props | None:
    chosen = [{"Name": "cidr-block-association.association-id", "Values": [association]}]
    entry = describe_one(call, "DescribeVpcs", "Vpcs", Filters=chosen)
    ranges = entry["CidrBlockAssociationSet"] if entry else []
    for one in ranges:
        if one["AssociationId"] == association and one["CidrBlockState"]["State"] in ("associating", "associated"):
            return {"vpcId": entry["VpcId"] if entry else None, "cidrBlock": one["CidrBlock"]}
    return None


def _delete_range(call: Calls, association: str, _state: Props) -> None:
    if call.find("DisassociateVpcCidrBlock", AssociationId=association) is not None:
        call.settle(10.0)  # ec2/waitVPCCIDRBlockAssociationDeleted


def _update_subnet(call: Calls, subnet: str, change: PlannedUpdate) -> None:
    if "mapPublicIpOnLaunch" in change:
        value = change.new["mapPublicIpOnLaunch"]
        call("ModifySubnetAttribute", SubnetId=subnet, MapPublicIpOnLaunch={"Value": value})
        call.settle(10.0)  # terraform-provider-aws 6.58.0, ec2/waitSubnetMapPublicIPOnLaunchUpdated


def _delete_subnet(call: Calls, subnet: str, state: Props) -> None:
    for endpoint in _of_guardduty(call, vpc_id=str(state["vpcId"])):
        if subnet in endpoint["SubnetIds"]:
            call("ModifyVpcEndpoint", VpcEndpointId=endpoint["VpcEndpointId"], RemoveSubnetIds=[subnet])
    call.find("DeleteSubnet", SubnetId=subnet)


def _zones(call: Calls, args: Props) -> Props:
    state = [{"Name": "state", "Values": [args["state"]]}] if args.get("state") else []
    filters = [*state, *({"Name": each["name"], "Values": each["values"]} for each in args.get("filters", []))]
    answer = call("DescribeAvailabilityZones", Filters=filters or None)["AvailabilityZones"]
    left_out = {*args.get("excludeNames", []), *args.get("excludeZoneIds", [])}
    zones = [zone for zone in answer if not left_out & {zone["ZoneName"], zone["ZoneId"]}]
    zones.sort(key=lambda zone: zone["ZoneName"])
    names, ids = [zone["ZoneName"] for zone in zones], [zone["ZoneId"] for zone in zones]
    return {"id": call.region, "names": names, "zoneIds": ids, "groupNames": [call.region]}


_endpoint = listed("DescribeVpcEndpoints", "VpcEndpoints", "VpcEndpointIds")


def _read_endpoint(_call: Calls, _id: str, entry: dict[str, Any]) -> Props:
    return {
        "privateDnsEnabled": entry.get("PrivateDnsEnabled", False),
        **{name: entry.get(member, []) for name, member in _SETS.items()},
        "securityGroupIds": [group["GroupId"] for group in entry.get("Groups", [])],
        "networkInterfaceIds": entry.get("NetworkInterfaceIds", []),
        "dnsEntries": [
            {"dnsName": name["DnsName"], "hostedZoneId": name.get("HostedZoneId", "")}
            for name in entry.get("DnsEntries", [])
        ],
    }


def _update_endpoint(call: Calls, endpoint: str, change: PlannedUpdate) -> None:
    request: dict[str, Any] = {}
    for name, member in _SETS.items():
        before, after = set(change.old.get(name) or []), set(change.new.get(name) or [])
        if name in change:
            request[f"Add{member}"] = sorted(after - before) or None
            request[f"Remove{member}"] = sorted(before - after) or None
    if "policy" in change:
        policy = change.new.get("policy")
        request |= {"PolicyDocument": policy} if policy else {"ResetPolicy": True}
    if "privateDnsEnabled" in change:
        request["PrivateDnsEnabled"] = change.new["privateDnsEnabled"]
    call("ModifyVpcEndpoint", VpcEndpointId=endpoint, **request)


def _delete_endpoint(call: Calls, endpoint: str, _state: Props) -> None:
    answer = call.find("DeleteVpcEndpoints", VpcEndpointIds=[endpoint])
    # The operation succeeds even if it deletes nothing (terraform-provider-aws 6.58.0, ec2/resourceVPCEndpointDelete).
    for failed in (answer or {}).get("Unsuccessful", ()):
        if "NotFound" not in failed["Error"]["Code"]:
            raise PluginError(f"DeleteVpcEndpoints: {failed['Error']['Code']}: {failed['Error']['Message']}")
    until(call, lambda: _endpoint(call, endpoint), status=lambda entry: entry["State"], until_gone=True, delay=10.0)


RESOURCE_TYPES: Final = (
    ResourceType(
        "aws:ec2/vpc:Vpc",
        props=properties("cidrBlock enableDnsSupport:boolean enableDnsHostnames:boolean instanceTenancy"),
        create=creating("CreateVpc", "cidrBlock instanceTenancy", made="Vpc.VpcId", tags=in_specification("vpc")),
        read=reading(
            listed("DescribeVpcs", "Vpcs", "VpcIds"),
            "ownerId cidrBlock instanceTenancy dhcpOptionsId",
            arn("vpc", _read_vpc),
        ),
        update=_update_vpc,
        later=("enableDnsSupport", "enableDnsHostnames"),
        delete=_delete_vpc,
        outputs=(
            "arn",
            "ownerId",
            "dhcpOptionsId",
            "mainRouteTableId",
            "defaultRouteTableId",
            "defaultNetworkAclId",
            "defaultSecurityGroupId",
        ),
        tagging=change_tags,
        retries={"DeleteVpc": Retry(1200.0, ("DependencyViolation",))},
    ),
    ResourceType(
        "aws:ec2/vpcIpv4CidrBlockAssociation:VpcIpv4CidrBlockAssociation",
        props=properties("vpcId! cidrBlock"),
        create=creating("AssociateVpcCidrBlock", "vpcId cidrBlock", made="CidrBlockAssociation.AssociationId"),
        wait=_settle_range,
        read=_read_range,
        delete=_delete_range,
        minutes=(10, 20, 10),
    ),
    ResourceType(
        "aws:ec2/subnet:Subnet",
        props=properties(f"vpcId! {_SUBNET} mapPublicIpOnLaunch:boolean"),
        create=creating("CreateSubnet", f"vpcId {_SUBNET}", made="Subnet.SubnetId", tags=in_specification("subnet")),
        read=reading(
            listed("DescribeSubnets", "Subnets", "SubnetIds"),
            f"vpcId {_SUBNET} mapPublicIpOnLaunch arn=SubnetArn ownerId",
        ),
        update=_update_subnet,
        later=("mapPublicIpOnLaunch",),
        delete=_delete_subnet,
        outputs=("arn", "ownerId"),
        tagging=change_tags,
        minutes=(10, 20, 20),
        retries={"DeleteSubnet": Retry(1200.0, ("DependencyViolation",))},
    ),
    ResourceType(
        "aws:ec2/vpcEndpoint:VpcEndpoint",
        props=properties(
            "vpcId! serviceName! vpcEndpointType policy:policy privateDnsEnabled:boolean "
            "subnetIds:list routeTableIds:list securityGroupIds:list"
        ),
        create=creating(
            "CreateVpcEndpoint",
            f"{_ENDPOINT} privateDnsEnabled subnetIds routeTableIds securityGroupIds",
            made="VpcEndpoint.VpcEndpointId",
            tags=in_specification("vpc-endpoint"),
        ),
        read=reading(_endpoint, f"{_ENDPOINT} ownerId state", arn("vpc-endpoint", _read_endpoint)),
        update=_update_endpoint,
        wait=settled(
            _endpoint,
            ["available", "Available", "pendingAcceptance", "PendingAcceptance"],
            ["failed", "Failed", "rejected", "Rejected", "expired", "Expired"],
            delay=5.0,
        ),
        delete=_delete_endpoint,
        outputs=("arn", "ownerId", "state", "networkInterfaceIds", "dnsEntries"),
        tagging=change_tags,
        minutes=(10, 10, 10),
    ),
)

FUNCTIONS: Final = (
    Function(
        "aws:index/getAvailabilityZones:getAvailabilityZones",
        "ec2",
        ("state", "excludeNames", "excludeZoneIds", "filters"),
        "DescribeAvailabilityZones",
        _zones,
    ),
)

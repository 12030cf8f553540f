"""The functions that look up regions, zones, VPCs, subnets and route tables."""

from __future__ import annotations

from typing import Any, Final

from hpkit_local.plugins.aws.calls import Calls
from hpkit_local.plugins.aws.function import Function
from hpkit_local.plugins.aws.shapes import tag_map
from hpkit_provider.engine.errors import PluginError
from hpkit_provider.engine.values import Props

__all__ = ["FUNCTIONS"]

_FILTERS: Final = {
    "vpcId": "vpc-id",
    "cidrBlock": "cidr-block",
    "availabilityZone": "availability-zone",
    "availabilityZoneId": "availability-zone-id",
    "state": "state",
}
_SUBNET_ARGS = ("id", "vpcId", "cidrBlock", "availabilityZone", "availabilityZoneId", "state", "tags", "filters")
_ZONE_ARGS = ("state", "excludeNames", "excludeZoneIds", "filters")


def _region(call: Calls, args: Props) -> Props:
    region = args.get("name") or call.region
    (found,) = call("DescribeRegions", RegionNames=[region])["Regions"]
    return {"id": region, "name": region, "region": region, "endpoint": found["Endpoint"], "description": region}


def _zones(call: Calls, args: Props) -> Props:
    answer = call("DescribeAvailabilityZones", Filters=_filters(args, ("state",)))["AvailabilityZones"]
    left_out = {*args.get("excludeNames", []), *args.get("excludeZoneIds", [])}
    zones = [zone for zone in answer if not left_out & {zone["ZoneName"], zone["ZoneId"]}]
    zones.sort(key=lambda zone: zone["ZoneName"])
    names, ids = [zone["ZoneName"] for zone in zones], [zone["ZoneId"] for zone in zones]
    return {"id": call.region, "names": names, "zoneIds": ids, "groupNames": [call.region]}


def _filters(args: Props, names: tuple[str, ...]) -> list[dict[str, Any]] | None:
    stated = [{"Name": _FILTERS[name], "Values": [args[name]]} for name in names if args.get(name)]
    tagged = [{"Name": f"tag:{key}", "Values": [value]} for key, value in args.get("tags", {}).items()]
    free = [{"Name": each["name"], "Values": each["values"]} for each in args.get("filters", [])]
    return [*stated, *tagged, *free] or None


def _one(found: list[dict[str, Any]], what: str, args: Props) -> dict[str, Any]:
    if len(found) != 1:
        raise PluginError(f"{len(found)} {what} match {args}; exactly one must: state its id, or narrower filters.")
    return found[0]


def _vpc(call: Calls, args: Props) -> Props:
    ids = [args["id"]] if args.get("id") else None
    answer = call("DescribeVpcs", VpcIds=ids, Filters=_filters(args, ("cidrBlock", "state")))
    vpc = _one(answer["Vpcs"], "VPCs", args)
    return {
        "id": vpc["VpcId"],
        "arn": f"arn:aws:ec2:{call.region}:{vpc['OwnerId']}:vpc/{vpc['VpcId']}",
        "ownerId": vpc["OwnerId"],
        "cidrBlock": vpc["CidrBlock"],
        "cidrBlockAssociations": [
            {"associationId": each["AssociationId"], "cidrBlock": each["CidrBlock"], "state": "associated"}
            for each in vpc["CidrBlockAssociationSet"]
        ],
        "default": vpc["IsDefault"],
        "dhcpOptionsId": vpc.get("DhcpOptionsId", ""),
        "instanceTenancy": vpc["InstanceTenancy"],
        "state": vpc["State"],
        "tags": tag_map(vpc.get("Tags")),
    }


def _subnet(call: Calls, args: Props) -> Props:
    ids = [args["id"]] if args.get("id") else None
    names = ("vpcId", "cidrBlock", "availabilityZone", "availabilityZoneId", "state")
    answer = call("DescribeSubnets", SubnetIds=ids, Filters=_filters(args, names))
    subnet = _one(answer["Subnets"], "subnets", args)
    return {
        "id": subnet["SubnetId"],
        "arn": subnet["SubnetArn"],
        "ownerId": subnet["OwnerId"],
        "vpcId": subnet["VpcId"],
        "cidrBlock": subnet["CidrBlock"],
        "availabilityZone": subnet["AvailabilityZone"],
        "availabilityZoneId": subnet["AvailabilityZoneId"],
        "availableIpAddressCount": subnet["AvailableIpAddressCount"],
        "defaultForAz": subnet["DefaultForAz"],
        "mapPublicIpOnLaunch": subnet["MapPublicIpOnLaunch"],
        "state": subnet["State"],
        "tags": tag_map(subnet.get("Tags")),
    }


def _subnets(call: Calls, args: Props) -> Props:
    found = call("DescribeSubnets", Filters=_filters(args, ()))["Subnets"]
    return {"id": call.region, "ids": sorted(each["SubnetId"] for each in found)}


def _tables(call: Calls, args: Props) -> Props:
    found = call("DescribeRouteTables", Filters=_filters(args, ("vpcId",)))["RouteTables"]
    return {"id": call.region, "ids": sorted(each["RouteTableId"] for each in found)}


FUNCTIONS: Final = (
    Function("aws:index/getRegion:getRegion", "ec2", ("name",), "DescribeRegions", _region),
    Function(
        "aws:index/getAvailabilityZones:getAvailabilityZones",
        "ec2",
        _ZONE_ARGS,
        "DescribeAvailabilityZones",
        _zones,
    ),
    Function("aws:ec2/getVpc:getVpc", "ec2", ("id", "cidrBlock", "state", "tags", "filters"), "DescribeVpcs", _vpc),
    Function("aws:ec2/getSubnet:getSubnet", "ec2", _SUBNET_ARGS, "DescribeSubnets", _subnet),
    Function("aws:ec2/getSubnets:getSubnets", "ec2", ("tags", "filters"), "DescribeSubnets", _subnets),
    Function(
        "aws:ec2/getRouteTables:getRouteTables",
        "ec2",
        ("vpcId", "tags", "filters"),
        "DescribeRouteTables",
        _tables,
    ),
)

"""The functions that programs call to look things up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from hpkit_local.plugins.aws.calls import Calls
from hpkit_local.plugins.aws.policy_document import policy_document
from hpkit_local.plugins.aws.services.eks import stamp
from hpkit_local.plugins.aws.shapes import tag_map
from hpkit_provider.engine.errors import PluginError
from hpkit_provider.engine.values import Props

__all__ = ["FUNCTIONS", "Function"]

_FILTERS: Final = {
    "vpcId": "vpc-id",
    "cidrBlock": "cidr-block",
    "availabilityZone": "availability-zone",
    "availabilityZoneId": "availability-zone-id",
    "state": "state",
}


@dataclass(frozen=True)
class Function:
    """One function: what it takes, its calls, and its answer to arguments."""

    token: str
    service: str
    takes: tuple[str, ...]
    calls: str
    answer: Callable[[Calls, Props], Props]


def _caller(call: Calls, _args: Props) -> Props:
    answer = call("GetCallerIdentity")
    account = answer["Account"]
    return {"id": account, "accountId": account, "arn": answer["Arn"], "userId": answer["UserId"]}


def _partition(_call: Calls, _args: Props) -> Props:
    return {"id": "aws", "partition": "aws", "dnsSuffix": "amazonaws.com", "reverseDnsPrefix": "com.amazonaws"}


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


def _cluster(call: Calls, args: Props) -> Props:
    cluster = call("DescribeCluster", name=args["name"])["cluster"]
    logging = cluster.get("logging", {}).get("clusterLogging", [])
    plain = ("arn", "endpoint", "name", "platformVersion", "roleArn", "status", "version", "deletionProtection")
    lists = {
        "accessConfigs": "accessConfig",
        "certificateAuthorities": "certificateAuthority",
        "kubernetesNetworkConfigs": "kubernetesNetworkConfig",
        "upgradePolicies": "upgradePolicy",
    }
    return {
        "id": cluster["name"],
        "clusterId": "",
        **{name: cluster.get(name) for name in plain},
        **{name: [cluster[member]] for name, member in lists.items() if member in cluster},
        "createdAt": stamp(cluster["createdAt"]),
        "enabledClusterLogTypes": [kind for row in logging if row["enabled"] for kind in row["types"]],
        "identities": [{"oidcs": [cluster["identity"]["oidc"]]}],
        "vpcConfig": cluster["resourcesVpcConfig"],
        "tags": cluster.get("tags", {}),
    }


def _addon_version(call: Calls, args: Props) -> Props:
    which = {"addonName": args["addonName"], "kubernetesVersion": args["kubernetesVersion"]}
    for addon in call.pages("DescribeAddonVersions", "addons", **which):
        for version in addon["addonVersions"]:
            default = any(each.get("defaultVersion") for each in version["compatibilities"])
            if args.get("mostRecent") or default:  # the newest comes first
                return {"id": args["addonName"], "version": version["addonVersion"]}
    raise PluginError(f"There is no version of {args['addonName']} for Kubernetes {args['kubernetesVersion']}.")


def _log_groups(call: Calls, args: Props) -> Props:
    found = list(call.pages("DescribeLogGroups", "logGroups", logGroupNamePrefix=args.get("logGroupNamePrefix")))
    return {
        "id": call.region,
        "arns": [str(each["arn"]).removesuffix(":*") for each in found],
        "logGroupNames": [each["logGroupName"] for each in found],
        "logGroupNamePrefix": args.get("logGroupNamePrefix"),
    }


def _document(_call: Calls, args: Props) -> Props:
    return policy_document(args)


_SUBNET_ARGS = ("id", "vpcId", "cidrBlock", "availabilityZone", "availabilityZoneId", "state", "tags", "filters")
_ZONE_ARGS = ("state", "excludeNames", "excludeZoneIds", "filters")
_POLICY_ARGS = ("policyId", "version", "statements", "sourcePolicyDocuments", "overridePolicyDocuments")

FUNCTIONS: Final[dict[str, Function]] = {
    function.token: function
    for function in (
        Function("aws:index/getCallerIdentity:getCallerIdentity", "sts", (), "GetCallerIdentity", _caller),
        Function("aws:index/getPartition:getPartition", "sts", (), "", _partition),
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
        Function("aws:eks/getCluster:getCluster", "eks", ("name", "tags"), "DescribeCluster", _cluster),
        Function(
            "aws:eks/getAddonVersion:getAddonVersion",
            "eks",
            ("addonName", "kubernetesVersion", "mostRecent"),
            "DescribeAddonVersions",
            _addon_version,
        ),
        Function(
            "aws:cloudwatch/getLogGroups:getLogGroups",
            "logs",
            ("logGroupNamePrefix",),
            "DescribeLogGroups",
            _log_groups,
        ),
        Function("aws:iam/getPolicyDocument:getPolicyDocument", "iam", _POLICY_ARGS, "", _document),
    )
}

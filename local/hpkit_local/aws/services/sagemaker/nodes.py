"""DescribeClusterNode and ListClusterNodes, and what controllers read of HyperPod.

What nodes can reach, and what can reach them: rules of security groups, routes and endpoints of subnets. A node begins
with the reach of its network, parts of which this endpoint might not know. Once it loses a part, it's cut off: its
kubelet reaches neither the API server nor AWS, and its pods stop working.

Sources: Amazon EKS user guide, security group requirements and private clusters; SageMaker HyperPod developer guide,
EKS prerequisites.
"""

from collections.abc import Collection, Iterator
from typing import Any

from hpkit_local.aws.api import given, operation, page, part
from hpkit_local.aws.backend import Context, Record
from hpkit_local.aws.controllers import Snapshot
from hpkit_local.aws.errors import ServiceError
from hpkit_local.aws.services.ec2.rules import require_subnet
from hpkit_local.aws.services.sagemaker.governance import POLICY, document
from hpkit_local.aws.services.sagemaker.quota import QUOTA
from hpkit_local.aws.services.sagemaker.records import describe, is_in_period, kubernetes_details, require

__all__ = ["node_details", "reach_of"]


def node_details(cluster: Record, node: Record) -> Record:
    """One node as DescribeClusterNode shows it."""
    spec = cluster["groups"][node["group"]]["spec"]
    details: Record = {
        "InstanceGroupName": node["group"],
        "InstanceId": node["id"],
        "NodeLogicalId": node["logical"],
        "InstanceStatus": _status(node),
        "InstanceType": node["type"],
        "LaunchTime": node["launched"],
        "PrivatePrimaryIp": node["ip"],
        "PrivateDnsHostname": _hostname(cluster, node),
        "Placement": {"AvailabilityZone": node["zone"], "AvailabilityZoneId": node["zone_id"]},
        "CurrentImageReleaseVersion": node["release"],
        "DesiredImageReleaseVersion": node["release"],
        "ImageVersionStatus": "UpToDate",
        "CapacityType": "Spot" if "Spot" in spec.get("CapacityRequirements", {}) else "OnDemand",
    }
    details.update(given(spec, "LifeCycleConfig", "OverrideVpcConfig", "ThreadsPerCore", "InstanceStorageConfigs"))
    if "KubernetesConfig" in spec:
        details["KubernetesConfig"] = kubernetes_details(spec["KubernetesConfig"])
    if "updated" in node:
        details["LastSoftwareUpdateTime"] = node["updated"]
    return details


def _status(node: Record) -> Record:
    return {"Status": node["status"], **({"Message": node["message"]} if node["message"] else {})}


def _hostname(cluster: Record, node: Record) -> str:
    region = cluster["arn"].split(":")[3]
    domain = "ec2.internal" if region == "us-east-1" else f"{region}.compute.internal"
    return f"ip-{node['ip'].replace('.', '-')}.{domain}"


# Source: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_DescribeClusterNode.html
@operation("sagemaker", "DescribeClusterNode")
def describe_cluster_node(ctx: Context, params: Record) -> Record:
    """One node by instance id or by logical id."""
    cluster = require(ctx, params["ClusterName"])
    if ("NodeId" in params) == ("NodeLogicalId" in params):
        raise ServiceError("ValidationException", "Give exactly one of NodeId and NodeLogicalId")
    identifier = params.get("NodeId") or params.get("NodeLogicalId")
    for node in cluster["nodes"].values():
        if identifier in (node["id"], node["logical"]):
            return {"NodeDetails": node_details(cluster, node)}
    raise ServiceError("ResourceNotFound", f"Node '{identifier}' of cluster '{cluster['name']}' not found")


@operation("sagemaker", "ListClusterNodes")
def list_cluster_nodes(ctx: Context, params: Record) -> Record:
    """Summaries of nodes, filtered, sorted and in pages."""
    cluster = require(ctx, params["ClusterName"])
    matching = [
        node
        for node in cluster["nodes"].values()
        if params.get("InstanceGroupNameContains", "") in node["group"]
        and is_in_period(node["launched"], params, "CreationTime")
    ]
    key = "group" if params.get("SortBy") == "NAME" else "launched"
    matching.sort(key=lambda node: node[key], reverse=params.get("SortOrder") == "Descending")
    logical = bool(params.get("IncludeNodeLogicalIds"))
    summaries = [_summary(cluster, node, logical=logical) for node in matching]
    return page("ClusterNodeSummaries", summaries, params, default=10)


def _summary(cluster: Record, node: Record, *, logical: bool) -> Record:
    summary: Record = {
        "InstanceGroupName": node["group"],
        "InstanceId": node["id"],
        "InstanceType": node["type"],
        "LaunchTime": node["launched"],
        "InstanceStatus": _status(node),
        "PrivateDnsHostname": _hostname(cluster, node),
        "CurrentImageReleaseVersion": node["release"],
        "ImageVersionStatus": "UpToDate",
    }
    if logical:
        summary["NodeLogicalId"] = node["logical"]
    if "updated" in node:
        summary["LastSoftwareUpdateTime"] = node["updated"]
    return summary


# No node in a closed network works without these; calls to other missing ones fail.
_NEEDED = {"ec2", "ecr.api", "ecr.dkr", "eks", "sts"}
_WAYS = ("gateway", "instance", "nat_gateway", "transit_gateway", "interface", "vpc_pcx", "carrier_gateway")


def reach_of(ctx: Context, subnet_id: str, group_ids: Collection[str]) -> Record:
    """Return what a node in a subnet with these security groups reaches: rules, a route out, endpoints."""
    ec2 = ctx.backend.moto.backend("ec2", ctx.region)
    vpc = next((subnets[subnet_id].vpc_id for subnets in ec2.subnets.values() if subnet_id in subnets), None)
    groups = [group for members in ec2.groups.values() for id_, group in members.items() if id_ in group_ids]
    egress = [rule for group in groups for rule in group.egress_rules]
    return {
        "inbound": any(group.ingress_rules for group in groups),
        "outbound": bool(egress),
        "beyond": any(_leads_out(rule, group_ids) for rule in egress),
        "routed": any(_is_way(ec2, route) for route in _routes(ec2, vpc, subnet_id)),
        "endpoints": sorted(_NEEDED & _services(ec2, vpc)),
    }


def is_cut_off(before: Record, now: Record) -> bool:
    """Return whether a node that began with one reach can't work with another."""
    if any(before[name] and not now[name] for name in ("inbound", "outbound", "beyond")):
        return True
    if now["routed"] or not (before["routed"] or before["endpoints"]):
        return False
    # Endpoints may take the place of a route out, none of them that of another.
    return not now["endpoints"] or not set(before["endpoints"]) <= set(now["endpoints"])


def _services(ec2: Any, vpc: str | None) -> set[str]:
    """Return the services with an interface endpoint in a VPC, by the end of its name."""
    found = [each for each in ec2.vpc_end_points.values() if each.vpc_id == vpc and each.state == "available"]
    return {each.service_name.split(".", 3)[-1] for each in found if each.vpc_endpoint_type == "Interface"}


def _leads_out(rule: Any, group_ids: Collection[str]) -> bool:
    """Return whether a rule allows outbound traffic beyond the group itself."""
    to_group = (rule.source_group or {}).get("GroupId")
    return bool(rule.ip_range or rule.prefix_list_id) or (to_group is not None and to_group not in group_ids)


def _routes(ec2: Any, vpc: str | None, subnet_id: str) -> list[Any]:
    """Return the routes of a subnet: from its route table, or from the main one of its VPC."""
    tables = [table for table in ec2.route_tables.values() if table.vpc_id == vpc]
    own = [table for table in tables if any(each.get("SubnetId") == subnet_id for each in table.associations)]
    main = [table for table in tables if any(each.get("Main") for each in table.associations)]
    return [route for table in (own or main) for route in table.routes]


def _is_way(ec2: Any, route: Any) -> bool:
    """Return whether a route leads out of the VPC, through an existing gateway or peer."""
    if route.nat_gateway is not None:
        found = ec2.nat_gateways.get(route.nat_gateway.id)
        return found is not None and found.state == "available"
    return not route.local and any(getattr(route, way) is not None for way in _WAYS)


@part
def _add(snapshot: Snapshot, ctx: Context) -> None:
    for name, cluster in ctx.table("clusters").items():
        if cluster["served"]:
            snapshot.clusters[name] = describe(cluster)
            snapshot.nodes[name] = [node_details(cluster, node) for node in cluster["nodes"].values()]
            _add_subnets(snapshot, ctx, cluster)
            snapshot.cut_off.update(_cut_off(ctx, cluster))
            snapshot.joining.update(node["id"] for node in cluster["nodes"].values() if "joined" in node)
    quotas, policies = _in_force(ctx, "quotas"), _in_force(ctx, "policies")
    snapshot.quotas.update({entry["id"]: document(entry, QUOTA, version=number) for entry, number in quotas})
    snapshot.policies.update({entry["id"]: document(entry, POLICY, version=number) for entry, number in policies})


def _in_force(ctx: Context, table: str) -> list[tuple[Record, int]]:
    """Return quotas or policies with the version that is in force."""
    made = [entry for entry in ctx.table(table).values() if entry["status"] not in ("Creating", "CreateFailed")]
    return [(entry, _version(entry)) for entry in made]


def _version(entry: Record) -> int:
    number = int(entry["version"])
    return number - 1 if entry["status"] in ("Updating", "UpdateFailed") and number > 1 else number


def _add_subnets(snapshot: Snapshot, ctx: Context, cluster: Record) -> None:
    configs = [cluster["settings"].get("VpcConfig", {})]
    configs += [group["spec"].get("OverrideVpcConfig", {}) for group in cluster["groups"].values()]
    for subnet_id in {subnet for config in configs for subnet in config.get("Subnets", [])}:
        try:
            subnet = require_subnet(ctx, subnet_id)
        except ServiceError:
            continue
        snapshot.subnets[subnet_id] = {"zone": subnet.zone, "zoneId": subnet.zone_id}


def _cut_off(ctx: Context, cluster: Record) -> Iterator[str]:
    """Yield the instances that lost what they need from their network; instances in older records aren't checked."""
    reaches: dict[tuple[str, ...], Record] = {}
    for node in cluster["nodes"].values():
        if "reach" not in node:
            continue
        place = (node["subnet"], *node["security_groups"])
        if place not in reaches:
            reaches[place] = reach_of(ctx, node["subnet"], node["security_groups"])
        if is_cut_off(node["reach"], reaches[place]):
            yield node["id"]

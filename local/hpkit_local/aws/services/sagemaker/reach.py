"""What nodes can reach, and what can reach them: rules of security groups, routes and endpoints of subnets.

A node begins with the reach of its network, parts of which this endpoint might not know. Once it loses a part, it's cut
off: its kubelet reaches neither the API server nor AWS, and its pods stop working.

Sources: Amazon EKS user guide, security group requirements and private clusters; SageMaker HyperPod developer guide,
EKS prerequisites.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from hpkit_local.aws.backend import Context, Record

__all__ = ["is_cut_off", "reach_of"]

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

"""Routes: gateways, tables, routes in them, and the subnets that use them."""

import zlib
from typing import Any, Final

from hpkit_local.plugins.aws.calls import Calls, Retry
from hpkit_local.plugins.aws.resource_type import PlannedUpdate, ResourceType, properties
from hpkit_local.plugins.aws.shapes import (
    arn,
    change_tags,
    creating,
    deleting,
    describe_one,
    in_specification,
    listed,
    pascal,
    reading,
    settled,
    told,
)
from hpkit_provider.engine.errors import PluginError
from hpkit_provider.engine.values import Props

__all__ = ["RESOURCE_TYPES"]

_DESTINATIONS = ("destinationCidrBlock", "destinationIpv6CidrBlock", "destinationPrefixListId")
_ADDRESS = "allocationId publicIp privateIp networkInterfaceId"
_TARGETS = ("gatewayId", "natGatewayId", "networkInterfaceId", "transitGatewayId", "vpcPeeringConnectionId")


_table = listed("DescribeRouteTables", "RouteTables", "RouteTableIds")


def _delete_table(call: Calls, table: str, _state: Props) -> None:
    for association in (_table(call, table) or {}).get("Associations", ()):
        call.find("DisassociateRouteTable", AssociationId=association["RouteTableAssociationId"])
    call.find("DeleteRouteTable", RouteTableId=table)


def _destination(props: Props) -> dict[str, str]:
    return {name: props[name] for name in _DESTINATIONS if props.get(name)}


def _whole(props: Props) -> dict[str, str]:
    destination = _destination(props)
    targets = {name: props[name] for name in _TARGETS if props.get(name)}
    if len(destination) != 1 or len(targets) != 1:
        raise PluginError(f"A route needs one of {', '.join(_DESTINATIONS)} and one of {', '.join(_TARGETS)}.")
    return {**destination, **targets}


def _create_route(call: Calls, inputs: Props) -> str:
    table, (destination,) = inputs["routeTableId"], _destination(inputs).values()
    # EC2 accepts the same route twice (terraform-provider-aws 6.58.0, ec2/resourceRouteCreate).
    if (_read_route(call, f"{table}_{destination}", {}) or {}).get("origin") == "CreateRoute":
        raise PluginError(f"CreateRoute: {table} already has a route to {destination}")
    call("CreateRoute", RouteTableId=table, **pascal(_whole(inputs)))
    return _route_id(table, destination)


def _route_id(table: str, destination: str) -> str:
    return f"r-{table}{zlib.crc32(destination.encode())}"


def _read_route(call: Calls, route: str, recorded: Props) -> Props | None:
    """Find it; at import its id is `TABLE_DESTINATION`."""
    table, _, imported = route.partition("_")
    table = recorded.get("routeTableId", table)
    destination = next(iter(_destination(recorded).values()), imported)
    entry = _table(call, table)
    for live in entry["Routes"] if entry else []:
        for name in _DESTINATIONS:
            if live.get(pascal({name: ""}).popitem()[0]) == destination:
                targets = {target: live.get(target[:1].upper() + target[1:]) for target in _TARGETS}
                described = {"id": _route_id(table, destination), "routeTableId": table, name: destination, **targets}
                return {**described, "state": live.get("State"), "origin": live.get("Origin")}
    return None


def _update_route(call: Calls, _route: str, change: PlannedUpdate) -> None:
    call("ReplaceRoute", RouteTableId=change.new["routeTableId"], **pascal(_whole(change.new)))


def _delete_route(call: Calls, _route: str, state: Props) -> None:
    call.find("DeleteRoute", RouteTableId=state["routeTableId"], **pascal(_destination(state)))


def _association(call: Calls, association: str, recorded: Props) -> dict[str, Any] | None:
    """Find it by its ID, or by what it associates, because AWS assigns a new ID with every new table."""
    target, _, table = association.partition("/")  # the form of an import
    if not table:
        target, table = recorded.get("subnetId") or recorded.get("gatewayId") or "", recorded.get("routeTableId", "")
    for key, value in (("association.route-table-association-id", association), ("route-table-id", table)):
        entry = describe_one(call, "DescribeRouteTables", "RouteTables", Filters=[{"Name": key, "Values": [value]}])
        for candidate in entry["Associations"] if entry else []:
            mine = target and target in (candidate.get("SubnetId"), candidate.get("GatewayId"))
            if mine or candidate["RouteTableAssociationId"] == association:
                return dict(candidate)
    return None


def _read_association(call: Calls, association: str, recorded: Props) -> Props | None:
    live = _association(call, association, recorded)
    return live and {
        "id": live["RouteTableAssociationId"],
        "routeTableId": live["RouteTableId"],
        "subnetId": live.get("SubnetId"),
        "gatewayId": live.get("GatewayId"),
    }


def _move(call: Calls, association: str, change: PlannedUpdate) -> None:
    one = _association(call, association, change.old) or {"RouteTableAssociationId": association}
    identifier = one["RouteTableAssociationId"]
    call("ReplaceRouteTableAssociation", AssociationId=identifier, RouteTableId=change.new["routeTableId"])


def _dissociate(call: Calls, association: str, state: Props) -> None:
    one = _association(call, association, state)
    if one is not None:
        call.find("DisassociateRouteTable", AssociationId=one["RouteTableAssociationId"])


def _read_attachment(_call: Calls, _id: str, entry: dict[str, Any]) -> Props:
    return {"vpcId": next((attached["VpcId"] for attached in entry.get("Attachments", [])), None)}


def _update_gateway(call: Calls, gateway: str, change: PlannedUpdate) -> None:
    if change.old.get("vpcId"):
        call.find("DetachInternetGateway", InternetGatewayId=gateway, VpcId=change.old["vpcId"])
    if change.new.get("vpcId"):
        call("AttachInternetGateway", InternetGatewayId=gateway, VpcId=change.new["vpcId"])


def _delete_gateway(call: Calls, gateway: str, state: Props) -> None:
    if state.get("vpcId"):
        call.find("DetachInternetGateway", InternetGatewayId=gateway, VpcId=state["vpcId"])
    call.find("DeleteInternetGateway", InternetGatewayId=gateway)


def _read_dns(call: Calls, _id: str, entry: dict[str, Any]) -> Props:
    return {"publicDns": f"ec2-{entry['PublicIp'].replace('.', '-')}.{call.region}.compute.amazonaws.com"}


_nat = listed("DescribeNatGateways", "NatGateways", "NatGatewayIds")


def _read_address(_call: Calls, _id: str, entry: dict[str, Any]) -> Props:
    address: dict[str, Any] = next(iter(entry.get("NatGatewayAddresses", [])), {})
    return {"connectivityType": "public", **told(entry, "connectivityType"), **told(address, _ADDRESS)}


def _deleting(call: Calls, gateway: str) -> dict[str, Any] | None:
    """Return a NAT gateway until it's deleted."""
    answer = call.find("DescribeNatGateways", NatGatewayIds=[gateway])
    entries = [entry for entry in (answer or {}).get("NatGateways", []) if entry["State"] != "deleted"]
    return entries[0] if entries else None


RESOURCE_TYPES: Final = (
    ResourceType(
        "aws:ec2/routeTable:RouteTable",
        props=properties("vpcId!"),
        create=creating(
            "CreateRouteTable", "vpcId", made="RouteTable.RouteTableId", tags=in_specification("route-table")
        ),
        read=reading(_table, "ownerId vpcId", arn("route-table")),
        delete=_delete_table,
        outputs=("arn", "ownerId"),
        tagging=change_tags,
        minutes=(5, 2, 5),
    ),
    ResourceType(
        "aws:ec2/route:Route",
        props=properties(" ".join(("routeTableId!", *_DESTINATIONS, *_TARGETS))),
        create=_create_route,
        read=_read_route,
        update=_update_route,
        delete=_delete_route,
        outputs=("state", "origin"),
        minutes=(5, 2, 5),
        retries={
            "CreateRoute": Retry(300.0, ("InvalidParameterException", "InvalidTransitGatewayID.NotFound")),
            "DeleteRoute": Retry(300.0, ("InvalidParameterException",)),
        },
    ),
    ResourceType(
        "aws:ec2/routeTableAssociation:RouteTableAssociation",
        props=properties("routeTableId! subnetId gatewayId"),
        create=creating("AssociateRouteTable", "routeTableId subnetId gatewayId", made="AssociationId"),
        read=_read_association,
        update=_move,
        delete=_dissociate,
        minutes=(5, 2, 5),
        retries={"AssociateRouteTable": Retry(300.0, ("InvalidRouteTableID.NotFound",))},
    ),
    ResourceType(
        "aws:ec2/internetGateway:InternetGateway",
        props=properties("vpcId"),
        create=creating(
            "CreateInternetGateway",
            "",
            made="InternetGateway.InternetGatewayId",
            tags=in_specification("internet-gateway"),
        ),
        read=reading(
            listed("DescribeInternetGateways", "InternetGateways", "InternetGatewayIds"),
            "ownerId",
            arn("internet-gateway", _read_attachment),
        ),
        update=_update_gateway,
        later=("vpcId",),
        delete=_delete_gateway,
        outputs=("arn", "ownerId"),
        tagging=change_tags,
        retries={
            "AttachInternetGateway": Retry(1200.0, ("InvalidInternetGatewayID.NotFound",)),
            "DetachInternetGateway": Retry(1200.0, ("DependencyViolation",)),
            "DeleteInternetGateway": Retry(1200.0, ("DependencyViolation",)),
        },
    ),
    ResourceType(
        "aws:ec2/eip:Eip",
        props=properties("domain"),
        create=creating(
            "AllocateAddress",
            "",
            made="AllocationId",
            tags=in_specification("elastic-ip"),
            also=lambda _: {"Domain": "vpc"},
        ),
        read=reading(
            listed("DescribeAddresses", "Addresses", "AllocationIds"),
            "allocationId domain publicIp",
            arn("elastic-ip", _read_dns),
        ),
        delete=deleting("ReleaseAddress", "AllocationId"),
        outputs=("arn", "allocationId", "publicIp", "publicDns"),
        tagging=change_tags,
        minutes=(20, 5, 3),
    ),
    ResourceType(
        "aws:ec2/natGateway:NatGateway",
        props=properties("subnetId! allocationId connectivityType"),
        create=creating(
            "CreateNatGateway",
            "subnetId allocationId connectivityType",
            made="NatGateway.NatGatewayId",
            tags=in_specification("natgateway"),
        ),
        read=reading(_nat, "subnetId", _read_address),
        wait=settled(_nat, ["available"], ["failed"]),
        # Ten seconds for appliances, and ten more (terraform-provider-aws 6.58.0, ec2/resourceNATGatewayDelete).
        delete=deleting("DeleteNatGateway", "NatGatewayId", look=_deleting, delay=20.0),
        outputs=("publicIp", "privateIp", "networkInterfaceId"),
        tagging=change_tags,
        minutes=(10, 10, 30),
    ),
)

"""Routes: tables, routes in them, and the subnets that use them."""

from __future__ import annotations

import zlib
from typing import Any, Final

from hpkit_local.plugins.aws.calls import Calls, Retry
from hpkit_local.plugins.aws.resource_type import PlannedUpdate, Prop, ResourceType
from hpkit_local.plugins.aws.resources.ec2.tags import change_tags, describe_one, specifications
from hpkit_local.plugins.aws.shapes import pascal, tag_map
from hpkit_provider.engine.errors import PluginError
from hpkit_provider.engine.values import Props

__all__ = ["RESOURCE_TYPES"]

_DESTINATIONS = ("destinationCidrBlock", "destinationIpv6CidrBlock", "destinationPrefixListId")
_TARGETS = ("gatewayId", "natGatewayId", "networkInterfaceId", "transitGatewayId", "vpcPeeringConnectionId")


def _create_table(call: Calls, inputs: Props) -> str:
    tags = specifications("route-table", inputs)
    return str(call("CreateRouteTable", VpcId=inputs["vpcId"], TagSpecifications=tags)["RouteTable"]["RouteTableId"])


def _read_table(call: Calls, table: str, _recorded: Props) -> Props | None:
    entry = describe_one(call, "DescribeRouteTables", "RouteTables", RouteTableIds=[table])
    return entry and {
        "arn": f"arn:aws:ec2:{call.region}:{entry['OwnerId']}:route-table/{table}",
        "ownerId": entry["OwnerId"],
        "vpcId": entry["VpcId"],
        "tags": tag_map(entry.get("Tags")),
    }


def _delete_table(call: Calls, table: str, _state: Props) -> None:
    entry = describe_one(call, "DescribeRouteTables", "RouteTables", RouteTableIds=[table]) or {}
    for association in entry.get("Associations", ()):
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
    entry = describe_one(call, "DescribeRouteTables", "RouteTables", RouteTableIds=[table])
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


def _associate(call: Calls, inputs: Props) -> str:
    answer = call(
        "AssociateRouteTable",
        RouteTableId=inputs["routeTableId"],
        SubnetId=inputs.get("subnetId"),
        GatewayId=inputs.get("gatewayId"),
    )
    return str(answer["AssociationId"])


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


_MINUTES: Final = (5, 2, 5)

RESOURCE_TYPES: Final = (
    ResourceType(
        "aws:ec2/routeTable:RouteTable",
        props=(Prop("vpcId", required=True),),
        create=_create_table,
        read=_read_table,
        delete=_delete_table,
        outputs=("arn", "ownerId"),
        tagging=change_tags,
        minutes=_MINUTES,
    ),
    ResourceType(
        "aws:ec2/route:Route",
        props=(
            Prop("routeTableId", required=True),
            *(Prop(name) for name in _DESTINATIONS),
            *(Prop(name) for name in _TARGETS),
        ),
        create=_create_route,
        read=_read_route,
        update=_update_route,
        delete=_delete_route,
        outputs=("state", "origin"),
        minutes=_MINUTES,
        retries={
            "CreateRoute": Retry(300.0, ("InvalidParameterException", "InvalidTransitGatewayID.NotFound")),
            "DeleteRoute": Retry(300.0, ("InvalidParameterException",)),
        },
    ),
    ResourceType(
        "aws:ec2/routeTableAssociation:RouteTableAssociation",
        props=(
            Prop("routeTableId", required=True),
            Prop("subnetId"),
            Prop("gatewayId"),
        ),
        create=_associate,
        read=_read_association,
        update=_move,
        delete=_dissociate,
        minutes=_MINUTES,
        retries={"AssociateRouteTable": Retry(300.0, ("InvalidRouteTableID.NotFound",))},
    ),
)

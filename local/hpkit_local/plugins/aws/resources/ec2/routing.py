"""Routes: gateways, tables, routes in them, and the subnets that use them."""

from __future__ import annotations

import zlib
from typing import Any, Final

from hpkit_local.plugins.aws.calls import Calls, Retry, until
from hpkit_local.plugins.aws.resource_type import PlannedUpdate, Prop, ResourceType
from hpkit_local.plugins.aws.shapes import change_tags, describe_one, pascal, specifications, tag_map
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


def _create_gateway(call: Calls, inputs: Props) -> str:
    answer = call("CreateInternetGateway", TagSpecifications=specifications("internet-gateway", inputs))
    return str(answer["InternetGateway"]["InternetGatewayId"])


def _read_gateway(call: Calls, gateway: str, _recorded: Props) -> Props | None:
    entry = describe_one(call, "DescribeInternetGateways", "InternetGateways", InternetGatewayIds=[gateway])
    if entry is None:
        return None
    owner = entry.get("OwnerId", "")
    return {
        "arn": f"arn:aws:ec2:{call.region}:{owner}:internet-gateway/{gateway}",
        "ownerId": owner,
        "vpcId": next((attached["VpcId"] for attached in entry.get("Attachments", [])), None),
        "tags": tag_map(entry.get("Tags")),
    }


def _update_gateway(call: Calls, gateway: str, change: PlannedUpdate) -> None:
    if change.old.get("vpcId"):
        call.find("DetachInternetGateway", InternetGatewayId=gateway, VpcId=change.old["vpcId"])
    if change.new.get("vpcId"):
        call("AttachInternetGateway", InternetGatewayId=gateway, VpcId=change.new["vpcId"])


def _delete_gateway(call: Calls, gateway: str, state: Props) -> None:
    if state.get("vpcId"):
        call.find("DetachInternetGateway", InternetGatewayId=gateway, VpcId=state["vpcId"])
    call.find("DeleteInternetGateway", InternetGatewayId=gateway)


def _create_address(call: Calls, inputs: Props) -> str:
    answer = call("AllocateAddress", Domain="vpc", TagSpecifications=specifications("elastic-ip", inputs))
    return str(answer["AllocationId"])


def _read_address(call: Calls, allocation: str, _recorded: Props) -> Props | None:
    entry = describe_one(call, "DescribeAddresses", "Addresses", AllocationIds=[allocation])
    return entry and {
        "arn": f"arn:aws:ec2:{call.region}:{call.account}:elastic-ip/{allocation}",
        "allocationId": allocation,
        "domain": entry["Domain"],
        "publicIp": entry["PublicIp"],
        "publicDns": f"ec2-{entry['PublicIp'].replace('.', '-')}.{call.region}.compute.amazonaws.com",
        "tags": tag_map(entry.get("Tags")),
    }


def _delete_address(call: Calls, allocation: str, _state: Props) -> None:
    call.find("ReleaseAddress", AllocationId=allocation)


def _create_nat(call: Calls, inputs: Props) -> str:
    answer = call(
        "CreateNatGateway",
        SubnetId=inputs["subnetId"],
        AllocationId=inputs.get("allocationId"),
        ConnectivityType=inputs["connectivityType"],
        TagSpecifications=specifications("natgateway", inputs),
    )
    return str(answer["NatGateway"]["NatGatewayId"])


def _nat(call: Calls, gateway: str) -> dict[str, Any] | None:
    return describe_one(call, "DescribeNatGateways", "NatGateways", NatGatewayIds=[gateway])


def _read_nat(call: Calls, gateway: str, _recorded: Props) -> Props | None:
    entry = _nat(call, gateway)
    if entry is None:
        return None
    address: dict[str, Any] = next(iter(entry.get("NatGatewayAddresses", [])), {})
    return {
        "subnetId": entry["SubnetId"],
        "allocationId": address.get("AllocationId"),
        "connectivityType": entry.get("ConnectivityType", "public"),
        "publicIp": address.get("PublicIp"),
        "privateIp": address.get("PrivateIp"),
        "networkInterfaceId": address.get("NetworkInterfaceId"),
        "tags": tag_map(entry.get("Tags")),
    }


def _await_nat(call: Calls, gateway: str, _change: PlannedUpdate) -> None:
    until(
        call, lambda: _nat(call, gateway), status=lambda entry: entry["State"], ready={"available"}, failed={"failed"}
    )


def _delete_nat(call: Calls, gateway: str, _state: Props) -> None:
    if call.find("DeleteNatGateway", NatGatewayId=gateway) is not None:
        # Ten seconds for appliances, and ten more (terraform-provider-aws 6.58.0, ec2/resourceNATGatewayDelete).
        until(call, lambda: _deleting(call, gateway), status=lambda entry: entry["State"], until_gone=True, delay=20.0)


def _deleting(call: Calls, gateway: str) -> dict[str, Any] | None:
    answer = call.find("DescribeNatGateways", NatGatewayIds=[gateway])
    entries = [entry for entry in (answer or {}).get("NatGateways", []) if entry["State"] != "deleted"]
    return entries[0] if entries else None


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
    ResourceType(
        "aws:ec2/internetGateway:InternetGateway",
        props=(Prop("vpcId"),),
        create=_create_gateway,
        read=_read_gateway,
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
        props=(Prop("domain"),),
        create=_create_address,
        read=_read_address,
        delete=_delete_address,
        outputs=("arn", "allocationId", "publicIp", "publicDns"),
        tagging=change_tags,
        minutes=(20, 5, 3),
    ),
    ResourceType(
        "aws:ec2/natGateway:NatGateway",
        props=(
            Prop("subnetId", required=True),
            Prop("allocationId"),
            Prop("connectivityType"),
        ),
        create=_create_nat,
        read=_read_nat,
        wait=_await_nat,
        delete=_delete_nat,
        outputs=("publicIp", "privateIp", "networkInterfaceId"),
        tagging=change_tags,
        minutes=(10, 10, 30),
    ),
)

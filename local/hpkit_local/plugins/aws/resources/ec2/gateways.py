"""Ways out of a VPC: internet gateways, elastic addresses, NAT gateways."""

from __future__ import annotations

from typing import Any, Final

from hpkit_local.plugins.aws.calls import Calls, Retry
from hpkit_local.plugins.aws.resource_type import PlannedUpdate, Prop, ResourceType
from hpkit_local.plugins.aws.resources.ec2.tags import change_tags, describe_one, specifications
from hpkit_local.plugins.aws.shapes import tag_map
from hpkit_local.plugins.aws.waiting import until
from hpkit_provider.engine.values import Props

__all__ = ["RESOURCE_TYPES"]


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

"""VPC endpoints."""

from __future__ import annotations

from typing import Any, Final

from hpkit_local.plugins.aws.calls import Calls
from hpkit_local.plugins.aws.resource_type import PlannedUpdate, Prop, ResourceType
from hpkit_local.plugins.aws.resources.ec2.tags import change_tags, describe_one, specifications
from hpkit_local.plugins.aws.shapes import tag_map
from hpkit_local.plugins.aws.waiting import until
from hpkit_provider.engine.errors import PluginError
from hpkit_provider.engine.values import Props

__all__ = ["RESOURCE_TYPES"]

_SETS = {"subnetIds": "SubnetIds", "routeTableIds": "RouteTableIds", "securityGroupIds": "SecurityGroupIds"}


def _create_endpoint(call: Calls, inputs: Props) -> str:
    answer = call(
        "CreateVpcEndpoint",
        VpcId=inputs["vpcId"],
        ServiceName=inputs["serviceName"],
        VpcEndpointType=inputs["vpcEndpointType"],
        PolicyDocument=inputs.get("policy"),
        PrivateDnsEnabled=inputs.get("privateDnsEnabled"),
        TagSpecifications=specifications("vpc-endpoint", inputs),
        **{member: inputs.get(name) for name, member in _SETS.items()},
    )
    return str(answer["VpcEndpoint"]["VpcEndpointId"])


def _endpoint(call: Calls, endpoint: str) -> dict[str, Any] | None:
    return describe_one(call, "DescribeVpcEndpoints", "VpcEndpoints", VpcEndpointIds=[endpoint])


def _read_endpoint(call: Calls, endpoint: str, _recorded: Props) -> Props | None:
    entry = _endpoint(call, endpoint)
    if entry is None:
        return None
    owner = entry.get("OwnerId", "")
    return {
        "arn": f"arn:aws:ec2:{call.region}:{owner}:vpc-endpoint/{endpoint}",
        "ownerId": owner,
        "vpcId": entry["VpcId"],
        "serviceName": entry["ServiceName"],
        "vpcEndpointType": entry["VpcEndpointType"],
        "state": entry["State"],
        "policy": entry.get("PolicyDocument"),
        "privateDnsEnabled": entry.get("PrivateDnsEnabled", False),
        "subnetIds": entry.get("SubnetIds", []),
        "routeTableIds": entry.get("RouteTableIds", []),
        "securityGroupIds": [group["GroupId"] for group in entry.get("Groups", [])],
        "networkInterfaceIds": entry.get("NetworkInterfaceIds", []),
        "dnsEntries": [
            {"dnsName": name["DnsName"], "hostedZoneId": name.get("HostedZoneId", "")}
            for name in entry.get("DnsEntries", [])
        ],
        "tags": tag_map(entry.get("Tags")),
    }


def _await_endpoint(call: Calls, endpoint: str, change: PlannedUpdate) -> None:
    until(
        call,
        lambda: _endpoint(call, endpoint),
        status=lambda entry: entry["State"].lower(),
        ready={"available", "pendingacceptance"},
        failed={"failed", "rejected", "expired"},
        delay=5.0 if change.names else 0.0,
    )


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
        "aws:ec2/vpcEndpoint:VpcEndpoint",
        props=(
            Prop("vpcId", required=True),
            Prop("serviceName", required=True),
            Prop("vpcEndpointType"),
            Prop("policy", "policy"),
            Prop("privateDnsEnabled", "boolean"),
            *(Prop(name, "list") for name in _SETS),
        ),
        create=_create_endpoint,
        read=_read_endpoint,
        update=_update_endpoint,
        wait=_await_endpoint,
        delete=_delete_endpoint,
        outputs=("arn", "ownerId", "state", "networkInterfaceIds", "dnsEntries"),
        tagging=change_tags,
        minutes=(10, 10, 10),
    ),
)

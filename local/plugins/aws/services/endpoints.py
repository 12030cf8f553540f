"""VPC endpoints and flow logs."""

from __future__ import annotations

import json
from typing import Any, Final

from local.plugins.aws.calls import Calls
from local.plugins.aws.resource_type import Change, Prop, ResourceType
from local.plugins.aws.services.ec2 import TAGS, found, specifications
from local.plugins.aws.shapes import tag_map
from local.plugins.aws.waiting import until
from provider.engine.errors import PluginError
from provider.engine.values import Props

__all__ = ["RESOURCE_TYPES"]

_SETS = {"subnetIds": "SubnetIds", "routeTableIds": "RouteTableIds", "securityGroupIds": "SecurityGroupIds"}


def _create_endpoint(call: Calls, wanted: Props) -> str:
    answer = call(
        "CreateVpcEndpoint",
        VpcId=wanted["vpcId"],
        ServiceName=wanted["serviceName"],
        VpcEndpointType=wanted["vpcEndpointType"],
        PolicyDocument=wanted.get("policy"),
        PrivateDnsEnabled=wanted.get("privateDnsEnabled"),
        IpAddressType=wanted.get("ipAddressType"),
        TagSpecifications=specifications("vpc-endpoint", wanted),
        **{member: wanted.get(name) for name, member in _SETS.items()},
    )
    return str(answer["VpcEndpoint"]["VpcEndpointId"])


def _endpoint(call: Calls, endpoint: str) -> dict[str, Any] | None:
    return found(call, "DescribeVpcEndpoints", "VpcEndpoints", VpcEndpointIds=[endpoint])


def _read_endpoint(call: Calls, endpoint: str, _known: Props) -> Props | None:
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
        "ipAddressType": entry.get("IpAddressType"),
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


def _await_endpoint(call: Calls, endpoint: str, _change: Change) -> None:
    until(
        call,
        lambda: _endpoint(call, endpoint),
        status=lambda entry: entry["State"].lower(),
        ready={"available", "pendingacceptance"},
        failed={"failed", "rejected", "expired"},
    )


def _update_endpoint(call: Calls, endpoint: str, change: Change) -> None:
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
    if call.find("DeleteVpcEndpoints", VpcEndpointIds=[endpoint]) is not None:
        until(call, lambda: _endpoint(call, endpoint), status=lambda entry: entry["State"], gone=True)


_LOGGED = {"vpcId": "VPC", "subnetId": "Subnet", "eniId": "NetworkInterface"}


def _create_log(call: Calls, wanted: Props) -> str:
    logged = [(kind, wanted[name]) for name, kind in _LOGGED.items() if wanted.get(name)]
    if len(logged) != 1:
        raise PluginError(f"A flow log is of one of {', '.join(_LOGGED)}.")
    ((kind, resource),) = logged
    answer = call(
        "CreateFlowLogs",
        ResourceIds=[resource],
        ResourceType=kind,
        TrafficType=wanted.get("trafficType"),
        LogDestinationType=wanted["logDestinationType"],
        LogDestination=wanted.get("logDestination"),
        DeliverLogsPermissionArn=wanted.get("iamRoleArn"),
        LogFormat=wanted.get("logFormat"),
        MaxAggregationInterval=wanted["maxAggregationInterval"],
        TagSpecifications=specifications("vpc-flow-log", wanted),
    )
    if answer.get("Unsuccessful"):
        raise PluginError(f"CreateFlowLogs: {json.dumps(answer['Unsuccessful'][0]['Error'])}")
    return str(answer["FlowLogIds"][0])


def _read_log(call: Calls, log: str, _known: Props) -> Props | None:
    entry = found(call, "DescribeFlowLogs", "FlowLogs", FlowLogIds=[log])
    if entry is None:
        return None
    prefix = {"vpc": "vpcId", "subnet": "subnetId", "eni": "eniId"}[entry["ResourceId"].partition("-")[0]]
    destination = entry.get("LogDestination")
    if destination is None and entry.get("LogGroupName"):
        destination = f"arn:aws:logs:{call.region}:{call.account}:log-group:{entry['LogGroupName']}"
    return {
        "arn": f"arn:aws:ec2:{call.region}:{call.account}:vpc-flow-log/{log}",
        prefix: entry["ResourceId"],
        "trafficType": entry.get("TrafficType"),
        "logDestinationType": entry.get("LogDestinationType", "cloud-watch-logs"),
        "logDestination": destination,
        "iamRoleArn": entry.get("DeliverLogsPermissionArn"),
        "logFormat": entry.get("LogFormat"),
        "maxAggregationInterval": int(entry.get("MaxAggregationInterval", 600)),
        "tags": tag_map(entry.get("Tags")),
    }


def _delete_log(call: Calls, log: str, _state: Props) -> None:
    call.find("DeleteFlowLogs", FlowLogIds=[log])


RESOURCE_TYPES: Final = (
    ResourceType(
        "aws:ec2/vpcEndpoint:VpcEndpoint",
        "ec2",
        props=(
            Prop("vpcId", required=True, immutable=True),
            Prop("serviceName", required=True, immutable=True),
            Prop("vpcEndpointType", immutable=True, default="Gateway"),
            Prop("policy", "policy", computed=True),
            Prop("privateDnsEnabled", "boolean", computed=True),
            Prop("ipAddressType", immutable=True, computed=True),
            *(Prop(name, "set", computed=True) for name in _SETS),
        ),
        calls="CreateVpcEndpoint DescribeVpcEndpoints ModifyVpcEndpoint DeleteVpcEndpoints",
        create=_create_endpoint,
        read=_read_endpoint,
        update=_update_endpoint,
        wait=_await_endpoint,
        delete=_delete_endpoint,
        outputs=("arn", "ownerId", "state", "networkInterfaceIds", "dnsEntries"),
        tagging=TAGS,
    ),
    ResourceType(
        "aws:ec2/flowLog:FlowLog",
        "ec2",
        props=(
            *(Prop(name, immutable=True) for name in _LOGGED),
            Prop("trafficType", immutable=True),
            Prop("logDestinationType", immutable=True, default="cloud-watch-logs"),
            Prop("logDestination", immutable=True, computed=True),
            Prop("iamRoleArn", immutable=True),
            Prop("logFormat", immutable=True, computed=True),
            Prop("maxAggregationInterval", "integer", immutable=True, default=600),
        ),
        calls="CreateFlowLogs DescribeFlowLogs DeleteFlowLogs",
        create=_create_log,
        read=_read_log,
        delete=_delete_log,
        outputs=("arn",),
        tagging=TAGS,
    ),
)

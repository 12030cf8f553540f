"""Security groups, and their rules as resources of their own."""

from __future__ import annotations

from typing import Any, Final

from local.plugins.aws.calls import Calls
from local.plugins.aws.resource_type import Change, Prop, ResourceType
from local.plugins.aws.services.ec2 import TAGS, found, specifications
from local.plugins.aws.shapes import tag_map
from provider.engine.errors import PluginError
from provider.engine.values import Props

__all__ = ["RESOURCE_TYPES"]


def _create_group(call: Calls, wanted: Props) -> str:
    answer = call(
        "CreateSecurityGroup",
        GroupName=wanted["name"],
        Description=wanted["description"],
        VpcId=wanted.get("vpcId"),
        TagSpecifications=specifications("security-group", wanted),
    )
    group = str(answer["GroupId"])
    # AWS lets a new group's members out everywhere; the real provider takes that away, and so does this one.
    _strip(call, group, ingress=False)
    return group


def _strip(call: Calls, group: str, *, ingress: bool = True) -> None:
    entry = found(call, "DescribeSecurityGroups", "SecurityGroups", GroupIds=[group]) or {}
    if ingress and entry.get("IpPermissions"):
        call.find("RevokeSecurityGroupIngress", GroupId=group, IpPermissions=entry["IpPermissions"])
    if entry.get("IpPermissionsEgress"):
        call.find("RevokeSecurityGroupEgress", GroupId=group, IpPermissions=entry["IpPermissionsEgress"])


def _read_group(call: Calls, group: str, _known: Props) -> Props | None:
    entry = found(call, "DescribeSecurityGroups", "SecurityGroups", GroupIds=[group])
    return entry and {
        "arn": f"arn:aws:ec2:{call.region}:{entry['OwnerId']}:security-group/{group}",
        "ownerId": entry["OwnerId"],
        "name": entry["GroupName"],
        "description": entry["Description"],
        "vpcId": entry.get("VpcId"),
        "tags": tag_map(entry.get("Tags")),
    }


def _delete_group(call: Calls, group: str, state: Props) -> None:
    if state["revokeRulesOnDelete"]:
        _strip(call, group)
    call.find("DeleteSecurityGroup", GroupId=group)


def _adopt(call: Calls, wanted: Props) -> str:
    chosen = [
        {"Name": "group-name", "Values": ["default"]},
        *([{"Name": "vpc-id", "Values": [wanted["vpcId"]]}] if wanted.get("vpcId") else []),
    ]
    entry = found(call, "DescribeSecurityGroups", "SecurityGroups", Filters=chosen)
    if entry is None:
        raise PluginError(f"VPC {wanted.get('vpcId')} has no default security group to adopt.")
    group = str(entry["GroupId"])
    _strip(call, group)
    if wanted["tagsAll"]:
        TAGS.change(call, group, {}, wanted["tagsAll"], [])
    return group


def _read_default(call: Calls, group: str, known: Props) -> Props | None:
    entry = found(call, "DescribeSecurityGroups", "SecurityGroups", GroupIds=[group])
    if entry is None:
        return None
    told = _read_group(call, group, known) or {}
    rules = ("ingress", "IpPermissions"), ("egress", "IpPermissionsEgress")
    return {**told, **{name: [_told(rule) for rule in entry.get(member, [])] for name, member in rules}}


def _told(rule: dict[str, Any]) -> dict[str, Any]:
    return {
        "protocol": rule["IpProtocol"],
        "fromPort": rule.get("FromPort", 0),
        "toPort": rule.get("ToPort", 0),
        "cidrBlocks": [each["CidrIp"] for each in rule.get("IpRanges", [])],
        "ipv6CidrBlocks": [each["CidrIpv6"] for each in rule.get("Ipv6Ranges", [])],
        "prefixListIds": [each["PrefixListId"] for each in rule.get("PrefixListIds", [])],
        "securityGroups": [each["GroupId"] for each in rule.get("UserIdGroupPairs", [])],
    }


def _strip_again(call: Calls, group: str, change: Change) -> None:
    if change.new.get("ingress") or change.new.get("egress"):
        raise PluginError("The local cloud strips a default security group; it sets no rules in it.")
    _strip(call, group)


def _leave(call: Calls, group: str, state: Props) -> None:
    """Do nothing: AWS does not delete a VPC's default group, and the real provider only forgets it."""


RESOURCE_TYPES: Final = (
    ResourceType(
        "aws:ec2/securityGroup:SecurityGroup",
        "ec2",
        props=(
            Prop("name", immutable=True, computed=True),
            Prop("description", immutable=True, default="Managed by Pulumi"),
            Prop("vpcId", immutable=True, computed=True),
            Prop("revokeRulesOnDelete", "boolean", write_only=True, default=False),
        ),
        calls="CreateSecurityGroup DescribeSecurityGroups RevokeSecurityGroupIngress RevokeSecurityGroupEgress "
        "DeleteSecurityGroup",
        create=_create_group,
        read=_read_group,
        delete=_delete_group,
        outputs=("arn", "ownerId"),
        tagging=TAGS,
        autoname="name",
        longest_name=255,
        identity=("name", "vpcId"),
        note="no inline `ingress` and `egress`: use aws:vpc/securityGroupIngressRule and …EgressRule",
    ),
    ResourceType(
        "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup",
        "ec2",
        props=(
            Prop("vpcId", immutable=True, computed=True),
            Prop("ingress", "list"),
            Prop("egress", "list"),
            Prop("revokeRulesOnDelete", "boolean", write_only=True, default=False),
        ),
        calls="DescribeSecurityGroups RevokeSecurityGroupIngress RevokeSecurityGroupEgress",
        create=_adopt,
        read=_read_default,
        update=_strip_again,
        delete=_leave,
        outputs=("arn", "ownerId", "name", "description"),
        tagging=TAGS,
        identity=("vpcId",),
        note="adopts the group and takes all its rules away; `ingress` and `egress` may only be empty",
    ),
)

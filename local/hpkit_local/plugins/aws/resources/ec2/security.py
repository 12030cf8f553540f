"""Security groups, and their rules as separate resources."""

from __future__ import annotations

from typing import Any, Final

from hpkit_local.plugins.aws.calls import Calls, Retry
from hpkit_local.plugins.aws.resource_type import Create, Delete, PlannedUpdate, Prop, Read, ResourceType, Update
from hpkit_local.plugins.aws.shapes import change_tags, describe_one, specifications, tag_map
from hpkit_provider.engine.values import Props

__all__ = ["RESOURCE_TYPES"]


def _create_group(call: Calls, inputs: Props) -> str:
    answer = call(
        "CreateSecurityGroup",
        GroupName=inputs["name"],
        Description=inputs["description"],
        VpcId=inputs.get("vpcId"),
        TagSpecifications=specifications("security-group", inputs),
    )
    return str(answer["GroupId"])


def _close(call: Calls, group: str, change: PlannedUpdate) -> None:
    """Remove the rule that AWS adds, which allows all outbound traffic.

    Only creation does this: if it fails here, the rule stays (terraform-provider-aws 6.58.0,
    ec2/resourceSecurityGroupCreate).
    """
    if not change.old:
        _strip(call, group, ingress=False)


def _strip(call: Calls, group: str, *, ingress: bool = True) -> None:
    entry = describe_one(call, "DescribeSecurityGroups", "SecurityGroups", GroupIds=[group]) or {}
    if ingress and entry.get("IpPermissions"):
        call.find("RevokeSecurityGroupIngress", GroupId=group, IpPermissions=entry["IpPermissions"])
    if entry.get("IpPermissionsEgress"):
        call.find("RevokeSecurityGroupEgress", GroupId=group, IpPermissions=entry["IpPermissionsEgress"])


def _read_group(call: Calls, group: str, _recorded: Props) -> Props | None:
    entry = describe_one(call, "DescribeSecurityGroups", "SecurityGroups", GroupIds=[group])
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


_ALL = "-1"
_SOURCES = {
    "cidrIpv4": ("IpRanges", "CidrIp"),
    "cidrIpv6": ("Ipv6Ranges", "CidrIpv6"),
    "prefixListId": ("PrefixListIds", "PrefixListId"),
    "referencedSecurityGroupId": ("UserIdGroupPairs", "GroupId"),
}


def _ports(props: Props) -> dict[str, Any]:
    if props["ipProtocol"] == _ALL:
        return {}
    return {"FromPort": props.get("fromPort"), "ToPort": props.get("toPort")}


def _permission(props: Props) -> dict[str, Any]:
    described = {"Description": props["description"]} if props.get("description") else {}
    sources = {member: [{key: props[name], **described}] for name, (member, key) in _SOURCES.items() if props.get(name)}
    return {"IpProtocol": props["ipProtocol"], **_ports(props), **sources}


def _creating(direction: str) -> Create:
    def create(call: Calls, inputs: Props) -> str:
        answer = call(
            f"AuthorizeSecurityGroup{direction}",
            GroupId=inputs["securityGroupId"],
            IpPermissions=[_permission(inputs)],
            TagSpecifications=specifications("security-group-rule", inputs),
        )
        return str(answer["SecurityGroupRules"][0]["SecurityGroupRuleId"])

    return create


def _reading(*, egress: bool) -> Read:
    def read(call: Calls, rule: str, _recorded: Props) -> Props | None:
        entry = describe_one(call, "DescribeSecurityGroupRules", "SecurityGroupRules", SecurityGroupRuleIds=[rule])
        if entry is None or entry["IsEgress"] != egress:
            return None
        everything = entry["IpProtocol"] == _ALL
        return {
            "arn": f"arn:aws:ec2:{call.region}:{call.account}:security-group-rule/{rule}",
            "securityGroupRuleId": rule,
            "securityGroupId": entry["GroupId"],
            "ipProtocol": entry["IpProtocol"],
            "fromPort": None if everything else entry.get("FromPort"),
            "toPort": None if everything else entry.get("ToPort"),
            "cidrIpv4": entry.get("CidrIpv4"),
            "cidrIpv6": entry.get("CidrIpv6"),
            "prefixListId": entry.get("PrefixListId"),
            "referencedSecurityGroupId": entry.get("ReferencedGroupInfo", {}).get("GroupId"),
            "description": entry.get("Description"),
            "tags": tag_map(entry.get("Tags")),
        }

    return read


def _updating() -> Update:
    def update(call: Calls, rule: str, change: PlannedUpdate) -> None:
        new = change.new
        members = {
            "IpProtocol": new["ipProtocol"],
            # EC2's representation of all ports, for any protocol.
            **(_ports(new) or {"FromPort": -1, "ToPort": -1}),
            "CidrIpv4": new.get("cidrIpv4"),
            "CidrIpv6": new.get("cidrIpv6"),
            "PrefixListId": new.get("prefixListId"),
            "ReferencedGroupId": new.get("referencedSecurityGroupId"),
            "Description": new.get("description"),
        }
        request = {name: value for name, value in members.items() if value is not None}
        rules = [{"SecurityGroupRuleId": rule, "SecurityGroupRule": request}]
        call("ModifySecurityGroupRules", GroupId=new["securityGroupId"], SecurityGroupRules=rules)

    return update


def _deleting(direction: str) -> Delete:
    def delete(call: Calls, rule: str, state: Props) -> None:
        group = state["securityGroupId"]
        call.find(f"RevokeSecurityGroup{direction}", GroupId=group, SecurityGroupRuleIds=[rule])

    return delete


def _kind(direction: str) -> ResourceType:
    return ResourceType(
        f"aws:vpc/securityGroup{direction}Rule:SecurityGroup{direction}Rule",
        props=(
            Prop("securityGroupId", required=True),
            Prop("ipProtocol", required=True),
            Prop("fromPort", "integer"),
            Prop("toPort", "integer"),
            Prop("description"),
            *(Prop(name) for name in _SOURCES),
        ),
        create=_creating(direction),
        read=_reading(egress=direction == "Egress"),
        update=_updating(),
        delete=_deleting(direction),
        outputs=("arn", "securityGroupRuleId"),
        tagging=change_tags,
    )


RESOURCE_TYPES: Final = (
    ResourceType(
        "aws:ec2/securityGroup:SecurityGroup",
        props=(
            Prop("name"),
            Prop("description"),
            Prop("vpcId"),
            Prop("revokeRulesOnDelete", "boolean", write_only=True),
        ),
        create=_create_group,
        read=_read_group,
        wait=_close,
        delete=_delete_group,
        outputs=("arn", "ownerId"),
        tagging=change_tags,
        longest_name=255,
        minutes=(10, 20, 15),
        retries={"DeleteSecurityGroup": Retry(900.0, ("DependencyViolation", "InvalidGroup.InUse"))},
    ),
    _kind("Ingress"),
    _kind("Egress"),
)

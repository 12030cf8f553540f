"""Security groups, and their rules as separate resources."""

from typing import Any, Final

from hpkit_local.plugins.aws.calls import Calls, Retry
from hpkit_local.plugins.aws.resource_type import PlannedUpdate, ResourceType, properties
from hpkit_local.plugins.aws.shapes import (
    arn,
    change_tags,
    creating,
    deleting,
    in_specification,
    listed,
    reading,
    sent,
    told,
)
from hpkit_provider.engine.values import Props

__all__ = ["RESOURCE_TYPES"]


_group = listed("DescribeSecurityGroups", "SecurityGroups", "GroupIds")


def _close(call: Calls, group: str, change: PlannedUpdate) -> None:
    """Remove the rule that AWS adds, which allows all outbound traffic.

    Only creation does this: if it fails here, the rule stays (terraform-provider-aws 6.58.0,
    ec2/resourceSecurityGroupCreate).
    """
    if not change.old:
        _strip(call, group, ingress=False)


def _strip(call: Calls, group: str, *, ingress: bool = True) -> None:
    entry = _group(call, group) or {}
    if ingress and entry.get("IpPermissions"):
        call.find("RevokeSecurityGroupIngress", GroupId=group, IpPermissions=entry["IpPermissions"])
    if entry.get("IpPermissionsEgress"):
        call.find("RevokeSecurityGroupEgress", GroupId=group, IpPermissions=entry["IpPermissionsEgress"])


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


_RULE: Final = "description ipProtocol cidrIpv4 cidrIpv6 prefixListId"
_rule = listed("DescribeSecurityGroupRules", "SecurityGroupRules", "SecurityGroupRuleIds")


def _read_rule(_call: Calls, _id: str, entry: dict[str, Any]) -> Props:
    ports = {} if entry["IpProtocol"] == _ALL else told(entry, "fromPort toPort")
    return {**ports, "referencedSecurityGroupId": entry.get("ReferencedGroupInfo", {}).get("GroupId")}


def _update_rule(call: Calls, rule: str, change: PlannedUpdate) -> None:
    new = change.new
    # EC2's representation of all ports, for any protocol.
    ports = _ports(new) or {"FromPort": -1, "ToPort": -1}
    members = {**sent(new, f"{_RULE} referencedSecurityGroupId=ReferencedGroupId"), **ports}
    request = {name: value for name, value in members.items() if value is not None}
    rules = [{"SecurityGroupRuleId": rule, "SecurityGroupRule": request}]
    call("ModifySecurityGroupRules", GroupId=new["securityGroupId"], SecurityGroupRules=rules)


def _deletion(rule: str, state: Props) -> dict[str, Any]:
    return {"GroupId": state["securityGroupId"], "SecurityGroupRuleIds": [rule]}


def _rule_type(direction: str) -> ResourceType:
    def look(call: Calls, rule: str) -> dict[str, Any] | None:
        entry = _rule(call, rule)
        return entry if entry and entry["IsEgress"] == (direction == "Egress") else None

    return ResourceType(
        f"aws:vpc/securityGroup{direction}Rule:SecurityGroup{direction}Rule",
        props=properties(
            " ".join(("securityGroupId! ipProtocol! fromPort:integer toPort:integer description", *_SOURCES))
        ),
        create=creating(
            f"AuthorizeSecurityGroup{direction}",
            "securityGroupId=GroupId",
            made="SecurityGroupRules.0.SecurityGroupRuleId",
            tags=in_specification("security-group-rule"),
            also=lambda inputs: {"IpPermissions": [_permission(inputs)]},
        ),
        read=reading(
            look, f"{_RULE} securityGroupRuleId securityGroupId=GroupId", arn("security-group-rule", _read_rule)
        ),
        update=_update_rule,
        delete=deleting(f"RevokeSecurityGroup{direction}", _deletion),
        outputs=("arn", "securityGroupRuleId"),
        tagging=change_tags,
    )


RESOURCE_TYPES: Final = (
    ResourceType(
        "aws:ec2/securityGroup:SecurityGroup",
        props=properties("name description vpcId revokeRulesOnDelete:boolean*"),
        create=creating(
            "CreateSecurityGroup",
            "name=GroupName description vpcId",
            made="GroupId",
            tags=in_specification("security-group"),
        ),
        read=reading(_group, "name=GroupName description vpcId ownerId", arn("security-group")),
        wait=_close,
        delete=_delete_group,
        outputs=("arn", "ownerId"),
        tagging=change_tags,
        longest_name=255,
        minutes=(10, 20, 15),
        retries={"DeleteSecurityGroup": Retry(900.0, ("DependencyViolation", "InvalidGroup.InUse"))},
    ),
    _rule_type("Ingress"),
    _rule_type("Egress"),
)

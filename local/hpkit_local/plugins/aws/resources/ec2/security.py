"""Security groups, and their rules as separate resources."""

from __future__ import annotations

from typing import Final

from hpkit_local.plugins.aws.calls import Calls, Retry
from hpkit_local.plugins.aws.resource_type import PlannedUpdate, Prop, ResourceType
from hpkit_local.plugins.aws.resources.ec2.tags import change_tags, describe_one, specifications
from hpkit_local.plugins.aws.shapes import tag_map
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
)

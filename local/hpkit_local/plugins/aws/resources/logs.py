"""Amazon CloudWatch: log groups."""

from typing import Final

from hpkit_local.plugins.aws.calls import Calls, Retry
from hpkit_local.plugins.aws.resource_type import Function, PlannedUpdate, ResourceType, properties
from hpkit_local.plugins.aws.shapes import creating, in_map, tagging, told
from hpkit_provider.engine.values import Props

__all__ = ["FUNCTIONS", "RESOURCE_TYPES"]


def _read_group(call: Calls, name: str, _recorded: Props) -> Props | None:
    groups = call.pages("DescribeLogGroups", "logGroups", logGroupNamePrefix=name)
    group = next((each for each in groups if each["logGroupName"] == name), None)
    if group is None:
        return None
    return {
        "retentionInDays": 0,
        "logGroupClass": "STANDARD",
        **told(group, "retentionInDays kmsKeyId logGroupClass"),
        "arn": str(group["arn"]).removesuffix(":*"),
        "name": name,
        "tags": call("ListTagsLogGroup", logGroupName=name)["tags"],
    }


def _update_group(call: Calls, name: str, change: PlannedUpdate) -> None:
    days, key = change.new["retentionInDays"], change.new.get("kmsKeyId")
    if "retentionInDays" in change and days:
        call("PutRetentionPolicy", logGroupName=name, retentionInDays=days)
    elif "retentionInDays" in change and change.old.get("retentionInDays"):
        call("DeleteRetentionPolicy", logGroupName=name)
    if "kmsKeyId" in change and key:
        call("AssociateKmsKey", logGroupName=name, kmsKeyId=key)
    elif "kmsKeyId" in change:
        call("DisassociateKmsKey", logGroupName=name)


def _delete_group(call: Calls, name: str, state: Props) -> None:
    if not state["skipDestroy"]:
        call.find("DeleteLogGroup", logGroupName=name)


RESOURCE_TYPES: Final = (
    ResourceType(
        "aws:cloudwatch/logGroup:LogGroup",
        props=properties("name retentionInDays:integer kmsKeyId logGroupClass skipDestroy:boolean*"),
        other_calls="DisassociateKmsKey",
        create=creating(
            "CreateLogGroup", "name=logGroupName kmsKeyId logGroupClass", made="{name}", tags=in_map, style=dict
        ),
        read=_read_group,
        update=_update_group,
        later=("retentionInDays",),
        delete=_delete_group,
        outputs=("arn",),
        tagging=tagging("LogGroup", "logGroupName", tags="tags", keys="tags", form=dict),
        longest_name=512,
        retries={
            "PutRetentionPolicy": Retry(120.0, ("no identity-based policy allows the logs:PutRetentionPolicy action",)),
            "DeleteLogGroup": Retry(60.0, ("OperationAbortedException",)),
        },
    ),
)


def _log_groups(call: Calls, args: Props) -> Props:
    groups = list(call.pages("DescribeLogGroups", "logGroups", logGroupNamePrefix=args.get("logGroupNamePrefix")))
    return {
        "id": call.region,
        "arns": [str(each["arn"]).removesuffix(":*") for each in groups],
        "logGroupNames": [each["logGroupName"] for each in groups],
        "logGroupNamePrefix": args.get("logGroupNamePrefix"),
    }


FUNCTIONS: Final = (
    Function(
        "aws:cloudwatch/getLogGroups:getLogGroups", "logs", ("logGroupNamePrefix",), "DescribeLogGroups", _log_groups
    ),
)

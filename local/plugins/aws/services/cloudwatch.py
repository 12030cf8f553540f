"""Amazon CloudWatch: log groups and metric alarms."""

from __future__ import annotations

from typing import Any, Final

from local.plugins.aws.calls import Calls
from local.plugins.aws.resource_type import Change, Prop, ResourceType, Tagging
from local.plugins.aws.shapes import camel, pascal, tag_list, tag_map
from provider.engine.values import Props

__all__ = ["RESOURCE_TYPES"]


def _create_group(call: Calls, wanted: Props) -> str:
    call(
        "CreateLogGroup",
        logGroupName=wanted["name"],
        kmsKeyId=wanted.get("kmsKeyId"),
        logGroupClass=wanted.get("logGroupClass"),
        tags=wanted["tagsAll"] or None,
    )
    return str(wanted["name"])


def _read_group(call: Calls, name: str, _known: Props) -> Props | None:
    groups = call.pages("DescribeLogGroups", "logGroups", logGroupNamePrefix=name)
    group = next((each for each in groups if each["logGroupName"] == name), None)
    if group is None:
        return None
    arn = str(group["arn"]).removesuffix(":*")
    return {
        "arn": arn,
        "name": name,
        "retentionInDays": group.get("retentionInDays", 0),
        "kmsKeyId": group.get("kmsKeyId"),
        "logGroupClass": group.get("logGroupClass", "STANDARD"),
        "tags": call("ListTagsLogGroup", logGroupName=name)["tags"],
    }


def _update_group(call: Calls, name: str, change: Change) -> None:
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


def _tag_group(call: Calls, name: str, _live: Props, changed: dict[str, str], dropped: list[str]) -> None:
    if changed:
        call("TagLogGroup", logGroupName=name, tags=changed)
    if dropped:
        call("UntagLogGroup", logGroupName=name, tags=dropped)


_ALARM: Final = (
    Prop("name", immutable=True, computed=True),
    Prop("comparisonOperator", required=True),
    Prop("evaluationPeriods", "integer", required=True),
    Prop("actionsEnabled", "boolean", default=True),
    Prop("alarmActions", "set"),
    Prop("alarmDescription"),
    Prop("datapointsToAlarm", "integer"),
    Prop("dimensions", "map"),
    Prop("extendedStatistic"),
    Prop("insufficientDataActions", "set"),
    Prop("metricName"),
    Prop("namespace"),
    Prop("okActions", "set"),
    Prop("period", "integer"),
    Prop("statistic"),
    Prop("threshold", "number"),
    Prop("treatMissingData", default="missing"),
    Prop("unit"),
    Prop(
        "metricQueries",
        "list",
        members=(
            Prop("id", required=True),
            Prop("expression"),
            Prop("label"),
            Prop("period", "integer"),
            Prop("returnData", "boolean"),
            Prop(
                "metric",
                "object",
                members=(
                    Prop("metricName", required=True),
                    Prop("namespace"),
                    Prop("period", "integer", required=True),
                    Prop("stat", required=True),
                    Prop("unit"),
                    Prop("dimensions", "map"),
                ),
            ),
        ),
    ),
)
_NAMES = {"name": "AlarmName", "okActions": "OKActions", "metricQueries": "Metrics", "dimensions": "Dimensions"}


def _member(name: str) -> str:
    return _NAMES.get(name, name[:1].upper() + name[1:])


def _dimensions(values: dict[str, str]) -> list[dict[str, str]]:
    return [{"Name": name, "Value": value} for name, value in values.items()]


def _query(query: dict[str, Any]) -> dict[str, Any]:
    """Return a query as CloudWatch takes it: the metric itself is a document within it."""
    plain = pascal({name: value for name, value in query.items() if name != "metric"})
    if "metric" not in query:
        return dict(plain)
    metric = query["metric"]
    which = {"Namespace": metric.get("namespace"), "MetricName": metric["metricName"]}
    which["Dimensions"] = _dimensions(metric.get("dimensions", {}))
    stat = {"Metric": which, "Period": metric["period"], "Stat": metric["stat"], "Unit": metric.get("unit")}
    return {**plain, "MetricStat": {name: value for name, value in stat.items() if value is not None}}


def _told(query: dict[str, Any]) -> dict[str, Any]:
    plain = camel({name: value for name, value in query.items() if name != "MetricStat"})
    if "MetricStat" not in query:
        return dict(plain)
    stat = query["MetricStat"]
    dimensions = {each["Name"]: each["Value"] for each in stat["Metric"].get("Dimensions", [])}
    which = {"metricName": stat["Metric"]["MetricName"], "namespace": stat["Metric"].get("Namespace")}
    metric = {**which, "period": stat["Period"], "stat": stat["Stat"], "unit": stat.get("Unit")}
    return {**plain, "metric": {**{k: v for k, v in metric.items() if v is not None}, "dimensions": dimensions}}


def _put_alarm(call: Calls, wanted: Props) -> str:
    given = {name: wanted[name] for name in (prop.name for prop in _ALARM) if name in wanted}
    request = {_member(name): value for name, value in given.items()}
    if "dimensions" in given:
        request["Dimensions"] = _dimensions(given["dimensions"])
    if "metricQueries" in given:
        request["Metrics"] = [_query(query) for query in given["metricQueries"]]
    call("PutMetricAlarm", **request, Tags=tag_list(wanted.get("tagsAll", {})))
    return str(wanted["name"])


def _read_alarm(call: Calls, name: str, _known: Props) -> Props | None:
    alarms = call("DescribeAlarms", AlarmNames=[name], AlarmTypes=["MetricAlarm"])["MetricAlarms"]
    if not alarms:
        return None
    alarm = alarms[0]
    live = {prop.name: alarm[_member(prop.name)] for prop in _ALARM if _member(prop.name) in alarm}
    if "dimensions" in live:
        live["dimensions"] = {each["Name"]: each["Value"] for each in live["dimensions"]}
    if "metricQueries" in live:
        live["metricQueries"] = [_told(query) for query in live["metricQueries"]]
    tags = call("ListTagsForResource", ResourceARN=alarm["AlarmArn"])["Tags"]
    return {**live, "arn": alarm["AlarmArn"], "tags": tag_map(tags)}


def _update_alarm(call: Calls, _name: str, change: Change) -> None:
    _put_alarm(call, change.new)


def _delete_alarm(call: Calls, name: str, _state: Props) -> None:
    call.find("DeleteAlarms", AlarmNames=[name])


def _tag_alarm(call: Calls, _name: str, live: Props, changed: dict[str, str], dropped: list[str]) -> None:
    if changed:
        call("TagResource", ResourceARN=live["arn"], Tags=tag_list(changed))
    if dropped:
        call("UntagResource", ResourceARN=live["arn"], TagKeys=dropped)


RESOURCE_TYPES: Final = (
    ResourceType(
        "aws:cloudwatch/logGroup:LogGroup",
        "logs",
        props=(
            Prop("name", immutable=True, computed=True),
            Prop("retentionInDays", "integer", default=0),
            Prop("kmsKeyId"),
            Prop("logGroupClass", immutable=True, computed=True),
            Prop("skipDestroy", "boolean", write_only=True, default=False),
        ),
        calls="CreateLogGroup DescribeLogGroups ListTagsLogGroup PutRetentionPolicy DeleteRetentionPolicy "
        "AssociateKmsKey DisassociateKmsKey DeleteLogGroup",
        create=_create_group,
        read=_read_group,
        update=_update_group,
        later=("retentionInDays",),
        delete=_delete_group,
        outputs=("arn",),
        tagging=Tagging(_tag_group, "TagLogGroup UntagLogGroup"),
        autoname="name",
        longest_name=512,
        identity=("name",),
    ),
    ResourceType(
        "aws:cloudwatch/metricAlarm:MetricAlarm",
        "cloudwatch",
        props=_ALARM,
        calls="PutMetricAlarm DescribeAlarms ListTagsForResource DeleteAlarms",
        create=_put_alarm,
        read=_read_alarm,
        update=_update_alarm,
        delete=_delete_alarm,
        outputs=("arn",),
        tagging=Tagging(_tag_alarm, "TagResource UntagResource"),
        autoname="name",
        longest_name=255,
        identity=("name",),
    ),
)

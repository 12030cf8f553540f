"""Amazon EventBridge: rules on the default event bus, and their targets."""

from __future__ import annotations

import json
from typing import Final

from hpkit_local.plugins.aws.calls import Calls, Retry
from hpkit_local.plugins.aws.resource_type import PlannedUpdate, Prop, ResourceType
from hpkit_local.plugins.aws.shapes import arn_of, tag_list, tag_map, tagging
from hpkit_provider.engine.errors import PluginError
from hpkit_provider.engine.values import Props

__all__ = ["RESOURCE_TYPES"]


def _put_rule(call: Calls, inputs: Props, tags: dict[str, str] | None = None) -> None:
    call(
        "PutRule",
        Name=inputs["name"],
        EventBusName=inputs["eventBusName"],
        EventPattern=inputs.get("eventPattern"),
        State=inputs.get("state"),
        Tags=tag_list(tags or {}),
    )


def _create_rule(call: Calls, inputs: Props) -> str:
    _put_rule(call, inputs, inputs["tagsAll"])
    return str(inputs["name"])


def _pattern(live: str, recorded: str | None) -> str:
    """Return the live pattern, in the text of the state where only the text differs, as the real provider does."""
    return recorded if recorded is not None and json.loads(recorded) == json.loads(live) else live


def _read_rule(call: Calls, name: str, recorded: Props) -> Props | None:
    rule = call.find("DescribeRule", Name=name)
    if rule is None:
        return None
    tags = call("ListTagsForResource", ResourceARN=rule["Arn"])["Tags"]
    return {
        "name": name,
        "arn": rule["Arn"],
        "eventBusName": rule.get("EventBusName", "default"),
        "eventPattern": _pattern(rule["EventPattern"], recorded.get("eventPattern")),
        "state": rule["State"],
        "tags": tag_map(tags),
    }


def _update_rule(call: Calls, _name: str, change: PlannedUpdate) -> None:
    if change.among("eventPattern", "state"):
        _put_rule(call, change.new)


def _delete_rule(call: Calls, name: str, state: Props) -> None:
    call.find("DeleteRule", Name=name, EventBusName=state["eventBusName"], Force=state.get("forceDestroy") or None)


def _create_target(call: Calls, inputs: Props) -> str:
    _update_target(call, "", PlannedUpdate({}, inputs, frozenset()))
    return f"{inputs['rule']}-{inputs['targetId']}"


def _update_target(call: Calls, _resource_id: str, change: PlannedUpdate) -> None:
    new = change.new
    target = {"Id": new["targetId"], "Arn": new["arn"]}
    answer = call("PutTargets", Rule=new["rule"], EventBusName=new["eventBusName"], Targets=[target])
    for failed in answer["FailedEntries"]:
        raise PluginError(f"PutTargets: {failed['TargetId']}: {failed['ErrorCode']}: {failed['ErrorMessage']}")


def _read_target(call: Calls, resource_id: str, recorded: Props) -> Props | None:
    # An import names it RULE/TARGET; the ID of the state can't be split.
    rule, _, target = (
        resource_id.rpartition("/") if "rule" not in recorded else (recorded["rule"], "", recorded["targetId"])
    )
    response = call.find("ListTargetsByRule", Rule=rule)
    live_target = next((each for each in (response or {}).get("Targets", ()) if each["Id"] == target), None)
    if live_target is None:
        return None
    return {
        "id": f"{rule}-{target}",
        "rule": rule,
        "eventBusName": "default",
        "targetId": target,
        "arn": live_target["Arn"],
    }


def _delete_target(call: Calls, _resource_id: str, state: Props) -> None:
    call.find("RemoveTargets", Rule=state["rule"], EventBusName=state["eventBusName"], Ids=[state["targetId"]])


RESOURCE_TYPES: Final = (
    ResourceType(
        "aws:cloudwatch/eventRule:EventRule",
        props=(
            Prop("name"),
            Prop("eventBusName"),
            Prop("eventPattern", required=True),
            Prop("state"),
            Prop("forceDestroy", "boolean", write_only=True),
        ),
        create=_create_rule,
        read=_read_rule,
        update=_update_rule,
        delete=_delete_rule,
        outputs=("arn",),
        tagging=tagging("Resource", "ResourceARN", identify=arn_of),
        retries={"DeleteRule": Retry(300.0, ("Rule can't be deleted since it has targets",))},
    ),
    ResourceType(
        "aws:cloudwatch/eventTarget:EventTarget",
        props=(
            Prop("rule", required=True),
            Prop("arn", required=True),
            Prop("eventBusName"),
            Prop("targetId"),
            Prop("forceDestroy", "boolean", write_only=True),
        ),
        create=_create_target,
        read=_read_target,
        update=_update_target,
        delete=_delete_target,
    ),
)

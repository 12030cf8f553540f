"""Amazon EventBridge: rules on the default event bus, and their targets."""

import json
from typing import Final

from hpkit_local.plugins.aws.calls import Calls, Retry
from hpkit_local.plugins.aws.resource_type import PlannedUpdate, ResourceType, properties
from hpkit_local.plugins.aws.shapes import arn_of, creating, in_list, sent, tag_map, tagging, told
from hpkit_provider.engine.errors import PluginError
from hpkit_provider.engine.values import Props

__all__ = ["RESOURCE_TYPES"]

_RULE: Final = "name eventBusName eventPattern state"


def _pattern(live: str, recorded: str | None) -> str:
    """Return the live pattern, in the text of the state where only the text differs, as the real provider does."""
    return recorded if recorded is not None and json.loads(recorded) == json.loads(live) else live


def _read_rule(call: Calls, name: str, recorded: Props) -> Props | None:
    rule = call.find("DescribeRule", Name=name)
    if rule is None:
        return None
    return {
        "eventBusName": "default",
        **told(rule, f"{_RULE} arn"),
        "eventPattern": _pattern(rule["EventPattern"], recorded.get("eventPattern")),
        "tags": tag_map(call("ListTagsForResource", ResourceARN=rule["Arn"])["Tags"]),
    }


def _update_rule(call: Calls, _name: str, change: PlannedUpdate) -> None:
    if change.among("eventPattern", "state"):
        call("PutRule", **sent(change.new, _RULE))


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
    for live in (response or {}).get("Targets", ()):
        if live["Id"] == target:
            which = {"id": f"{rule}-{target}", "rule": rule, "targetId": target}
            return {**which, "eventBusName": "default", "arn": live["Arn"]}
    return None


def _delete_target(call: Calls, _resource_id: str, state: Props) -> None:
    call.find("RemoveTargets", Rule=state["rule"], EventBusName=state["eventBusName"], Ids=[state["targetId"]])


RESOURCE_TYPES: Final = (
    ResourceType(
        "aws:cloudwatch/eventRule:EventRule",
        props=properties("name eventBusName eventPattern! state forceDestroy:boolean*"),
        create=creating("PutRule", _RULE, made="{name}", tags=in_list),
        read=_read_rule,
        update=_update_rule,
        delete=_delete_rule,
        outputs=("arn",),
        tagging=tagging("Resource", "ResourceARN", identify=arn_of),
        retries={"DeleteRule": Retry(300.0, ("Rule can't be deleted since it has targets",))},
    ),
    ResourceType(
        "aws:cloudwatch/eventTarget:EventTarget",
        props=properties("rule! arn! eventBusName targetId forceDestroy:boolean*"),
        create=_create_target,
        read=_read_target,
        update=_update_target,
        delete=_delete_target,
    ),
)

"""Amazon EventBridge: rules on the default event bus, and their targets."""

from __future__ import annotations

import json
from typing import Final

from hpkit_local.plugins.aws.calls import Calls
from hpkit_local.plugins.aws.resource_type import Change, Prop, ResourceType
from hpkit_local.plugins.aws.shapes import tag_list, tag_map
from hpkit_local.plugins.aws.tagging import arn_of, tagging
from hpkit_provider.engine.errors import PluginError
from hpkit_provider.engine.values import Props

__all__ = ["RESOURCE_TYPES"]


def _put_rule(call: Calls, wanted: Props, tags: dict[str, str] | None = None) -> None:
    call(
        "PutRule",
        Name=wanted["name"],
        EventBusName=wanted["eventBusName"],
        EventPattern=wanted.get("eventPattern"),
        State=wanted.get("state"),
        Tags=tag_list(tags or {}),
    )


def _create_rule(call: Calls, wanted: Props) -> str:
    _put_rule(call, wanted, wanted["tagsAll"])
    return str(wanted["name"])


def _pattern(live: str, known: str | None) -> str:
    """Return the live pattern, in the text of the state where only the text differs, as the real provider does."""
    return known if known is not None and json.loads(known) == json.loads(live) else live


def _read_rule(call: Calls, name: str, known: Props) -> Props | None:
    found = call.find("DescribeRule", Name=name)
    if found is None:
        return None
    tags = call("ListTagsForResource", ResourceARN=found["Arn"])["Tags"]
    return {
        "name": name,
        "arn": found["Arn"],
        "eventBusName": found.get("EventBusName", "default"),
        "eventPattern": _pattern(found["EventPattern"], known.get("eventPattern")),
        "state": found["State"],
        "tags": tag_map(tags),
    }


def _update_rule(call: Calls, _name: str, change: Change) -> None:
    if change.among("eventPattern", "state"):
        _put_rule(call, change.new)


def _delete_rule(call: Calls, name: str, state: Props) -> None:
    call.find("DeleteRule", Name=name, EventBusName=state["eventBusName"], Force=state.get("forceDestroy") or None)


def _create_target(call: Calls, wanted: Props) -> str:
    _update_target(call, "", Change({}, wanted, frozenset()))
    return f"{wanted['rule']}-{wanted['targetId']}"


def _update_target(call: Calls, _resource_id: str, change: Change) -> None:
    new = change.new
    target = {"Id": new["targetId"], "Arn": new["arn"]}
    answer = call("PutTargets", Rule=new["rule"], EventBusName=new["eventBusName"], Targets=[target])
    for failed in answer["FailedEntries"]:
        raise PluginError(f"PutTargets: {failed['TargetId']}: {failed['ErrorCode']}: {failed['ErrorMessage']}")


def _read_target(call: Calls, resource_id: str, known: Props) -> Props | None:
    # An import names it RULE/TARGET; the ID of the state can't be split.
    rule, _, target = resource_id.rpartition("/") if "rule" not in known else (known["rule"], "", known["targetId"])
    found = call.find("ListTargetsByRule", Rule=rule)
    held = next((each for each in (found or {}).get("Targets", ()) if each["Id"] == target), None)
    if held is None:
        return None
    return {
        "id": f"{rule}-{target}",
        "rule": rule,
        "eventBusName": "default",
        "targetId": target,
        "arn": held["Arn"],
    }


def _delete_target(call: Calls, _resource_id: str, state: Props) -> None:
    call.find("RemoveTargets", Rule=state["rule"], EventBusName=state["eventBusName"], Ids=[state["targetId"]])


RESOURCE_TYPES: Final = (
    ResourceType(
        "aws:cloudwatch/eventRule:EventRule",
        "events",
        props=(
            Prop("name"),
            Prop("eventBusName"),
            Prop("eventPattern", required=True),
            Prop("state"),
            Prop("forceDestroy", "boolean", write_only=True),
        ),
        calls="PutRule DescribeRule ListTagsForResource DeleteRule",
        create=_create_rule,
        read=_read_rule,
        update=_update_rule,
        delete=_delete_rule,
        outputs=("arn",),
        tagging=tagging("Resource", "ResourceARN", named=arn_of),
        note="rules with a pattern, on the default event bus",
    ),
    ResourceType(
        "aws:cloudwatch/eventTarget:EventTarget",
        "events",
        props=(
            Prop("rule", required=True),
            Prop("arn", required=True),
            Prop("eventBusName"),
            Prop("targetId"),
            Prop("forceDestroy", "boolean", write_only=True),
        ),
        calls="PutTargets ListTargetsByRule RemoveTargets",
        create=_create_target,
        read=_read_target,
        update=_update_target,
        delete=_delete_target,
        note="targets without a role, an input or a dead-letter queue",
    ),
)

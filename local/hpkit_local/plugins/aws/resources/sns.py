"""Amazon SNS: topics and subscriptions."""

from __future__ import annotations

from typing import Final

from hpkit_local.plugins.aws.calls import Calls
from hpkit_local.plugins.aws.resource_type import PlannedUpdate, Prop, ResourceType
from hpkit_local.plugins.aws.shapes import tagging
from hpkit_provider.engine.errors import PluginError
from hpkit_provider.engine.values import Props

__all__ = ["RESOURCE_TYPES"]

# The provider's name and the attribute's.
_ATTRIBUTES: Final = {"displayName": "DisplayName", "kmsMasterKeyId": "KmsMasterKeyId", "policy": "Policy"}


def _create_topic(call: Calls, inputs: Props) -> str:
    """Create a topic. One that exists is an error, as in pulumi-aws's patch 0017 (non-idempotent topic creation)."""
    arn = f"arn:aws:sns:{call.region}:{call.account}:{inputs['name']}"
    if call.find("GetTopicAttributes", TopicArn=arn) is not None:
        raise PluginError(f"SNS Topic ({arn}) already exists")
    answer = call(
        "CreateTopic",
        Name=inputs["name"],
        Attributes={told: inputs[name] for name, told in _ATTRIBUTES.items() if inputs.get(name)} or None,
        Tags=[{"Key": key, "Value": value} for key, value in inputs["tagsAll"].items()] or None,
    )
    return str(answer["TopicArn"])


def _read_topic(call: Calls, arn: str, _recorded: Props) -> Props | None:
    answer = call.find("GetTopicAttributes", TopicArn=arn)
    if answer is None:
        return None
    attributes = answer["Attributes"]
    tags = call("ListTagsForResource", ResourceArn=arn)["Tags"]
    return {
        **{name: attributes.get(told) or None for name, told in _ATTRIBUTES.items()},
        "name": arn.rpartition(":")[2],
        "arn": arn,
        "owner": attributes["Owner"],
        "tags": {tag["Key"]: tag["Value"] for tag in tags},
    }


def _update_topic(call: Calls, arn: str, change: PlannedUpdate) -> None:
    for name, told in _ATTRIBUTES.items():
        if name in change:
            call("SetTopicAttributes", TopicArn=arn, AttributeName=told, AttributeValue=change.new.get(name, ""))


def _delete_topic(call: Calls, arn: str, _state: Props) -> None:
    call.find("DeleteTopic", TopicArn=arn)


def _subscribe(call: Calls, inputs: Props) -> str:
    answer = call(
        "Subscribe",
        TopicArn=inputs["topic"],
        Protocol=inputs["protocol"],
        Endpoint=inputs["endpoint"],
        ReturnSubscriptionArn=True,
    )
    return str(answer["SubscriptionArn"])


def _read_subscription(call: Calls, arn: str, _recorded: Props) -> Props | None:
    answer = call.find("GetSubscriptionAttributes", SubscriptionArn=arn)
    if answer is None:
        return None
    attributes = answer["Attributes"]
    return {
        "topic": attributes["TopicArn"],
        "protocol": attributes["Protocol"],
        "endpoint": attributes["Endpoint"],
        "arn": arn,
        "pendingConfirmation": attributes.get("PendingConfirmation") == "true",
    }


def _unsubscribe(call: Calls, arn: str, _state: Props) -> None:
    call.find("Unsubscribe", SubscriptionArn=arn)


RESOURCE_TYPES: Final = (
    ResourceType(
        "aws:sns/topic:Topic",
        props=(
            Prop("name"),
            Prop("displayName"),
            Prop("kmsMasterKeyId"),
            Prop("policy", "policy"),
        ),
        create=_create_topic,
        read=_read_topic,
        update=_update_topic,
        delete=_delete_topic,
        outputs=("arn", "owner"),
        tagging=tagging("Resource", "ResourceArn"),
        longest_name=256,
    ),
    ResourceType(
        "aws:sns/topicSubscription:TopicSubscription",
        props=(
            Prop("topic", required=True),
            Prop("protocol", required=True),
            Prop("endpoint", required=True),
        ),
        create=_subscribe,
        read=_read_subscription,
        delete=_unsubscribe,
        outputs=("arn", "pendingConfirmation"),
    ),
)

"""Amazon SNS: topics and subscriptions."""

from typing import Final

from hpkit_local.plugins.aws.calls import Calls
from hpkit_local.plugins.aws.resource_type import PlannedUpdate, ResourceType, properties
from hpkit_local.plugins.aws.shapes import creating, deleting, tag_list, tag_map, tagging, told
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
        Attributes={attribute: inputs[name] for name, attribute in _ATTRIBUTES.items() if inputs.get(name)} or None,
        Tags=tag_list(inputs["tagsAll"]),
    )
    return str(answer["TopicArn"])


def _read_topic(call: Calls, arn: str, _recorded: Props) -> Props | None:
    answer = call.find("GetTopicAttributes", TopicArn=arn)
    if answer is None:
        return None
    attributes = answer["Attributes"]
    return {
        **{name: attributes.get(attribute) or None for name, attribute in _ATTRIBUTES.items()},
        "name": arn.rpartition(":")[2],
        "arn": arn,
        "owner": attributes["Owner"],
        "tags": tag_map(call("ListTagsForResource", ResourceArn=arn)["Tags"]),
    }


def _update_topic(call: Calls, arn: str, change: PlannedUpdate) -> None:
    for name, attribute in _ATTRIBUTES.items():
        if name in change:
            call("SetTopicAttributes", TopicArn=arn, AttributeName=attribute, AttributeValue=change.new.get(name, ""))


def _read_subscription(call: Calls, arn: str, _recorded: Props) -> Props | None:
    answer = call.find("GetSubscriptionAttributes", SubscriptionArn=arn)
    if answer is None:
        return None
    attributes = answer["Attributes"]
    return {
        **told(attributes, "topic=TopicArn protocol endpoint"),
        "arn": arn,
        "pendingConfirmation": attributes.get("PendingConfirmation") == "true",
    }


RESOURCE_TYPES: Final = (
    ResourceType(
        "aws:sns/topic:Topic",
        props=properties("name displayName kmsMasterKeyId policy:policy"),
        create=_create_topic,
        read=_read_topic,
        update=_update_topic,
        delete=deleting("DeleteTopic", "TopicArn"),
        outputs=("arn", "owner"),
        tagging=tagging("Resource", "ResourceArn"),
        longest_name=256,
    ),
    ResourceType(
        "aws:sns/topicSubscription:TopicSubscription",
        props=properties("topic! protocol! endpoint!"),
        create=creating(
            "Subscribe",
            "topic=TopicArn protocol endpoint",
            made="SubscriptionArn",
            also=lambda _: {"ReturnSubscriptionArn": True},
        ),
        read=_read_subscription,
        delete=deleting("Unsubscribe", "SubscriptionArn"),
        outputs=("arn", "pendingConfirmation"),
    ),
)

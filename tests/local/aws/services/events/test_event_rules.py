"""EventBridge: which rules and targets are rejected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Refused = Callable[..., str]
TOPIC = "arn:aws:sns:us-west-2:123456789012:alerts"
PATTERN = '{"source":["aws.sagemaker"]}'


@pytest.fixture
def events(cloud: Any) -> Any:
    client = cloud.endpoint.client("events")
    client.put_rule(Name="rule", EventPattern=PATTERN)
    return client


@pytest.mark.parametrize(
    ("pattern", "said"),
    [("{", "Invalid JSON"), ('["aws.sagemaker"]', "Filter is not an object")],
    ids=["no JSON", "no object"],
)
def test_a_pattern_is_an_object_in_json(events: Any, refused: Refused, pattern: str, said: str) -> None:
    assert said in refused("InvalidEventPatternException", events.put_rule, Name="other", EventPattern=pattern)


def test_a_rule_with_targets_is_not_deleted(events: Any, refused: Refused) -> None:
    events.put_targets(Rule="rule", Targets=[{"Id": "alerts", "Arn": TOPIC}])
    assert "since it has targets" in refused("ValidationException", events.delete_rule, Name="rule")
    events.remove_targets(Rule="rule", Ids=["alerts"])
    events.delete_rule(Name="rule")
    assert "rule" in refused("ResourceNotFoundException", events.describe_rule, Name="rule")


def test_a_rule_has_five_targets(events: Any, refused: Refused) -> None:
    targets = [{"Id": str(number), "Arn": TOPIC} for number in range(6)]
    events.put_targets(Rule="rule", Targets=targets[:5])
    events.put_targets(Rule="rule", Targets=targets[:1])
    assert "exceeds the maximum" in refused("LimitExceededException", events.put_targets, Rule="rule", Targets=targets)


def test_targets_are_in_the_region_of_their_rule(events: Any, refused: Refused) -> None:
    target = {"Id": "alerts", "Arn": TOPIC.replace("us-west-2", "us-east-1")}
    assert "region us-west-2" in refused("ValidationException", events.put_targets, Rule="rule", Targets=[target])

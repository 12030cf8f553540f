"""Managed Prometheus: alert manager definitions, and which of them are rejected."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

Refused = Callable[..., str]
DEFINITION = b"alertmanager_config: '{route: {receiver: a}, receivers: [{name: a}]}'"
NOWHERE = "ws-00000000-0000-0000-0000-000000000000"
TOPIC = "arn:aws:sns:us-west-2:123456789012:alerts"


def test_alerts_go_to_a_workspace_that_is_there_and_have_one_definition(cloud: Any, refused: Refused) -> None:
    amp = cloud.endpoint.client("amp")
    assert NOWHERE in refused(
        "ResourceNotFoundException", amp.create_alert_manager_definition, workspaceId=NOWHERE, data=DEFINITION
    )
    which = {"workspaceId": amp.create_workspace(alias="a")["workspaceId"]}
    assert "definition not found" in refused(
        "ResourceNotFoundException", amp.describe_alert_manager_definition, **which
    )
    amp.create_alert_manager_definition(**which, data=DEFINITION)
    assert "already exists" in refused(
        "ConflictException", amp.create_alert_manager_definition, **which, data=DEFINITION
    )


def _definition(**config: Any) -> bytes:
    return json.dumps({"alertmanager_config": json.dumps(config)}).encode()


def _sns(**receiver: Any) -> bytes:
    return _definition(route={"receiver": "a"}, receivers=[{"name": "a", "sns_configs": [receiver]}])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"route: {receiver: a}", "alertmanager_config is not a mapping"),
        (b"alertmanager_config: '{'", "alertmanager_config: "),
        (_definition(route={"receiver": "a"}), "undefined receiver 'a' used in route"),
        (
            _definition(route={"receiver": "a"}, receivers=[{"name": "a", "email_configs": [{"to": "a@b.c"}]}]),
            "receiver 'a' has email_configs: only sns_configs are supported",
        ),
        (_sns(topic_arn=TOPIC), "sns_configs need topic_arn and sigv4.region"),
        (_sns(sigv4={"region": "us-west-2"}), "sns_configs need topic_arn and sigv4.region"),
    ],
    ids=["no mapping", "no YAML", "no receiver", "by email", "no region", "no topic"],
)
def test_a_definition_of_alerts_is_refused(cloud: Any, refused: Callable[..., str], data: bytes, message: str) -> None:
    amp = cloud.endpoint.client("amp")
    workspace = amp.create_workspace(alias="a")["workspaceId"]
    wanted = {"workspaceId": workspace, "data": data}
    assert message in refused("ValidationException", amp.create_alert_manager_definition, **wanted)
    good = _sns(topic_arn=TOPIC, sigv4={"region": "us-west-2"})
    amp.create_alert_manager_definition(workspaceId=workspace, data=good)
    assert message in refused("ValidationException", amp.put_alert_manager_definition, **wanted)

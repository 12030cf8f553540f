"""Identity Center for Grafana, and the topic for alerts: existing, missing, or unknown."""

import json

import pytest

from hpkit.clients.calls import FailedCall, Responses
from hpkit.plan.derive import derive
from hpkit.preflight.calls import IDENTITY_CENTER, first_calls, further_calls, key_policy, topic
from hpkit.preflight.observability import check_observability
from tests.builders import organization, typed
from tests.program.recorder import recording_of

TOPIC = "arn:aws:sns:us-west-2:123456789012:ops"
INSTANCE = {"InstanceArn": "arn:aws:sso:::instance/ssoins-0a1b2c3d4e5f6071", "Status": "ACTIVE"}
DENIED = FailedCall("sso:ListInstances", "AccessDeniedException", "not allowed")


def plan_of(**observability):
    return derive(typed(organization(environment={"observability": observability})), "dev")


def row(call, response, **observability):
    (found,) = check_observability(plan_of(**observability), Responses({call.key: response}))
    return found


def policy(**statement):
    return {"Attributes": {"Policy": json.dumps({"Statement": [{"Effect": "Allow", **statement}]})}}


def test_they_are_asked_for_where_the_stack_needs_them_alone():
    asked = {call.key for call in first_calls(recording_of(plan_of(grafana=True)))}
    assert IDENTITY_CENTER.key in asked
    alerts = {"prometheus": True, "alerts": {"snsTopicArn": TOPIC}}
    asked = {call.key for call in first_calls(recording_of(plan_of(**alerts)))}
    assert topic(TOPIC).key in asked
    assert IDENTITY_CENTER.key not in asked
    own = plan_of(prometheus=True, alerts={"emails": ["ops@example.com"]})
    assert list(check_observability(own, Responses({}))) == []
    assert IDENTITY_CENTER.action == "sso:ListInstances"


@pytest.mark.parametrize(
    ("response", "status"),
    [
        ({"Attributes": {}}, "ok"),
        (FailedCall("sns:GetTopicAttributes", "NotFound", "Topic does not exist"), "missing"),
        (DENIED, "unknown"),
    ],
)
def test_the_topic_of_grafanas_alerts_has_to_be_there(response, status):
    given = {"grafana": True, "grafanaAlerts": {"snsTopicArn": TOPIC}}
    assert topic(TOPIC).key in {call.key for call in first_calls(recording_of(plan_of(**given)))}
    answers = Responses({topic(TOPIC).key: response, IDENTITY_CENTER.key: {"Instances": [INSTANCE]}})
    (found,) = [each for each in check_observability(plan_of(**given), answers) if TOPIC in each.what]
    assert found.status == status
    assert found.fix or status == "ok"


@pytest.mark.parametrize(
    ("response", "status", "found"),
    [
        ({"Instances": [INSTANCE]}, "ok", INSTANCE["InstanceArn"]),
        ({"Instances": []}, "missing", "none in any region"),
        (
            {"Instances": [{**INSTANCE, "Status": "CREATE_IN_PROGRESS"}]},
            "unknown",
            f"{INSTANCE['InstanceArn']} CREATE_IN_PROGRESS",
        ),
        (DENIED, "unknown", ""),
    ],
)
def test_grafana_needs_identity_center(response, status, found):
    result = row(IDENTITY_CENTER, response, grafana=True)
    assert (result.status, result.found) == (status, found)
    assert result.fix or status == "ok"


@pytest.mark.parametrize(
    ("response", "status"),
    [
        (policy(Principal={"Service": "aps.amazonaws.com"}, Action=["sns:Publish", "sns:GetTopicAttributes"]), "ok"),
        (policy(Principal={"Service": ["events.amazonaws.com", "aps.amazonaws.com"]}, Action="SNS:Publish"), "ok"),
        (policy(Principal={"Service": "aps.amazonaws.com"}, Action="sns:GetTopicAttributes"), "missing"),
        (policy(Principal={"AWS": "*"}, Action="sns:Publish"), "missing"),
        (policy(Effect="Deny", Principal={"Service": "aps.amazonaws.com"}, Action="sns:Publish"), "missing"),
        (FailedCall("sns:GetTopicAttributes", "NotFound", "Topic does not exist"), "missing"),
        (FailedCall("sns:GetTopicAttributes", "AuthorizationError", "not allowed"), "unknown"),
    ],
)
def test_a_topic_that_is_there_has_to_let_managed_prometheus_publish(response, status):
    result = row(topic(TOPIC), response, prometheus=True, alerts={"snsTopicArn": TOPIC})
    assert result.status == status
    assert result.fix or status == "ok"


EVENTS = {"snsTopicArn": TOPIC, "events": {}}
BOTH = ["events.amazonaws.com", "aps.amazonaws.com"]


@pytest.mark.parametrize(
    ("statement", "status", "found"),
    [
        ({"Principal": {"Service": BOTH}}, "ok", "lets aps.amazonaws.com, events.amazonaws.com publish"),
        ({"Principal": {"Service": BOTH[1]}}, "missing", "its policy doesn't allow events.amazonaws.com"),
        (
            {"Principal": {"Service": BOTH}, "Condition": {"ArnEquals": {"aws:SourceArn": "x"}}},
            "missing",
            "its policy doesn't allow events.amazonaws.com",
        ),
    ],
    ids=["both", "one", "under a condition"],
)
def test_a_topic_that_is_there_has_to_let_eventbridge_publish_without_a_condition(statement, status, found):
    result = row(topic(TOPIC), policy(Action="sns:Publish", **statement), prometheus=True, alerts=EVENTS)
    assert (result.status, result.found) == (status, found)


KEY = "arn:aws:kms:us-west-2:123456789012:key/1"


def encrypted(key, response):
    """Return the row of an encrypted topic, and the resulting calls."""
    sent = policy(Principal={"Service": BOTH}, Action="sns:Publish")
    sent["Attributes"]["KmsMasterKeyId"] = key
    answers = Responses({topic(TOPIC).key: sent, key_policy(key).key: response})
    plan = plan_of(alerts=EVENTS)
    (found,) = check_observability(plan, answers)
    return found


def key_of(**statement):
    return {"Policy": json.dumps({"Statement": {"Effect": "Allow", "Action": ["kms:GenerateDataKey*"], **statement}})}


@pytest.mark.parametrize(
    ("key", "response", "status"),
    [
        (KEY, key_of(Principal={"Service": "events.amazonaws.com"}), "ok"),
        (KEY, key_of(Principal={"Service": "aps.amazonaws.com"}), "missing"),
        (KEY, key_of(Principal={"Service": "events.amazonaws.com"}, Condition={"StringEquals": {}}), "missing"),
        (KEY, FailedCall("kms:GetKeyPolicy", "AccessDeniedException", "not allowed"), "unknown"),
        ("alias/aws/sns", None, "missing"),
        ("alias/ours", None, "unknown"),
    ],
)
def test_the_key_of_a_topic_lets_its_senders_encrypt(key, response, status):
    result = encrypted(key, response)
    assert result.status == status
    assert result.fix or status == "ok"


def test_the_policy_of_a_topics_key_is_asked_for():
    sent = {"Attributes": {"KmsMasterKeyId": KEY}}
    program = recording_of(plan_of(alerts=EVENTS))
    answers = {each.key: FailedCall("any", "AccessDenied", "not allowed") for each in first_calls(program)}
    asked = further_calls(program.plan, Responses({**answers, topic(TOPIC).key: sent}))
    assert key_policy(KEY).key in {each.key for each in asked}

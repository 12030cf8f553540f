"""Checks whether Managed Grafana's users can sign in, and whether alerts can be sent to the file's topics."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from hpkit.clients.calls import FailedCall, Responses
from hpkit.plan.model import Plan
from hpkit.preflight.calls import IDENTITY_CENTER, alerts_topic, key_policy, topic
from hpkit.preflight.model import CheckResult, call_failed, missing, ok, unknown
from hpkit.text.formatting import listing

__all__ = ["check_observability"]

_AREA: Final = "observability"
_METRICS: Final = "aps.amazonaws.com"
_EVENTS: Final = "events.amazonaws.com"
_SENDS: Final = ("*", "sns:*", "sns:publish")
_ENCRYPTS: Final = ("*", "kms:*", "kms:generatedatakey", "kms:generatedatakey*")
_HOW: Final = {
    _METRICS: f"Add to its policy: Allow sns:Publish and sns:GetTopicAttributes to the service {_METRICS}, with the "
    "workspace in aws:SourceArn once it exists, and the account in aws:SourceAccount.",
    # EventBridge user guide, "Using resource-based policies for Amazon EventBridge", section "Amazon SNS permissions".
    _EVENTS: f"Add to its policy: Allow sns:Publish to the service {_EVENTS}, without a condition, because EventBridge "
    "supports none.",
}


def check_observability(plan: Plan, responses: Responses) -> Iterator[CheckResult]:
    """Check IAM Identity Center where the stack has Grafana, and the topic of alerts where it is there already."""
    spec = plan.spec.observability
    if spec is None:
        return
    if spec.grafana:
        yield _identity_center(responses)
    arn = alerts_topic(plan)
    if arn is not None:
        senders = [_METRICS] if spec.prometheus else []
        senders += [_EVENTS] if spec.alerts is not None and spec.alerts.events is not None else []
        yield _topic(arn, senders, responses)
    if spec.grafana and spec.grafana_alerts is not None and spec.grafana_alerts.sns_topic_arn is not None:
        yield _grafana_topic(spec.grafana_alerts.sns_topic_arn, responses)


def _identity_center(responses: Responses) -> CheckResult:
    """Check what Managed Grafana requires before it creates a workspace.

    Otherwise it reports that SSO isn't enabled.
    """
    subject, needed = "IAM Identity Center for Grafana", "an instance that is ACTIVE"
    response = responses.of(IDENTITY_CENTER)
    if isinstance(response, FailedCall):
        return call_failed(_AREA, subject, response, needed=needed)
    instances = response["Instances"]
    active = next((each for each in instances if each.get("Status", "ACTIVE") == "ACTIVE"), None)
    if active is not None:
        return ok(_AREA, subject, found=active["InstanceArn"], needed=needed)
    if instances:
        state = ", ".join(f"{each['InstanceArn']} {each['Status']}" for each in instances)
        why = "Grafana can use it once it is ACTIVE"
        return unknown(_AREA, subject, why=why, fix="Wait, then run the command again", found=state, needed=needed)
    fix = (
        "Enable IAM Identity Center (for the organization, in any region), or remove observability.grafana "
        "and import the dashboards into another Grafana"
    )
    return missing(_AREA, subject, found="none in any region", needed=needed, fix=fix)


def _topic(arn: str, senders: Sequence[str], responses: Responses) -> CheckResult:
    subject, needed = f"topic {arn} of alerts", f"lets {listing(senders)} publish"
    response = responses.of(topic(arn))
    if isinstance(response, FailedCall) and response.is_absence:
        fix = "Create it, use another topic, or set `alerts.emails` to have hpkit create one"
        return missing(_AREA, subject, found="missing", needed=needed, fix=fix)
    if isinstance(response, FailedCall):
        return call_failed(_AREA, subject, response, needed=needed)
    attributes = response["Attributes"]
    shut_out = [each for each in senders if not _lets_publish(attributes.get("Policy", "{}"), each)]
    if shut_out:
        said = f"its policy doesn't allow {listing(shut_out)}"
        return missing(_AREA, subject, found=said, needed=needed, fix=" ".join(_HOW[each] for each in shut_out))
    if attributes.get("KmsMasterKeyId"):
        return _key(subject, attributes["KmsMasterKeyId"], senders, responses)
    return ok(_AREA, subject, found=needed, needed=needed)


def _key(subject: str, key: str, senders: Sequence[str], responses: Responses) -> CheckResult:
    """Check that the key of an encrypted topic lets its senders encrypt.

    Source: Amazon SNS developer guide, "Enable compatibility between event sources from AWS services and encrypted
    topics": the key is a customer managed one, and a condition on the source isn't supported for EventBridge.
    """
    needed = f"its key lets {listing(senders)} encrypt"
    fix = (
        f"Allow kms:GenerateDataKey* and kms:Decrypt to {listing(senders)} in the policy of a customer managed key, "
        f"for {_EVENTS} without a condition, and encrypt the topic with that key"
    )
    if key == "alias/aws/sns":
        return missing(_AREA, subject, found=f"{key}, whose policy allows no service", needed=needed, fix=fix)
    if key.startswith("alias/"):
        return unknown(_AREA, subject, why=f"KMS has no policy by alias ({key})", fix=fix, found=key, needed=needed)
    response = responses.of(key_policy(key))
    if isinstance(response, FailedCall):
        return call_failed(_AREA, subject, response, needed=needed)
    shut_out = [each for each in senders if not _allows(response["Policy"], each, _ENCRYPTS)]
    if shut_out:
        said = f"the policy of {key} doesn't allow {listing(shut_out)}"
        return missing(_AREA, subject, found=said, needed=needed, fix=fix)
    return ok(_AREA, subject, found=needed, needed=needed)


def _grafana_topic(arn: str, responses: Responses) -> CheckResult:
    """Check that the topic is there: in its own account the right that the workspace's role gets is enough."""
    subject, needed = f"topic {arn} of Grafana's alerts", "an existing topic"
    response = responses.of(topic(arn))
    if isinstance(response, FailedCall) and response.is_absence:
        fix = "Create it, or set `grafanaAlerts.snsTopicArn` to another topic"
        return missing(_AREA, subject, found="missing", needed=needed, fix=fix)
    if isinstance(response, FailedCall):
        return call_failed(_AREA, subject, response, needed=needed)
    return ok(_AREA, subject, found="exists", needed=needed)


def _lets_publish(policy: str, sender: str) -> bool:
    """Return whether a policy allows it, under some condition if the sender supports one.

    The workspace in the condition might not exist yet.
    """
    return _allows(policy, sender, _SENDS)


def _allows(policy: str, sender: str, actions: Sequence[str]) -> bool:
    statements = [each for each in _several(json.loads(policy).get("Statement")) if each.get("Effect") == "Allow"]
    return any(
        any(str(action).lower() in actions for action in _several(statement.get("Action")))
        and _is_for(statement, sender)
        and not (sender == _EVENTS and statement.get("Condition"))
        for statement in statements
    )


def _is_for(statement: Mapping[str, Any], sender: str) -> bool:
    principal = statement.get("Principal")
    return isinstance(principal, dict) and sender in _several(principal.get("Service"))


def _several(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]

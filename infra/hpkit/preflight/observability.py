"""Whether Managed Grafana can sign its users in, and whether alerts may go to the topics that the file names."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from hpkit.clients.calls import FailedCall, Responses
from hpkit.plan.model import Plan
from hpkit.preflight.calls import IDENTITY_CENTER, topic
from hpkit.preflight.model import CheckResult, call_failed, missing, ok, unknown

__all__ = ["check_observability"]

_AREA: Final = "observability"
_SENDER: Final = "aps.amazonaws.com"
_SENDS: Final = ("*", "sns:*", "sns:publish")


def check_observability(plan: Plan, responses: Responses) -> Iterator[CheckResult]:
    """Check IAM Identity Center where the stack has Grafana, and the topic of alerts where it is there already."""
    spec = plan.spec.observability
    if spec is None:
        return
    if spec.grafana:
        yield _identity_center(responses)
    if spec.prometheus and spec.alerts is not None and spec.alerts.sns_topic_arn is not None:
        yield _topic(spec.alerts.sns_topic_arn, responses)
    if spec.grafana and spec.grafana_alerts is not None and spec.grafana_alerts.sns_topic_arn is not None:
        yield _grafana_topic(spec.grafana_alerts.sns_topic_arn, responses)


def _identity_center(responses: Responses) -> CheckResult:
    """Check what Managed Grafana asks for before it makes a workspace; else it says that SSO is not enabled."""
    what, needed = "IAM Identity Center for Grafana", "an instance that is ACTIVE"
    found = responses.of(IDENTITY_CENTER)
    if isinstance(found, FailedCall):
        return call_failed(_AREA, what, found, needed=needed)
    instances = found["Instances"]
    active = next((each for each in instances if each.get("Status", "ACTIVE") == "ACTIVE"), None)
    if active is not None:
        return ok(_AREA, what, found=active["InstanceArn"], needed=needed)
    if instances:
        state = ", ".join(f"{each['InstanceArn']} {each['Status']}" for each in instances)
        why = "Grafana can use it once it is ACTIVE"
        return unknown(_AREA, what, why=why, fix="Wait, then run the command again", found=state, needed=needed)
    fix = "Enable IAM Identity Center (for the organization, in any region), or remove observability.grafana"
    return missing(_AREA, what, found="none in any region", needed=needed, fix=fix)


def _topic(arn: str, responses: Responses) -> CheckResult:
    what, needed = f"topic {arn} of alerts", f"lets {_SENDER} publish"
    found = responses.of(topic(arn))
    if isinstance(found, FailedCall) and found.is_absence:
        fix = "Create it, use another topic, or set alerts.emails to have the kit create one"
        return missing(_AREA, what, found="missing", needed=needed, fix=fix)
    if isinstance(found, FailedCall):
        return call_failed(_AREA, what, found, needed=needed)
    if _lets_publish(found["Attributes"].get("Policy", "{}")):
        return ok(_AREA, what, found=needed, needed=needed)
    fix = (
        f"Add to its policy: Allow sns:Publish and sns:GetTopicAttributes to the service {_SENDER}, with the "
        "workspace in aws:SourceArn once it exists, and the account in aws:SourceAccount"
    )
    return missing(_AREA, what, found=f"its policy doesn't allow {_SENDER}", needed=needed, fix=fix)


def _grafana_topic(arn: str, responses: Responses) -> CheckResult:
    """Check that the topic is there: in its own account the right that the workspace's role gets is enough."""
    what, needed = f"topic {arn} of Grafana's alerts", "an existing topic"
    found = responses.of(topic(arn))
    if isinstance(found, FailedCall) and found.is_absence:
        fix = "Create it, or set grafanaAlerts.snsTopicArn to another topic"
        return missing(_AREA, what, found="missing", needed=needed, fix=fix)
    if isinstance(found, FailedCall):
        return call_failed(_AREA, what, found, needed=needed)
    return ok(_AREA, what, found="exists", needed=needed)


def _lets_publish(policy: str) -> bool:
    """Return whether a policy allows it under some condition: the workspace that it names may not be made yet."""
    statements = _several(json.loads(policy).get("Statement"))
    return any(each.get("Effect") == "Allow" and _sends(each) and _is_for_sender(each) for each in statements)


def _sends(statement: Mapping[str, Any]) -> bool:
    return any(str(action).lower() in _SENDS for action in _several(statement.get("Action")))


def _is_for_sender(statement: Mapping[str, Any]) -> bool:
    principal = statement.get("Principal")
    return isinstance(principal, dict) and _SENDER in _several(principal.get("Service"))


def _several(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]

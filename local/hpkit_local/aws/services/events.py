"""Amazon EventBridge: moto. Rules receive no events: nothing here sends any."""

import json
from typing import Any, Final

from hpkit_local.aws.api import rule
from hpkit_local.aws.backend import Context, Record
from hpkit_local.aws.errors import ServiceError
from hpkit_local.aws.service import Service, declare

__all__: list[str] = []

declare(
    Service(
        "events",
        rejects_with="ValidationException",
        source="https://docs.aws.amazon.com/eventbridge/latest/APIReference/CommonErrors.html",
        moto="events",
    )
)


_TARGETS: Final = 5


# Inferred from: https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-create-pattern.html
@rule("events", "PutRule")
def _pattern(_: Context, params: Record) -> None:
    """Reject a pattern that is JSON, but not an object; moto rejects what isn't JSON."""
    try:
        pattern = json.loads(params.get("EventPattern") or "{}")
    except ValueError:
        return
    if not isinstance(pattern, dict):
        raise ServiceError(
            "InvalidEventPatternException", "Event pattern is not valid. Reason: Filter is not an object"
        )


# Inferred from: https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-targets.html
@rule("events", "PutTargets")
def _targets(ctx: Context, params: Record) -> None:
    """Reject a sixth target, and targets in other regions.

    Source: EventBridge user guide, "Amazon EventBridge quotas" (targets per rule), and "Event bus targets in Amazon
    EventBridge" (a rule's targets are in its region).
    """
    for target in params["Targets"]:
        region = target["Arn"].split(":")[3:4]
        if region not in ([], [""], [ctx.region]):
            message = f"Parameter {target['Arn']} is not valid. Reason: Provided Arn is not in the region {ctx.region}."
            raise ServiceError("ValidationException", message)
    rules: dict[str, Any] = ctx.backend.moto.backend("events", ctx.region).event_buses["default"].rules
    held = rules[params["Rule"]].targets if params["Rule"] in rules else []
    if len({target["Id"] for target in (*held, *params["Targets"])}) > _TARGETS:
        # Source: https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-quota.html
        raise ServiceError("LimitExceededException", "The requested resource exceeds the maximum number allowed.")

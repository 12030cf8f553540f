"""Amazon EventBridge: moto. Rules receive no events: nothing here sends any."""

from hpkit_local.aws.service import Service, declare

declare(
    Service(
        "events",
        refuses_with="ValidationException",
        source="https://docs.aws.amazon.com/eventbridge/latest/APIReference/CommonErrors.html",
        moto="events",
        first_call=("{}", {"X-Amz-Target": "AWSEvents.ListRules"}),
    )
)

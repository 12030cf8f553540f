"""Amazon Managed Service for Prometheus: moto, and alert manager definitions."""

from hpkit_local.aws.service import Service, declare

declare(
    Service(
        "amp",
        refuses_with="ValidationException",
        source="https://docs.aws.amazon.com/prometheus/latest/APIReference/CommonErrors.html",
        moto="amp",
        signs_as="aps",
    )
)

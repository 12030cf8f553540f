"""AWS Service Quotas: moto."""

from hpkit_local.aws.service import Service, declare

declare(
    Service(
        "service-quotas",
        rejects_with="IllegalArgumentException",
        source="https://docs.aws.amazon.com/servicequotas/2019-06-24/apireference/API_GetServiceQuota.html",
        moto="servicequotas",
        signs_as="servicequotas",
    )
)

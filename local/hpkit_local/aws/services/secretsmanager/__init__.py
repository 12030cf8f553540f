"""AWS Secrets Manager: moto."""

from hpkit_local.aws.service import Service, declare

declare(
    Service(
        "secretsmanager",
        refuses_with="ValidationException",
        source="https://docs.aws.amazon.com/secretsmanager/latest/apireference/CommonErrors.html",
        moto="secretsmanager",
        first_call=("{}", {"X-Amz-Target": "secretsmanager.ListSecrets"}),
    )
)

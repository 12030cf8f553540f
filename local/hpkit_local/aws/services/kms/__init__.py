"""AWS KMS: moto."""

from hpkit_local.aws.service import Service, declare

declare(
    Service(
        "kms",
        refuses_with="ValidationException",
        source="https://docs.aws.amazon.com/kms/latest/APIReference/CommonErrors.html",
        moto="kms",
        first_call=("{}", {"X-Amz-Target": "TrentService.ListKeys"}),
    )
)

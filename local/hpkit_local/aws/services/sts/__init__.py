"""AWS STS: moto, and callers with a session of an IAM role."""

from hpkit_local.aws.service import Service, declare

declare(
    Service(
        "sts",
        refuses_with="ValidationError",
        source="https://docs.aws.amazon.com/STS/latest/APIReference/CommonErrors.html",
        moto="sts",
        in_moto_globally=True,
        first_call=(
            "Action=GetCallerIdentity&Version=2011-06-15",
            {"Content-Type": "application/x-www-form-urlencoded"},
        ),
    )
)

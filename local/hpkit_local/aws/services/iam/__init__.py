"""AWS IAM: moto, with its gaps filled."""

from hpkit_local.aws.service import Service, declare

declare(
    Service(
        "iam",
        refuses_with="ValidationError",
        source="https://docs.aws.amazon.com/IAM/latest/APIReference/CommonErrors.html",
        moto="iam",
        in_moto_globally=True,
        first_call=("Action=ListRoles&Version=2010-05-08", {"Content-Type": "application/x-www-form-urlencoded"}),
    )
)

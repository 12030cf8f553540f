"""Amazon EC2: moto, with its gaps filled."""

from hpkit_local.aws.service import Service, declare

declare(
    Service(
        "ec2",
        rejects_with="InvalidParameterValue",
        source="https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html",
        moto="ec2",
    )
)

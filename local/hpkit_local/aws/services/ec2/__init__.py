"""Amazon EC2: moto, with its gaps filled and its load of instance types postponed."""

from hpkit_local.aws.service import Service, declare

declare(
    Service(
        "ec2",
        rejects_with="InvalidParameterValue",
        source="https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html",
        moto="ec2",
        first_call=(
            "Action=DescribeAvailabilityZones&Version=2016-11-15",
            {"Content-Type": "application/x-www-form-urlencoded"},
        ),
    )
)

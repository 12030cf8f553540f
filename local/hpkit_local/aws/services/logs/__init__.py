"""Amazon CloudWatch Logs: moto, and another key for an existing log group."""

from hpkit_local.aws.service import Service, declare

declare(
    Service(
        "logs",
        refuses_with="InvalidParameterException",
        source="https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_CreateLogGroup.html",
        moto="logs",
        first_call=("{}", {"X-Amz-Target": "Logs_20140328.DescribeLogGroups"}),
    )
)

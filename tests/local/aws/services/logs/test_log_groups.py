"""CloudWatch Logs: the KMS key of a log group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Refused = Callable[..., str]


def test_a_key_is_of_a_log_group_that_is_there(cloud: Any, refused: Refused) -> None:
    logs, name = cloud.endpoint.client("logs"), "/aws/eks/train/cluster"
    key = cloud.endpoint.client("kms").create_key()["KeyMetadata"]["Arn"]
    refused("ResourceNotFoundException", logs.associate_kms_key, logGroupName=name, kmsKeyId=key)
    logs.create_log_group(logGroupName=name)
    logs.associate_kms_key(logGroupName=name, kmsKeyId=key)
    (group,) = logs.describe_log_groups(logGroupNamePrefix=name)["logGroups"]
    assert group["kmsKeyId"] == key
    logs.disassociate_kms_key(logGroupName=name)
    (group,) = logs.describe_log_groups(logGroupNamePrefix=name)["logGroups"]
    assert "kmsKeyId" not in group

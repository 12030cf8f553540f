"""hpkit's buckets: private, encrypted, versioned, TLS only, with the writers in their policy."""

from __future__ import annotations

import pulumi
import pulumi_aws as aws

from hpkit.program.components.common.base import Component

__all__ = ["harden"]

_OLD_VERSIONS_DAYS = 90


def harden(
    component: Component,
    name: str,
    bucket: aws.s3.Bucket,
    *,
    policy: pulumi.Output[str],
    key_arn: str | None = None,
    keep_policy: bool = False,
) -> list[pulumi.Resource]:
    """Return what must be in effect before a bucket is written to; name: the prefix of all its resources.

    key_arn: None for S3's key; keep_policy: the caller can't decide on the policy, and doesn't change it.
    """
    private = aws.s3.BucketPublicAccessBlock(
        name,
        bucket=bucket.id,
        block_public_acls=True,
        block_public_policy=True,
        ignore_public_acls=True,
        restrict_public_buckets=True,
        opts=component.child(),
    )
    owned = aws.s3.BucketOwnershipControls(
        name, bucket=bucket.id, rule={"object_ownership": "BucketOwnerEnforced"}, opts=component.child()
    )
    encrypted = aws.s3.BucketServerSideEncryptionConfiguration(
        name,
        bucket=bucket.id,
        rules=[
            aws.s3.BucketServerSideEncryptionConfigurationRuleArgs(
                apply_server_side_encryption_by_default=_by_default(key_arn), bucket_key_enabled=key_arn is not None
            )
        ],
        opts=component.child(),
    )
    versioned = aws.s3.BucketVersioning(
        name, bucket=bucket.id, versioning_configuration={"status": "Enabled"}, opts=component.child()
    )
    aws.s3.BucketLifecycleConfiguration(
        name,
        bucket=bucket.id,
        rules=[
            {
                "id": "old-versions",
                "status": "Enabled",
                "filter": {"prefix": ""},
                "noncurrent_version_expiration": {"noncurrent_days": _OLD_VERSIONS_DAYS},
            }
        ],
        opts=component.child(after=[versioned]),
    )
    guarded = aws.s3.BucketPolicy(
        name,
        bucket=bucket.id,
        policy=policy,
        opts=pulumi.ResourceOptions.merge(
            component.child(after=[private]),
            pulumi.ResourceOptions(ignore_changes=["policy"] if keep_policy else None),
        ),
    )
    return [private, owned, encrypted, versioned, guarded]


def _by_default(
    key_arn: str | None,
) -> aws.s3.BucketServerSideEncryptionConfigurationRuleApplyServerSideEncryptionByDefaultArgs:
    return aws.s3.BucketServerSideEncryptionConfigurationRuleApplyServerSideEncryptionByDefaultArgs(
        sse_algorithm="aws:kms" if key_arn else "AES256", kms_master_key_id=key_arn
    )

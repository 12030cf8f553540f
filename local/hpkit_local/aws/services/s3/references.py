"""Buckets and objects that requests to other services refer to."""

from __future__ import annotations

from urllib.parse import urlparse

from hpkit_local.aws.backend import Context
from hpkit_local.aws.errors import ServiceError

__all__ = ["object_exists", "object_key_arn", "require_bucket"]

INVALID = "ValidationException"


# Inferred from: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ClusterLifeCycleConfig.html
def require_bucket(ctx: Context, uri: str) -> None:
    """Reject an S3 URI whose bucket does not exist."""
    bucket = urlparse(uri).netloc
    if bucket not in ctx.backend.moto.backend("s3", ctx.region).buckets:
        raise ServiceError(INVALID, f"The S3 bucket '{bucket}' of {uri} does not exist or cannot be read")


def object_exists(ctx: Context, uri: str, name: str) -> bool:
    """Return whether the object `name` is under an S3 URI."""
    parsed = urlparse(uri)
    bucket = ctx.backend.moto.backend("s3", ctx.region).buckets.get(parsed.netloc)
    prefix = parsed.path.strip("/")
    return bucket is not None and bucket.keys.get(f"{prefix}/{name}" if prefix else name) is not None


def object_key_arn(ctx: Context, uri: str, name: str) -> str:
    """Return the key of the account that an object under an S3 URI is encrypted with, empty for S3's own keys."""
    parsed = urlparse(uri)
    bucket = ctx.backend.moto.backend("s3", ctx.region).buckets.get(parsed.netloc)
    prefix = parsed.path.strip("/")
    found = None if bucket is None else bucket.keys.get(f"{prefix}/{name}" if prefix else name)
    key = "" if found is None or found.encryption != "aws:kms" else str(found.kms_key_id or "")
    return key if ":key/" in key else ""

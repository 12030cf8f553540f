"""Amazon S3: moto, with bucket policies that have conditions.

Corrects what moto 5.2 gets wrong in S3:

- It ignores conditions in bucket policies. A statement that rejects requests without TLS would then reject everything.
  Loopback counts as TLS here, and statements with other conditions are skipped.
- It keeps an index of bucket names outside its backends.
- It ignores the tags in CreateBucketConfiguration.
"""

import json
import re
from html import unescape
from typing import Any, Final
from urllib.parse import urlparse

from moto.iam.access_control import IAMPolicy, PermissionResult
from moto.s3.models import FakeBucket, s3_backends
from moto.s3.responses import S3Response

from hpkit_local.aws.api import rule
from hpkit_local.aws.backend import Context, Record
from hpkit_local.aws.errors import ServiceError
from hpkit_local.aws.moto_state import swapped
from hpkit_local.aws.service import Service, declare

__all__ = ["object_exists", "object_key_arn", "require_bucket"]

declare(
    Service(
        "s3",
        rejects_with="InvalidArgument",
        source="https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html",
        moto="s3",
        in_moto_globally=True,
    )
)


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


_TAG = re.compile("<Tag>\\s*<Key>(.*?)</Key>\\s*<Value>(.*?)</Value>", re.DOTALL)


@swapped
def _index_buckets() -> None:
    """Rebuild the index of bucket names."""
    index: dict[str, tuple[str, str]] = s3_backends.bucket_accounts
    index.clear()
    for account, partitions in s3_backends.items():
        for partition, backend in partitions.items():
            index.update(dict.fromkeys(backend.buckets, (partition, account)))


def _get_permission(bucket: Any, action: str, resource: str) -> Any:
    if bucket.policy is None:
        return PermissionResult.NEUTRAL
    document = json.loads(bucket.policy)
    statements = document["Statement"] if isinstance(document["Statement"], list) else [document["Statement"]]
    evaluated = [statement for statement in statements if not statement.get("Condition")]
    if not evaluated:
        return PermissionResult.NEUTRAL
    return IAMPolicy(json.dumps({**document, "Statement": evaluated})).is_action_permitted(action, resource)


_put_bucket = S3Response._bucket_response_put  # noqa: SLF001 - moto has no other place that sees the request


def _put_tagged_bucket(self: Any, request: Any, bucket_name: str, querystring: dict[str, Any]) -> Any:
    answer = _put_bucket(self, request, bucket_name, querystring)
    body = self.body.decode() if isinstance(self.body, bytes) else self.body or ""
    if not querystring and "<CreateBucketConfiguration" in body and (tags := _TAG.findall(body)):
        self.backend.put_bucket_tagging(bucket_name, {unescape(key): unescape(value) for key, value in tags})
    return answer


_METHODS: tuple[tuple[type, str, Any], ...] = (
    (FakeBucket, "get_permission", _get_permission),
    (S3Response, "_bucket_response_put", _put_tagged_bucket),
)
for _owner, _name, _method in _METHODS:
    setattr(_owner, _name, _method)


_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_BUCKET_STARTS: Final = ("xn--", "sthree-", "amzn-s3-demo-")
_BUCKET_ENDS: Final = ("-s3alias", "--ol-s3", ".mrap", "--x-s3", "--table-s3")


# Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
@rule("s3", "CreateBucket")
def _bucket(_: Context, params: Record) -> None:
    name = params["Bucket"]
    labels = name.split(".")
    wrong = (
        not _BUCKET.fullmatch(name)
        or "" in labels
        or (len(labels) == 4 and all(each.isdecimal() for each in labels))
        or name.startswith(_BUCKET_STARTS)
        or name.endswith(_BUCKET_ENDS)
    )
    if wrong:
        raise ServiceError("InvalidBucketName", "The specified bucket is not valid.")

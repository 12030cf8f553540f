"""Corrects what moto 5.2 gets wrong in S3.

- It ignores conditions in bucket policies. A statement that rejects requests without TLS would then reject everything.
  Loopback counts as TLS here, and statements with other conditions are skipped.
- It keeps an index of bucket names outside its backends.
- It ignores the tags in CreateBucketConfiguration.
"""

from __future__ import annotations

import json
import re
from html import unescape
from typing import Any

from moto.iam.access_control import IAMPolicy, PermissionResult
from moto.s3.models import FakeBucket, s3_backends
from moto.s3.responses import S3Response

from hpkit_local.aws.moto_state import swapped

__all__: list[str] = []

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

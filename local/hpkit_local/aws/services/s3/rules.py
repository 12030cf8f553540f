"""Requests that S3 rejects and moto doesn't: docs/reference/local-cloud-limits.md lists what is still accepted."""

from __future__ import annotations

import re
from typing import Final

from hpkit_local.aws.api import rule
from hpkit_local.aws.backend import Context, Record
from hpkit_local.aws.errors import ServiceError

__all__: list[str] = []

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

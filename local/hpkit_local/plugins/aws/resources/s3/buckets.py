"""Amazon S3: buckets and objects."""

import base64
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from hpkit_local.plugins.aws.calls import Calls
from hpkit_local.plugins.aws.resource_type import PlannedUpdate, ResourceType, properties
from hpkit_local.plugins.aws.shapes import tag_list, tag_map
from hpkit_provider.engine.errors import PluginError
from hpkit_provider.engine.values import Props

__all__ = ["RESOURCE_TYPES"]

_ZONES = {"us-east-1": "Z3AQBSTGFYJSTF", "us-west-2": "Z3BJ6K6RIION7M", "eu-west-1": "Z1BKCTXD74EZPE"}


def _create_bucket(call: Calls, inputs: Props) -> str:
    place = {"LocationConstraint": call.region} if call.region != "us-east-1" else None
    # S3 there returns your own bucket without an error; resourceBucketCreate looks for it first (s3/bucket.go).
    if place is None and call.find("HeadBucket", Bucket=inputs["bucket"]) is not None:
        raise PluginError(f"creating S3 Bucket ({inputs['bucket']}): BucketAlreadyExists")
    call(
        "CreateBucket",
        Bucket=inputs["bucket"],
        CreateBucketConfiguration=place,
        ObjectLockEnabledForBucket=inputs.get("objectLockEnabled") or None,
    )
    if inputs["tagsAll"]:
        call("PutBucketTagging", Bucket=inputs["bucket"], Tagging={"TagSet": tag_list(inputs["tagsAll"])})
    return str(inputs["bucket"])


def _read_bucket(call: Calls, bucket: str, _recorded: Props) -> Props | None:
    if call.find("HeadBucket", Bucket=bucket) is None:
        return None
    tags = call.find("GetBucketTagging", Bucket=bucket)
    lock = call.find("GetObjectLockConfiguration", Bucket=bucket)
    return {
        "bucket": bucket,
        "arn": f"arn:aws:s3:::{bucket}",
        "bucketRegion": call.region,
        "bucketDomainName": f"{bucket}.s3.amazonaws.com",
        "bucketRegionalDomainName": f"{bucket}.s3.{call.region}.amazonaws.com",
        "hostedZoneId": _ZONES.get(call.region),
        "objectLockEnabled": bool(lock and lock["ObjectLockConfiguration"].get("ObjectLockEnabled") == "Enabled"),
        "tags": tag_map((tags or {}).get("TagSet")),
    }


def _delete_bucket(call: Calls, bucket: str, state: Props) -> None:
    if state["forceDestroy"]:
        for member in ("Versions", "DeleteMarkers"):
            for entry in call.pages("ListObjectVersions", member, Bucket=bucket):
                call("DeleteObject", Bucket=bucket, Key=entry["Key"], VersionId=entry["VersionId"])
    call.find("DeleteBucket", Bucket=bucket)


def _tag_bucket(call: Calls, bucket: str, live: Props, changed: dict[str, str], dropped: list[str]) -> None:
    kept = {key: value for key, value in live.get("tagsAll", {}).items() if key not in dropped}
    tags = tag_list({**kept, **changed})
    if tags:
        call("PutBucketTagging", Bucket=bucket, Tagging={"TagSet": tags})
    else:
        call("DeleteBucketTagging", Bucket=bucket)


_HEADERS = {
    "contentType": "ContentType",
    "cacheControl": "CacheControl",
    "contentEncoding": "ContentEncoding",
    "contentDisposition": "ContentDisposition",
    "contentLanguage": "ContentLanguage",
    "serverSideEncryption": "ServerSideEncryption",
    "kmsKeyId": "SSEKMSKeyId",
    "storageClass": "StorageClass",
    "metadata": "Metadata",
    "websiteRedirect": "WebsiteRedirectLocation",
}


def _body(props: Props) -> bytes:
    if "content" in props:
        return str(props["content"]).encode()
    if "contentBase64" in props:
        return base64.b64decode(props["contentBase64"])
    asset: dict[str, Any] = props.get("source") or {}
    if "text" in asset:
        return str(asset["text"]).encode()
    if "path" in asset:
        try:
            return Path(asset["path"]).read_bytes()
        except OSError as error:
            raise PluginError(f"source: {asset['path']} cannot be read: {error.strerror}") from None
    if asset:
        raise PluginError("source: the local cloud takes a FileAsset or a StringAsset.")
    return b""


def _put(call: Calls, inputs: Props) -> str:
    key = inputs["key"]
    call(
        "PutObject",
        Bucket=inputs["bucket"],
        Key=key,
        Body=_body(inputs),
        Tagging=urlencode(inputs["tagsAll"]) or None,
        **{member: inputs.get(name) for name, member in _HEADERS.items()},
    )
    return f"{inputs['bucket']}/{key}"


def _read(call: Calls, resource_id: str, _recorded: Props) -> Props | None:
    """Find it; at import its id is `BUCKET/KEY` or `s3://BUCKET/KEY`."""
    bucket, _, key = resource_id.removeprefix("s3://").partition("/")
    answer = call.find("HeadObject", Bucket=bucket, Key=key)
    if answer is None:
        return None
    tags = call.find("GetObjectTagging", Bucket=bucket, Key=key) or {}
    live = {name: answer.get(member) for name, member in _HEADERS.items()}
    return {
        **live,
        "id": f"{bucket}/{key}",
        "arn": f"arn:aws:s3:::{bucket}/{key}",
        "bucket": bucket,
        "key": key,
        "serverSideEncryption": answer.get("ServerSideEncryption", "AES256"),
        "storageClass": answer.get("StorageClass", "STANDARD"),
        "etag": answer["ETag"].strip('"'),
        "versionId": answer.get("VersionId", ""),
        "tags": tag_map(tags.get("TagSet")),
    }


def _update(call: Calls, _resource_id: str, change: PlannedUpdate) -> None:
    _put(call, {**change.new, "tagsAll": change.new.get("tagsAll", {})})


def _delete(call: Calls, resource_id: str, _state: Props) -> None:
    """Delete it with all its versions, as the real provider does."""
    bucket, _, key = resource_id.partition("/")
    for member in ("Versions", "DeleteMarkers"):
        for entry in list(call.pages("ListObjectVersions", member, Bucket=bucket, Prefix=key)):
            if entry["Key"] == key:
                call.find("DeleteObject", Bucket=bucket, Key=key, VersionId=entry["VersionId"])
    call.find("DeleteObject", Bucket=bucket, Key=key)


def _tag(call: Calls, resource_id: str, live: Props, changed: dict[str, str], dropped: list[str]) -> None:
    bucket, _, key = resource_id.partition("/")
    kept = {name: value for name, value in live.get("tagsAll", {}).items() if name not in dropped}
    tags = tag_list({**kept, **changed}) or []
    call("PutObjectTagging", Bucket=bucket, Key=key, Tagging={"TagSet": tags})


RESOURCE_TYPES: Final = (
    ResourceType(
        "aws:s3/bucket:Bucket",
        props=properties("bucket forceDestroy:boolean* objectLockEnabled:boolean"),
        create=_create_bucket,
        read=_read_bucket,
        delete=_delete_bucket,
        outputs=("arn", "bucketRegion", "bucketDomainName", "bucketRegionalDomainName", "hostedZoneId"),
        tagging=_tag_bucket,
        longest_name=63,
        imported={"forceDestroy": False},
        minutes=(20, 20, 60),
        lowercase=True,
    ),
    ResourceType(
        "aws:s3/bucketObjectv2:BucketObjectv2",
        props=properties(
            "bucket! key! content* contentBase64* source:asset* sourceHash* forceDestroy:boolean* etag "
            + " ".join("metadata:map" if name == "metadata" else name for name in _HEADERS)
        ),
        create=_put,
        read=_read,
        update=_update,
        delete=_delete,
        outputs=("arn", "versionId"),
        volatile=("etag", "versionId"),
        tagging=_tag,
    ),
)

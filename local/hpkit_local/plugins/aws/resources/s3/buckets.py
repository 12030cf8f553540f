"""Amazon S3: buckets and objects."""

from __future__ import annotations

from typing import Final

from hpkit_local.plugins.aws.calls import Calls
from hpkit_local.plugins.aws.resource_type import Prop, ResourceType
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


RESOURCE_TYPES: Final[tuple[ResourceType, ...]] = (
    ResourceType(
        "aws:s3/bucket:Bucket",
        props=(
            Prop("bucket"),
            Prop("forceDestroy", "boolean", write_only=True),
            Prop("objectLockEnabled", "boolean"),
        ),
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
)

"""Storage of scripts and training data."""

from typing import Annotated, Literal

from pydantic import Field

from hpkit.config.models.base import BucketName, Model, amount

__all__ = ["DataRepository", "ExistingStorage", "LocalDisk", "Lustre", "RootSquash", "Storage", "TeamBucket"]

# Amazon FSx API reference, LustreRootSquashConfiguration: NoSquashNids.
DataEvent = Literal["NEW", "CHANGED", "DELETED"]
# IAM reads `*` and `?` as wildcards, and without the last slash `a` is the beginning of `ab`.
PREFIX_PATTERN = r"^([A-Za-z0-9_.=-]+/)+$"
FOLDER_PATTERN = r"^(/[A-Za-z0-9_-][A-Za-z0-9_.-]*)+$"
KeyArn = Annotated[str, Field(pattern=r"^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[a-zA-Z0-9-]{36}$")]
_NID = r"^([0-9\[\]\-]*\.){3}([0-9\[\]\-]*)@tcp$"


class RootSquash(Model):
    """Maps root on clients to user and group 65534 on the file system."""

    no_squash_nids: tuple[Annotated[str, Field(pattern=_NID)], ...] = Field(
        default=(),
        max_length=64,
        description="Network identifiers of clients that keep root, such as `10.0.1.6@tcp` or "
        "`10.0.[2-10].[1-255]@tcp`.",
        examples=["10.0.[2-10].[1-255]@tcp"],
    )


class DataRepository(Model):
    """A folder of the file system that FSx links with a bucket; contents load when they are read."""

    path: str = Field(
        pattern=FOLDER_PATTERN,
        description="Folder on the file system. With `teams`, pods of a team reach those in `/teams/<team>`.",
        examples=["/teams/john/data"],
    )
    bucket: BucketName = Field(description="Bucket of the environment's account and region.", examples=["acme-data"])
    prefix: str | None = Field(
        default=None,
        pattern=PREFIX_PATTERN,
        description="Only objects whose keys begin with this, such as `john/`. Default: the whole bucket.",
        examples=["john/"],
    )
    batch_import: bool = Field(default=True, description="true: import existing objects when the link is created.")
    auto_import: tuple[DataEvent, ...] = Field(
        default=("NEW", "CHANGED", "DELETED"),
        min_length=1,
        max_length=3,
        description="Changes in the bucket that the file system follows.",
    )
    auto_export: tuple[DataEvent, ...] = Field(
        default=(),
        max_length=3,
        description="File changes that FSx writes to the bucket, including deletions. To stop an export, remove the "
        "folder from the list, deploy, and add it again.",
    )


class Lustre(Model):
    """A persistent FSx for Lustre file system, with its CSI add-on."""

    availability_zone: str = Field(
        description="Zone of the file system. Use the zone of the groups that mount it.", examples=["us-west-2a"]
    )
    storage_capacity_gib: int = Field(
        alias="storageCapacityGiB",
        ge=1200,
        description="Size in GiB: 1200, or a multiple of 2400.",
        json_schema_extra={"multipleOf": 1200, "unit": "GiB"},
        examples=[1200],
    )
    per_unit_storage_throughput: Annotated[int, Field(ge=125, le=1000)] = amount(
        "Throughput in MB/s per TiB: 125, 250, 500 or 1000.", unit="MB/s for each TiB", default=250
    )
    teams: bool = Field(
        default=False,
        description="true: each team's namespace has the claim `fsx-claim` on the folder `teams/<team>`. Pods "
        "with the claim run as one of the team's `userIds`.",
    )
    image: str | None = Field(
        default=None,
        min_length=1,
        description="Image for the Jobs that create the folders, with a shell, `mkdir`, `stat` and `chown`. "
        "Default: BusyBox, from `cluster.dependencies.imageRegistry` if set.",
        examples=["123456789012.dkr.ecr.us-west-2.amazonaws.com/busybox:1.37.0"],
    )
    existing: str | None = Field(
        default=None,
        pattern=r"^fs-[0-9a-f]{8,17}$",
        description="ID of the file system, if another stack or tool manages it and the cluster. Default: hpkit "
        "creates one.",
        examples=["fs-0123456789abcdef0"],
    )
    data_repositories: tuple[DataRepository, ...] = Field(
        default=(), description="Folders that FSx links with S3 (data repository associations), at most 8."
    )
    root_squash: RootSquash | None = Field(
        default=None,
        description="Maps root on clients to user and group 65534 on the file system. Default: off on a "
        "new file system, unchanged on an existing one. Add it after the first `pulumi up`, when the folder `teams` "
        "exists.",
    )


class LocalDisk(Model):
    """A folder for each team on the local disk of its nodes, with the claim `local-claim` in the team's namespace."""

    instance_types: tuple[str, ...] = Field(
        min_length=1,
        description="Instance types with a local disk. Pods with the claim run on these types only.",
        examples=["ml.g5.12xlarge"],
        json_schema_extra={"values": "instanceTypeNames", "only": True},
    )
    path: str = Field(
        default="/opt/dlami/nvme",
        pattern=r"^(/[A-Za-z0-9_-][A-Za-z0-9._-]*)+$",
        description="Mount of the disk on nodes: `/opt/dlami/nvme` or `/opt/sagemaker`; AWS's pages differ. A pod sees "
        "`teams/<team>` below it, and doesn't start if it isn't a mount.",
        examples=["/opt/dlami/nvme"],
    )


class ExistingStorage(Model):
    """An existing bucket; hpkit doesn't change it."""

    bucket: BucketName = Field(
        description="Name. hpkit uploads its lifecycle script only if a group uses it.",
        examples=["sagemaker-acme-lifecycle"],
    )


class TeamBucket(Model):
    """An S3 bucket, or a prefix in it, that a team's pods can use. hpkit doesn't create or change it."""

    bucket: BucketName = Field(description="Name of a bucket of the environment's account.", examples=["acme-vision"])
    prefix: str | None = Field(
        default=None,
        pattern=PREFIX_PATTERN,
        description="Only objects whose keys begin with this, such as `vision/`. Default: the whole bucket.",
        examples=["vision/"],
    )
    read_only: bool = Field(default=False, description="true: pods can't write or delete.")
    kms_key_arn: KeyArn | None = Field(
        default=None,
        description="KMS key of the bucket, whose policy must allow the team's role. Default: S3's key.",
        examples=["arn:aws:kms:us-west-2:123456789012:key/0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f"],
    )


class Storage(Model):
    """The bucket of lifecycle scripts, file systems, and buckets of teams."""

    kms_key_arn: KeyArn | None = Field(
        default=None,
        description="KMS key of the bucket and the file system. Default: the services' keys.",
        examples=["arn:aws:kms:us-west-2:123456789012:key/0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f"],
    )
    existing: ExistingStorage | None = Field(
        default=None,
        description="Use an existing bucket, which hpkit doesn't change. Default: hpkit creates one if a group runs a "
        "script.",
    )
    lustre: Lustre | None = Field(default=None, description="FSx for Lustre file system. Default: none.")
    local_disk: LocalDisk | None = Field(
        default=None, description="Folders of teams on the local disks of nodes. Default: none."
    )
    team_buckets: dict[str, Annotated[tuple[TeamBucket, ...], Field(min_length=1)]] = Field(
        default={},
        description="Buckets by team. Pods of the team with the service account `default` get a role for these "
        "buckets only, by EKS Pod Identity.",
        examples=[{"john": [{"bucket": "acme-john"}]}],
    )

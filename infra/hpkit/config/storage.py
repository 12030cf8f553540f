"""Where scripts and training data lie."""

from typing import Annotated

from pydantic import Field

from hpkit.config.base import BucketName, Model

__all__ = ["ExistingStorage", "Lustre", "RootSquash", "Storage"]

# Amazon FSx API reference, LustreRootSquashConfiguration: NoSquashNids.
_NID = r"^([0-9\[\]\-]*\.){3}([0-9\[\]\-]*)@tcp$"


class RootSquash(Model):
    """Root of a client becomes user and group 65534 on the file system."""

    no_squash_nids: tuple[Annotated[str, Field(pattern=_NID)], ...] = Field(
        default=(),
        max_length=64,
        description="Lustre network identifiers of clients whose root stays root, such as `10.0.1.6@tcp` or "
        "`10.0.[2-10].[1-255]@tcp`.",
    )


class Lustre(Model):
    """A persistent FSx for Lustre file system, with its CSI add-on."""

    availability_zone: str = Field(description="Zone of the file system: that of the groups that use it.")
    storage_capacity_gib: int = Field(
        alias="storageCapacityGiB",
        ge=1200,
        description="GiB: 1200, or a multiple of 2400.",
        json_schema_extra={"multipleOf": 1200},
    )
    per_unit_storage_throughput: Annotated[int, Field(ge=125, le=1000)] = Field(
        default=250, description="MB/s for each TiB: 125, 250, 500 or 1000."
    )
    teams: bool = Field(
        default=False,
        description="true: each team's namespace gets the claim `fsx-claim` on the team's own folder, `teams/<team>`. "
        "Pods that use it run as one of the team's `userIds`.",
    )
    image: str | None = Field(
        default=None,
        min_length=1,
        description="Image with a shell, `mkdir`, `stat` and `chown`, for the Jobs that make the teams' folders. "
        "Absent: BusyBox, from `cluster.dependencies.imageRegistry` if the file names one.",
    )
    root_squash: RootSquash | None = Field(
        default=None,
        description="Root squash. Absent: off. Add it after the first `pulumi up`, when the folder `teams` exists: "
        "later Jobs own that folder without being root.",
    )


class ExistingStorage(Model):
    """A bucket that is already there; the kit changes nothing about it."""

    bucket: BucketName = Field(
        description="Its name. The kit's own script is put into it only for groups that run it.",
    )


class Storage(Model):
    """The bucket of lifecycle scripts, and file systems."""

    kms_key_arn: str | None = Field(
        default=None,
        pattern=r"^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[a-zA-Z0-9-]{36}$",
        description="Key for the bucket and the file system. Absent: the services' own keys.",
    )
    existing: ExistingStorage | None = Field(
        default=None,
        description="Use a bucket that is there. Absent: the kit makes one, if any group runs a script.",
    )
    lustre: Lustre | None = Field(default=None, description="Absent = none.")

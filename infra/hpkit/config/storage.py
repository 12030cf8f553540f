"""Where scripts and training data lie."""

from typing import Annotated

from pydantic import Field

from hpkit.config.base import BucketName, Model

__all__ = ["ExistingStorage", "Lustre", "Storage"]


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
        description="true: each team's namespace gets the claim `fsx-claim` on it. All teams see all files; their "
        "rights are those of the files.",
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

"""Amazon FSx: moto, and changes to a file system for Lustre."""

from hpkit_local.aws.service import Service, declare

declare(
    Service(
        "fsx",
        refuses_with="BadRequest",
        source="https://docs.aws.amazon.com/fsx/latest/APIReference/API_CreateFileSystem.html",
        moto="fsx",
    )
)

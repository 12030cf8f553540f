"""Operations that moto's FSx lacks: changes to a file system for Lustre."""

from __future__ import annotations

from hpkit_local.aws.api import operation
from hpkit_local.aws.backend import Context, Record
from hpkit_local.aws.errors import ServiceError
from hpkit_local.aws.protocol import service_model

__all__: list[str] = []


# Source: https://docs.aws.amazon.com/fsx/latest/LustreGuide/managing-storage-capacity.html
@operation("fsx", "UpdateFileSystem")
def update_file_system(ctx: Context, params: Record) -> Record:
    """Change capacity or configuration, immediately; capacity only grows (FSx for Lustre user guide)."""
    system = ctx.backend.moto.backend("fsx", ctx.region).file_systems.get(params["FileSystemId"])
    if system is None:
        message = f"File system '{params['FileSystemId']}' does not exist."
        raise ServiceError("FileSystemNotFound", message)
    capacity = params.get("StorageCapacity", system.storage_capacity)
    if capacity < system.storage_capacity:
        message = f"StorageCapacity {capacity} is below the present {system.storage_capacity} GiB"
        raise ServiceError("BadRequest", message)
    system.storage_capacity = capacity
    system.version = params.get("FileSystemTypeVersion", system.version)
    if "LustreConfiguration" in params:
        system.lustre_configuration = {**(system.lustre_configuration or {}), **params["LustreConfiguration"]}
    ctx.backend.touched("fsx")
    known = service_model("fsx").shape_for("FileSystem").members
    return {"FileSystem": {name: value for name, value in system.to_dict().items() if name in known}}

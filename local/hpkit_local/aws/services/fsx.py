"""Amazon FSx: moto, and changes to a file system for Lustre."""

from __future__ import annotations

from typing import Any, Final

from moto.fsx.models import FileSystem, FSxBackend

from hpkit_local.aws.api import operation, rule
from hpkit_local.aws.backend import Context, Record
from hpkit_local.aws.errors import ServiceError
from hpkit_local.aws.protocol import service_model
from hpkit_local.aws.service import Service, declare
from hpkit_local.aws.services.ec2.rules import require_security_group, require_subnet

__all__: list[str] = []

declare(
    Service(
        "fsx",
        refuses_with="BadRequest",
        source="https://docs.aws.amazon.com/fsx/latest/APIReference/API_CreateFileSystem.html",
        moto="fsx",
    )
)


_create_file_system = FSxBackend.create_file_system
_describe_file_system = FileSystem.to_dict


def _with_version(backend: Any, **request: Any) -> Any:
    system: Any = _create_file_system(backend, **request)
    system.version = request.get("file_system_type_version") or "2.10"  # what FSx for Lustre takes by itself
    return system


def _whole_file_system(system: Any) -> dict[str, Any]:
    described = _describe_file_system(system)
    state = {"Lifecycle": "AVAILABLE", "OwnerId": system.backend.account_id, "FileSystemTypeVersion": system.version}
    # Eight characters that FSx chooses (Amazon FSx API reference, LustreFileSystemConfiguration).
    lustre = {**described.get("LustreConfiguration", {}), "MountName": system.file_system_id[-8:]}
    return {**described, **state, "LustreConfiguration": lustre}


_METHODS: tuple[tuple[type, str, Any], ...] = (
    (FSxBackend, "create_file_system", _with_version),
    (FileSystem, "to_dict", _whole_file_system),
)
for _owner, _name, _method in _METHODS:
    setattr(_owner, _name, _method)


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


_LUSTRE_THROUGHPUT: Final = frozenset((125, 250, 500, 1000))


# Source: https://docs.aws.amazon.com/fsx/latest/APIReference/API_CreateFileSystem.html
@rule("fsx", "CreateFileSystem")
def _lustre(ctx: Context, params: Record) -> None:
    if params["FileSystemType"] != "LUSTRE":
        return
    subnets = [require_subnet(ctx, each, code="InvalidNetworkSettings") for each in params["SubnetIds"]]
    for group in params.get("SecurityGroupIds", ()):
        require_security_group(ctx, group, vpc_id=subnets[0].vpc_id, code="InvalidNetworkSettings")
    capacity, options = params.get("StorageCapacity", 1200), params.get("LustreConfiguration", {})
    if capacity != 1200 and (capacity < 2400 or capacity % 2400):
        raise ServiceError("BadRequest", f"StorageCapacity {capacity} is neither 1200 nor a multiple of 2400")
    throughput = options.get("PerUnitStorageThroughput")
    if options.get("DeploymentType") == "PERSISTENT_2" and throughput not in _LUSTRE_THROUGHPUT:
        allowed = ", ".join(map(str, sorted(_LUSTRE_THROUGHPUT)))
        raise ServiceError("BadRequest", f"PerUnitStorageThroughput {throughput} is not one of {allowed}")

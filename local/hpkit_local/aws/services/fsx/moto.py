"""Adds what moto 5.2 lacks in FSx: the version, status, owner and mount name of a file system."""

from __future__ import annotations

from typing import Any

from moto.fsx.models import FileSystem, FSxBackend

__all__: list[str] = []

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

"""FSx: changes to a file system."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Refused = Callable[..., str]


def test_a_file_system_is_there_and_only_grows(cloud: Any, refused: Refused) -> None:
    fsx = cloud.endpoint.client("fsx")
    nobody = {"FileSystemId": "fs-0123456789abcdef0", "StorageCapacity": 2400}
    assert "does not exist" in refused("FileSystemNotFound", fsx.update_file_system, **nobody)
    made = fsx.create_file_system(FileSystemType="LUSTRE", StorageCapacity=2400, SubnetIds=cloud.subnets[:1])
    wanted = {"FileSystemId": made["FileSystem"]["FileSystemId"], "StorageCapacity": 1200}
    assert "1200 is below the present 2400" in refused("BadRequest", fsx.update_file_system, **wanted)

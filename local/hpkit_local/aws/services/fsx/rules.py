"""Requests that FSx rejects and moto doesn't: docs/reference/local-cloud-limits.md lists what is still accepted."""

from __future__ import annotations

from typing import Final

from hpkit_local.aws.api import rule
from hpkit_local.aws.backend import Context, Record
from hpkit_local.aws.errors import ServiceError
from hpkit_local.aws.services.ec2.references import require_security_group, require_subnet

__all__: list[str] = []

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

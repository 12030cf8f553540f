"""VPCs, subnets and security groups that requests to other services refer to: they must exist in account and region."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hpkit_local.aws.backend import Context
from hpkit_local.aws.errors import ServiceError

__all__ = ["Subnet", "ranges_of", "require_security_group", "require_subnet"]

INVALID = "ValidationException"


@dataclass(frozen=True)
class Subnet:
    """A subnet's data for other services."""

    id: str
    vpc_id: str
    zone: str
    zone_id: str
    cidr: str


def ranges_of(vpc: Any) -> list[str]:
    """Return the IPv4 ranges of a VPC in moto, which also keeps removed ones."""
    ranges = vpc.get_cidr_block_association_set()
    return [str(each["cidr_block"]) for each in ranges if each["cidr_block_state"]["state"] == "associated"]


# Inferred from: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_VpcConfig.html
def require_subnet(ctx: Context, subnet_id: str, *, code: str = INVALID) -> Subnet:
    """Return the subnet, or the service's rejection."""
    ec2 = ctx.backend.moto.backend("ec2", ctx.region)
    for subnets in ec2.subnets.values():
        subnet: Any = subnets.get(subnet_id)
        if subnet is not None:
            zone = subnet.availability_zone
            return Subnet(subnet_id, subnet.vpc_id, zone, str(subnet.availability_zone_id), subnet.cidr_block)
    raise ServiceError(code, f"The subnet ID '{subnet_id}' does not exist")


# Inferred from: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_VpcConfig.html
def require_security_group(ctx: Context, group_id: str, *, vpc_id: str, code: str = INVALID) -> None:
    """Reject a security group that does not exist in the VPC of the subnets."""
    groups = ctx.backend.moto.backend("ec2", ctx.region).groups
    home = next((vpc for vpc, members in groups.items() if group_id in members), None)
    if home is None:
        raise ServiceError(code, f"The security group '{group_id}' does not exist")
    if home != vpc_id:
        raise ServiceError(code, f"The security group '{group_id}' is in VPC {home}, the subnets are in VPC {vpc_id}")

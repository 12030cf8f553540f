"""VPCs, subnets and security groups that requests refer to, and requests that EC2 rejects and moto doesn't.

docs/reference/local-cloud-limits.md lists what is still accepted.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Network, ip_network
from typing import Any, Final

from hpkit_local.aws.api import rule
from hpkit_local.aws.backend import Context, Record
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


# VPC user guide, quotas; EC2 user guide, Elastic IP addresses: the defaults of a new account.
VPCS: Final = 5
ADDRESSES: Final = 5
# VPC user guide, "IPv4 CIDR block association restrictions": a VPC stays within the private range of its first block.
_PRIVATE: Final = tuple(map(IPv4Network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")))
_BENCHMARKS, _DEFAULT_VPC = IPv4Network("198.19.0.0/16"), IPv4Network("172.31.0.0/16")
_LOW, _LOWEST = IPv4Network("10.0.0.0/15"), IPv4Network("10.0.0.0/16")
# The same guide, "IPv4 VPC CIDR blocks": ranges that no VPC can have.
_NOWHERE: Final = tuple(map(IPv4Network, ("0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4")))
_LARGEST, _SMALLEST = 16, 28
_TAG_KEY, _TAG_VALUE = 128, 256
_GROUP_TEXT: Final = re.compile(r"[a-zA-Z0-9 ._\-:/()#,@\[\]+=&;{}!$*]{0,255}")


# Source: https://docs.aws.amazon.com/vpc/latest/userguide/amazon-vpc-limits.html
@rule("ec2", "CreateVpc")
def _number_of_vpcs(ctx: Context, _: Record) -> None:
    if len(ctx.backend.moto.backend("ec2", ctx.region).vpcs) >= VPCS:
        raise ServiceError("VpcLimitExceeded", "The maximum number of VPCs has been reached.")


@rule("ec2", "CreateVpc")
def _first_range(_: Context, params: Record) -> None:
    if "CidrBlock" in params:
        _check_block(_network(params["CidrBlock"]))


# Source: https://docs.aws.amazon.com/vpc/latest/userguide/vpc-cidr-blocks.html
def _check_block(block: IPv4Network) -> None:
    """Reject sizes and addresses that no VPC may have."""
    if not _LARGEST <= block.prefixlen <= _SMALLEST or any(block.overlaps(each) for each in _NOWHERE):
        raise ServiceError("InvalidVpc.Range", f"The CIDR '{block}' is invalid.")


# Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/elastic-ip-addresses-eip.html
@rule("ec2", "AllocateAddress")
def _number_of_addresses(ctx: Context, _: Record) -> None:
    if len(ctx.backend.moto.backend("ec2", ctx.region).addresses) >= ADDRESSES:
        raise ServiceError("AddressLimitExceeded", "The maximum number of addresses has been reached.")


# Source: https://docs.aws.amazon.com/vpc/latest/userguide/vpc-cidr-blocks.html
@rule("ec2", "AssociateVpcCidrBlock")
def _further_range(ctx: Context, params: Record) -> None:
    vpc = ctx.backend.moto.backend("ec2", ctx.region).vpcs.get(params["VpcId"])
    if vpc is None or "CidrBlock" not in params:
        return
    block = _network(params["CidrBlock"])
    _check_block(block)
    present = [_network(block) for block in ranges_of(vpc)]
    if any(block.overlaps(each) for each in present):
        raise ServiceError("InvalidVpc.Range", f"The CIDR '{block}' conflicts with another block of the VPC.")
    if any(block.overlaps(each) for each in _restricted(present)):
        raise ServiceError(
            "InvalidVpc.Range",
            f"The CIDR '{block}' is restricted. Use a CIDR from the same private address range as the current VPC CIDR,"
            " or use a publicly-routable CIDR.",
        )


def _restricted(present: Iterable[IPv4Network]) -> Iterator[IPv4Network]:
    """Yield the ranges that a VPC rejects because of its existing ones; the first one determines its private network.

    Source: VPC user guide, "IPv4 CIDR block association restrictions".
    """
    first, *others = present
    yield from (each for each in _PRIVATE if not first.subnet_of(each))
    if not first.subnet_of(_BENCHMARKS):
        yield _BENCHMARKS
    if first.subnet_of(_PRIVATE[1]):
        yield _DEFAULT_VPC
    if any(each.overlaps(_LOW) for each in (first, *others)):
        yield _LOWEST


# Source: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateSubnet.html
@rule("ec2", "CreateSubnet")
def _subnet(ctx: Context, params: Record) -> None:
    block = _network(params.get("CidrBlock", "10.0.0.0/24"), code="InvalidParameterValue")
    if not _LARGEST <= block.prefixlen <= _SMALLEST:
        raise ServiceError("InvalidSubnet.Range", f"The CIDR '{block}' is invalid.")
    zone = params.get("AvailabilityZone")
    zones = [each.name for each in ctx.backend.moto.backend("ec2", ctx.region).describe_availability_zones()]
    if zone is not None and zone not in zones:
        raise ServiceError(
            "InvalidParameterValue",
            f"Value ({zone}) for parameter availabilityZone is invalid. Subnets can currently only be created in the "
            f"following availability zones: {', '.join(zones)}.",
        )


# Source: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateSecurityGroup.html
@rule("ec2", "CreateSecurityGroup")
def _group(_: Context, params: Record) -> None:
    name = params["GroupName"]
    if name.startswith("sg-"):
        raise ServiceError("InvalidParameterValue", f"Group names may not be in the format sg-*: '{name}'")
    for member in ("GroupName", "Description"):
        if not _GROUP_TEXT.fullmatch(params[member]):
            raise ServiceError("InvalidParameterValue", f"Value ({params[member]}) for parameter {member} is invalid.")


# Source: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_IpPermission.html
@rule("ec2", "AuthorizeSecurityGroupIngress", "AuthorizeSecurityGroupEgress")
def _permissions(_: Context, params: Record) -> None:
    for permission in params.get("IpPermissions", ()):
        if permission.get("IpProtocol") in ("tcp", "udp", "6", "17"):
            first, last = permission.get("FromPort", -1), permission.get("ToPort", -1)
            if not 0 <= first <= last <= 65535:
                raise ServiceError("InvalidParameterValue", f"Invalid TCP/UDP port range ({first}, {last})")
        ranges = [
            *permission.get("IpRanges", ()),
            *permission.get("UserIdGroupPairs", ()),
            *permission.get("PrefixListIds", ()),
        ]
        for text in (found["Description"] for found in ranges if "Description" in found):
            if not _GROUP_TEXT.fullmatch(text):
                raise ServiceError("InvalidParameterValue", f"Invalid rule description: {text}")


# Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Tags.html
@rule(
    "ec2",
    *("AllocateAddress", "CreateInternetGateway", "CreateNatGateway", "CreateRouteTable", "CreateSecurityGroup"),
    *("CreateSubnet", "CreateTags", "CreateVpc", "CreateVpcEndpoint"),
)
def _tags(_: Context, params: Record) -> None:
    specified = [tag for each in params.get("TagSpecifications", ()) for tag in each.get("Tags", ())]
    for tag in (*params.get("Tags", ()), *specified):
        key, value = tag["Key"], tag.get("Value", "")
        if key.lower().startswith("aws:"):
            raise ServiceError(
                "InvalidParameterValue",
                f"Value ({key}) for parameter key is invalid. "
                "Tag keys starting with 'aws:' are reserved for internal use",
            )
        if len(key) > _TAG_KEY or len(value) > _TAG_VALUE:
            raise ServiceError(
                "InvalidParameterValue",
                f"Tag '{key}' is too long: a key has at most {_TAG_KEY} characters, a value {_TAG_VALUE}",
            )


# Inferred from: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateVpc.html
def _network(text: str, *, code: str = "InvalidParameterValue") -> IPv4Network:
    try:
        network = ip_network(text, strict=False)
    except ValueError:
        network = None
    if not isinstance(network, IPv4Network):
        raise ServiceError(code, f"Value ({text}) for parameter cidrBlock is invalid. This is not a valid CIDR block.")
    return network

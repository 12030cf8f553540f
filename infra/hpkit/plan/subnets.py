"""Which part of the VPC's own range each of hpkit's small subnets gets; in an existing VPC, which subnets serve."""

import ipaddress

from hpkit.config.models.network import ExistingNetwork

__all__ = ["LARGEST_PREFIX", "RANGE_PREFIXES", "control_plane_cidr", "control_plane_subnets", "own_part", "public_cidr"]

# The first sixteenth of the VPC's range is divided into 16 equal blocks: eight for public subnets, eight for the
# control plane. A zone's block depends only on its letter, or on the number in its ID, so adding a zone doesn't move
# others.
_PART = 4
_CUT = 8
_HALF = 8
# Prefixes of the largest and of the smallest range that a VPC or a subnet takes (Amazon VPC user guide, CIDR blocks).
RANGE_PREFIXES = (16, 28)
LARGEST_PREFIX = RANGE_PREFIXES[1] - _CUT  # a subnet has 16 addresses at least
LAST_ZONE = "h"
_ZONES = 2  # that EKS requires (Amazon EKS user guide, VPC and subnet considerations)


def own_part(vpc_cidr: str) -> ipaddress.IPv4Network:
    """Return the part of the VPC's range for hpkit's own subnets; nodes can have the rest."""
    network = ipaddress.IPv4Network(vpc_cidr)
    return next(network.subnets(prefixlen_diff=_PART))


def public_cidr(vpc_cidr: str, availability_zone: str) -> str:
    """Return the range of a zone's public subnet, with its NAT gateway."""
    return _block(vpc_cidr, availability_zone, 0)


def control_plane_cidr(vpc_cidr: str, availability_zone: str) -> str:
    """Return the range of a zone's subnet for the network interfaces of the EKS control plane."""
    return _block(vpc_cidr, availability_zone, _HALF)


def control_plane_subnets(existing: ExistingNetwork) -> tuple[str, ...]:
    """Return the control plane's subnets.

    The given ones, or those of the first two zones, so that a third changes nothing.
    """
    return existing.control_plane_subnets or tuple(subnet for _, subnet in sorted(existing.subnets.items())[:_ZONES])


def _block(vpc_cidr: str, availability_zone: str, first: int) -> str:
    """Raise ValueError for a VPC range longer than /20, or a ninth zone."""
    network = ipaddress.IPv4Network(vpc_cidr)
    last = availability_zone[-1]
    position = int(last) - 1 if last.isdigit() else ord(last) - ord("a")
    if network.prefixlen > LARGEST_PREFIX or not 0 <= position < _HALF:
        raise ValueError(f"{vpc_cidr} has no block for zone {availability_zone}")
    size = 2 ** (32 - network.prefixlen - _CUT)
    return f"{network.network_address + (first + position) * size}/{network.prefixlen + _CUT}"

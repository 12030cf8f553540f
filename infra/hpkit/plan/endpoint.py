"""Access to the Kubernetes API: which address ranges are public, and which addresses are admitted."""

import ipaddress
from collections.abc import Iterable, Sequence
from typing import Final

from hpkit.catalog import find_instance_type
from hpkit.config.models.cluster import InstanceGroup
from hpkit.config.models.network import ExistingNetwork
from hpkit.plan.model import Plan

__all__ = [
    "LARGEST_PREFIX",
    "RANGE_PREFIXES",
    "address_within",
    "admits",
    "awaited_groups",
    "control_plane_cidr",
    "control_plane_subnets",
    "documentation_ranges",
    "own_part",
    "private_ranges",
    "public_cidr",
    "reserved_ranges",
    "taints_against_addons",
    "world_ranges",
]

# The size of the largest range that any organization has: more addresses, in any number of parts, are the internet.
_LARGEST_IPV4, _LARGEST_IPV6 = 2**24, 2**112

# RFC 5737: ranges for documentation.
_DOCUMENTATION = ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24")
_TENTH = 10
# Ranges of connected networks: RFC 1918, RFC 6598.
_PRIVATE = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")
# What never is the source of a packet from the internet: IANA, IPv4 special-purpose address registry, and multicast.
_RESERVED = (
    *_PRIVATE,
    *("0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "192.0.0.0/24", "198.18.0.0/15", "224.0.0.0/4", "240.0.0.0/4"),
)


def documentation_ranges(cidrs: Iterable[str]) -> list[str]:
    """Return the ranges that are in a documentation range (RFC 5737), ignoring invalid ranges."""
    return _within(cidrs, _DOCUMENTATION)


def reserved_ranges(cidrs: Iterable[str]) -> list[str]:
    """Return the ranges with addresses that no caller from the internet has, ignoring invalid ranges.

    Source: Amazon EKS user guide, cluster endpoint access: "The block cannot include reserved addresses".
    """
    blocks = [ipaddress.IPv4Network(each) for each in _RESERVED]
    found = ((cidr, _network(cidr)) for cidr in cidrs)
    return [cidr for cidr, network in found if network and any(network.overlaps(block) for block in blocks)]


def private_ranges(cidrs: Iterable[str]) -> list[str]:
    """Return the ranges that a network connected with the VPC can have, ignoring invalid ranges."""
    return _within(cidrs, _PRIVATE)


def world_ranges(cidrs: Iterable[str]) -> list[str]:
    """Return the ranges that together are open to the internet: at least an IPv4 /8 or an IPv6 /16.

    0.0.0.0/0 has other names, and can be written in parts: 0.0.0.0/1 and 128.0.0.0/1 are the same. Ranges that no
    caller from the internet has don't count, and neither do invalid ranges.
    """
    world: list[str] = []
    ranges = list(dict.fromkeys(cidrs))
    for version, most in ((4, _LARGEST_IPV4), (6, _LARGEST_IPV6)):
        networks = {each: network for each in ranges if (network := _any_network(each)) and network.version == version}
        nobodys = _within(networks, (*_RESERVED, *_DOCUMENTATION))
        public = {each: network for each, network in networks.items() if each not in nobodys and not network.is_private}
        # collapse_addresses takes networks of one version.
        together = ipaddress.collapse_addresses(public.values())  # type: ignore[type-var]
        if sum(network.num_addresses for network in together) >= most:
            world += public
    return world


def _any_network(cidr: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(cidr.strip(), strict=False)
    except ValueError:
        return None


def admits(address: str, cidrs: Iterable[str]) -> bool:
    """Return whether an IPv4 address is in one of the ranges."""
    one = ipaddress.IPv4Address(address)
    return any(one in network for network in map(_network, cidrs) if network is not None)


def address_within(cidrs: Iterable[str]) -> str:
    """Return an address of the first range: its tenth where it has so many, else its first."""
    network = ipaddress.IPv4Network(next(iter(cidrs)))
    return str(network[min(_TENTH, network.num_addresses - 1)])


def _within(cidrs: Iterable[str], known: Sequence[str]) -> list[str]:
    blocks = [ipaddress.IPv4Network(each) for each in known]
    found = ((cidr, _network(cidr.strip())) for cidr in cidrs)
    return [cidr for cidr, network in found if network and any(network.subnet_of(block) for block in blocks)]


def _network(cidr: str) -> ipaddress.IPv4Network | None:
    try:
        return ipaddress.IPv4Network(cidr)
    except ValueError:
        return None


# The first sixteenth of the VPC's range is divided into 16 equal blocks: eight for public subnets, seven for the
# control plane, which is in a region's first zones, and one for a single NAT gateway, which exists together with those
# of zones while one replaces the others. A zone's block depends only on its letter, or on the number in its ID, so
# adding a zone doesn't move others.
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


def public_cidr(vpc_cidr: str, availability_zone: str | None) -> str:
    """Return the range of a zone's public subnet, with its NAT gateway; None is the subnet of a single gateway."""
    return _block(vpc_cidr, availability_zone, 0) if availability_zone else _block(vpc_cidr, LAST_ZONE, _HALF)


def control_plane_cidr(vpc_cidr: str, availability_zone: str) -> str:
    """Return the range of a zone's subnet for the network interfaces of the EKS control plane."""
    if availability_zone.endswith((LAST_ZONE, str(_HALF))):
        raise ValueError(f"the block of zone {availability_zone} is that of the single NAT gateway")
    return _block(vpc_cidr, availability_zone, _HALF)


def control_plane_subnets(existing: ExistingNetwork) -> tuple[str, ...]:
    """Return the control plane's subnets.

    The given subnets, or the subnets of the first two zones, so that a third changes nothing.
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


_KEEPS_AWAY: Final = ("NoSchedule", "NoExecute")
# Of EKS's CoreDNS add-on.
_TOLERATED: Final = ("CriticalAddonsOnly", "node-role.kubernetes.io/control-plane")


def taints_against_addons(group: InstanceGroup) -> list[str]:
    """Return the keys of a group's taints that CoreDNS and the add-ons don't tolerate."""
    return [taint.key for taint in group.taints if taint.effect in _KEEPS_AWAY and taint.key not in _TOLERATED]


def awaited_groups(plan: Plan) -> tuple[InstanceGroup, ...]:
    """Return the groups that add-ons need: groups without accelerators, if any of them have nodes.

    Otherwise, those without deep health checks, which take hours. Empty if only Karpenter adds nodes.
    """
    static = [group.spec for group in plan.groups if not group.autoscaled and group.spec.instance_count]
    open_groups = [group for group in static if not taints_against_addons(group)]
    soon = [group for group in open_groups if not group.deep_health_checks]
    return tuple([group for group in soon if not _has_accelerators(group)] or soon or open_groups)


def _has_accelerators(group: InstanceGroup) -> bool:
    known = [find_instance_type(each) for each in group.types]
    return any(each is None or each.accelerators for each in known)

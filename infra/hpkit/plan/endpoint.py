"""Access to the Kubernetes API: which address ranges are public, and which addresses are admitted."""

import ipaddress
from collections.abc import Iterable, Sequence

__all__ = ["address_within", "admits", "documentation_ranges", "private_ranges", "reserved_ranges", "world_ranges"]

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

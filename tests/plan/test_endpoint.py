"""Which ranges admit callers from the internet, according to IANA's registry."""

import ipaddress

import pytest

from hpkit.plan.endpoint import documentation_ranges, reserved_ranges, world_ranges

# IANA, IPv4 special-purpose address registry: what is not globally reachable.
SPECIAL = (
    *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24"),
    *("192.0.2.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4"),
    "255.255.255.255/32",
)


@pytest.mark.parametrize("block", [*SPECIAL, "224.0.0.0/4"])
def test_a_special_purpose_range_lets_nobody_in(block):
    network = ipaddress.IPv4Network(block)
    first = f"{network[0]}/32"
    for cidr in (block, first):
        assert bool(reserved_ranges([cidr])) is not bool(documentation_ranges([cidr])), cidr
        assert not world_ranges([cidr]), cidr


@pytest.mark.parametrize("cidr", ["52.10.20.0/24", "1.1.1.1/32", "192.0.1.0/24", "198.20.0.0/16", "223.255.255.0/24"])
def test_any_other_range_is_of_the_internet(cidr):
    assert not reserved_ranges([cidr])
    assert not documentation_ranges([cidr])

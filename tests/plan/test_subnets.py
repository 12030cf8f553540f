"""hpkit's small subnets: disjoint, inside their part of the VPC, and determined by the zone's letter."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpkit.plan.subnets import control_plane_cidr, own_part, public_cidr

VPCS = st.integers(16, 20).flatmap(
    lambda prefix: st.integers(0, 2**prefix - 1).map(lambda n: f"{ipaddress.IPv4Address(n << (32 - prefix))}/{prefix}")
)


@given(VPCS)
def test_subnets_lie_in_their_part_and_never_overlap(vpc):
    zones = [f"us-west-2{letter}" for letter in "abcdefgh"]
    assert [public_cidr(vpc, f"usw2-az{number}") for number in range(1, 9)] == [public_cidr(vpc, z) for z in zones]
    blocks = [ipaddress.IPv4Network(cut(vpc, zone)) for zone in zones for cut in (public_cidr, control_plane_cidr)]
    assert all(block.subnet_of(own_part(vpc)) and block.prefixlen <= 28 for block in blocks)
    assert len(set(blocks)) == len(blocks)
    assert own_part(vpc).subnet_of(ipaddress.IPv4Network(vpc))


@pytest.mark.parametrize(("vpc", "zone"), [("10.0.0.0/21", "us-west-2a"), ("10.0.0.0/16", "us-west-2i")])
def test_what_has_no_room_is_an_error(vpc, zone):
    with pytest.raises(ValueError, match="has no block"):
        public_cidr(vpc, zone)

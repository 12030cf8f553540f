"""Names within their limits, disjoint subnets, ranges of the internet, and values that override others."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpkit.plan.dependencies import merged
from hpkit.plan.derive import derive
from hpkit.plan.endpoint import (
    control_plane_cidr,
    documentation_ranges,
    own_part,
    public_cidr,
    reserved_ranges,
    world_ranges,
)
from hpkit.plan.names import bounded, bucket_name, role_name
from tests.builders import organization, typed

NAMES = st.from_regex(r"\A[a-z0-9](?:[-a-z0-9]{0,78}[a-z0-9])?\Z")


@given(NAMES, st.integers(12, 64))
def test_a_name_is_never_longer_than_its_limit(name, limit):
    assert len(bounded(name, limit)) <= limit
    assert bounded(name, limit) == name or len(name) > limit


@given(NAMES, NAMES, st.integers(20, 40))
def test_two_names_stay_two(one, other, limit):
    assert (bounded(one, limit) == bounded(other, limit)) == (one == other)


def test_names_of_the_longest_organization_fit():
    data = organization(top={"organization": "a" * 40})
    plan = derive(typed(data), "dev")
    assert len(role_name(plan, "amazon-sagemaker-hyperpod-training-operator")) <= 64
    bucket = bucket_name(plan, "123456789012")
    assert len(bucket) <= 63
    assert bucket.startswith("sagemaker-a")
    assert bucket.endswith("-123456789012-us-west-2")


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


LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.lists(st.integers(), max_size=2)
KEYS = st.sampled_from(["a", "b", "c"])
MAPS = st.dictionaries(KEYS, st.recursive(LEAVES, lambda inner: st.dictionaries(KEYS, inner, max_size=3)), max_size=3)


@given(MAPS, MAPS)
def test_what_the_file_says_holds_and_the_rest_stays(base, over):
    result = merged(base, over)
    assert merged(result, over) == result
    assert set(result) == set(base) | set(over)
    for key in set(base) - set(over):
        assert result[key] == base[key]
    for key, value in over.items():
        if not isinstance(value, dict):
            assert result[key] == value


@given(MAPS)
def test_nothing_laid_over_changes_nothing(base):
    assert merged(base, {}) == base
    assert merged({}, base) == base


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

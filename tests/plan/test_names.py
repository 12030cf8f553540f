"""Names within their limits, disjoint subnets, ranges of the internet, and values that override others."""

import copy
import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpkit.catalog import dependencies_chart
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
from hpkit.plan.principals import groups_of
from hpkit.plan.protected import allowed_in, contents_of, kept, nested_of, places_of
from tests import builders
from tests.builders import organization, team, typed

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
    ranges = [*(public_cidr(vpc, zone) for zone in (*zones, None)), *(control_plane_cidr(vpc, z) for z in zones[:-1])]
    blocks = [ipaddress.IPv4Network(each) for each in ranges]
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


DEV, PROD = "123456789012", "210987654321"


def role(name, account=DEV):
    return f"arn:aws:iam::{account}:role/{name}"


def members(*roles, account=DEV, override=None):
    """Return the members of a team with these roles, in an environment of an account."""
    data = organization(
        teams=[team("ada", members=list(roles))], allocations={"ada": [{"instanceType": "ml.g5.12xlarge", "count": 1}]}
    )
    environment = data["environments"]["dev"]
    environment.pop("account", None)
    if account is not None:
        environment["account"] = account
    if override is not None:
        environment["governance"]["overrides"] = {"ada": override}
    plan = derive(typed(data), "dev")
    (planned,) = plan.teams
    assert tuple(groups_of(plan)) == planned.spec.members
    return planned.spec.members


@pytest.mark.parametrize(
    ("account", "admitted"),
    [
        (DEV, (role("ada"),)),
        (PROD, (role("ada", PROD),)),
        (None, (role("ada"), role("ada", PROD))),
        ("333333333333", ()),
    ],
)
def test_an_environment_with_an_account_admits_only_roles_of_that_account(account, admitted):
    assert members(role("ada"), role("ada", PROD), account=account) == admitted


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ({"members": [role("lead")]}, (role("lead"),)),
        ({"members": []}, ()),
        ({"fairShareWeight": 7}, (role("ada"),)),
        ({"members": [role("ada", PROD)]}, ()),
    ],
)
def test_members_of_an_override_replace_those_of_the_team_within_the_account(override, expected):
    assert members(role("ada"), override=override) == expected


def test_a_role_that_is_made_is_a_member_unless_an_override_names_the_members():
    made = role("acme-dev-us-west-2-team-ada")
    data = organization(
        teams=[team("ada", members=[role("ada")], memberRole={"permissionSets": ["DataScientist"]})],
        allocations={"ada": [{"instanceType": "ml.g5.12xlarge", "count": 1}]},
    )
    data["environments"]["dev"]["account"] = DEV
    for override, expected in (
        ({}, (role("ada"), made)),
        ({"members": []}, ()),
        ({"members": [], "memberRole": {"principals": [role("lead")]}}, (made,)),
    ):
        data["environments"]["dev"]["governance"]["overrides"] = {"ada": override}
        (planned,) = derive(typed(data), "dev").teams
        assert planned.spec.members == expected


BASE = organization()
BASE["environments"]["dev"]["eks"]["endpoint"] = {"public": True, "publicCidrs": ["52.10.20.0/24"]}
EXISTING = {
    "vpcId": "vpc-0123456789abcdef0",
    "subnets": {"us-west-2a": "subnet-0123456789abcdef0", "us-west-2b": "subnet-0123456789abcdef1"},
    "securityGroupIds": ["sg-0123456789abcdef0"],
}


def plan(**more):
    data = copy.deepcopy(BASE)
    for section, value in more.items():
        place = data["environments"]["dev"]
        place[section] = {**place.get(section, {}), **value} if isinstance(value, dict) else value
    return derive(typed(data), "dev")


def test_what_goes_is_named_with_its_nodes_and_teams():
    said = contents_of(plan())
    assert set(said) == {"bucket", "cluster", "eks", "key", "vpc"}
    (cluster,) = [text for name, text in said.items() if name == "cluster"]
    for group in plan().groups:
        assert f"{group.spec.name} {group.spec.instance_count} × {group.spec.instance_type}" in cluster
    assert all(each.name in cluster for each in plan().teams)


def test_what_was_there_already_is_not_the_environments_to_lose():
    data = copy.deepcopy(BASE)
    data["environments"]["dev"]["eks"]["existing"] = {"name": "there"}
    data["environments"]["dev"]["network"] = {"existing": EXISTING}
    plan_ = derive(typed(data), "dev")
    assert places_of(plan_) == {}
    assert set(contents_of(plan_)) == {"bucket", "cluster"}
    assert nested_of(plan_) == ("cluster",)


ANYWHERE = {"name": "gpu", "instanceType": "ml.g5.12xlarge", "instanceCount": 4}


def moved(one, two):
    """Return what both have with different values, which a guard rejects."""
    return {name for name in one.keys() & two.keys() if one[name] != two[name]}


def zones(*ranges):
    named = zip("ab", ranges, strict=False)
    return {"zones": [{"availabilityZone": f"us-west-2{letter}", "nodeCidr": cidr} for letter, cidr in named]}


def test_a_group_that_lives_keeps_its_zone_and_its_zones_addresses():
    here = places_of(plan(network=zones("10.1.0.0/16")))
    there = plan(network=zones("10.9.0.0/16"))
    assert moved(here, places_of(there)) == {f"{group.spec.name} in us-west-2a" for group in there.groups}
    other = plan(network=zones("10.9.0.0/16"), cluster={"instanceGroups": [{**ANYWHERE, "name": "new"}]})
    assert moved(here, places_of(other)) == set(), "a new name is a new group"


def test_a_zone_comes_and_goes_for_a_group_that_is_in_all_of_them():
    anywhere = {"instanceGroups": [ANYWHERE]}
    one, two, other = (
        places_of(plan(network=zones(*ranges), cluster=anywhere))
        for ranges in (["10.1.0.0/16"], ["10.1.0.0/16", "10.2.0.0/16"], ["10.9.0.0/16", "10.2.0.0/16"])
    )
    assert moved(one, two) == moved(two, one) == set()
    assert moved(two, other) == {"gpu in us-west-2a"}


def test_files_are_named_with_their_size():
    lustre = {"availabilityZone": "us-west-2a", "storageCapacityGiB": 2400, "perUnitStorageThroughput": 125}
    assert "2400 GiB" in contents_of(plan(storage={"lustre": lustre}))["fileSystem"]


def test_only_what_is_named_may_be_replaced():
    plan_ = plan(allowReplace=["eks"])
    assert [name for name in ("vpc", "eks", "cluster") if not kept(plan_, name)] == ["eks"]
    assert nested_of(plan_) == ("vpc", "eks", "cluster")
    assert allowed_in(plan_) == "environments.dev of stacks/acme.yaml"


REGISTRY = "123456789012.dkr.ecr.us-west-2.amazonaws.com/mirror"


def chart(groups=None, **dependencies):
    data = builders.organization(groups=groups)
    if dependencies:
        data["environments"]["dev"]["cluster"]["dependencies"] = dependencies
    return derive(builders.typed(data), "dev").dependencies


def test_a_file_that_says_nothing_gets_the_chart_that_the_kit_pins_with_its_region():
    dependencies = chart()
    assert dependencies.chart == f".hpkit/charts/{dependencies_chart().file}"
    assert dependencies.version == dependencies_chart().version
    assert dependencies.values == {"health-monitoring-agent": {"region": "us-west-2"}}


def test_nothing_is_installed_where_a_person_says_that_it_is_there():
    assert chart(installed=True) is None


def test_a_users_values_for_the_agent_keep_the_region_unless_they_say_another():
    assert chart(values={"health-monitoring-agent": {"debug": False}}).values == {
        "health-monitoring-agent": {"region": "us-west-2", "debug": False}
    }
    named = chart(values={"health-monitoring-agent": {"region": "us-east-1"}})
    assert named.values == {"health-monitoring-agent": {"region": "us-east-1"}}


def test_a_chart_of_ones_own_is_taken_with_its_version():
    found = chart(chart="oci://registry.example/chart", version="1.2.3", values={"a": 1})
    assert (found.chart, found.version) == ("oci://registry.example/chart", "1.2.3")
    assert found.values == {"health-monitoring-agent": {"region": "us-west-2"}, "a": 1}


def test_with_a_mirror_every_image_that_is_elsewhere_comes_from_it():
    values = chart(imageRegistry=REGISTRY).values
    assert values["nvidia-device-plugin"] == {"image": {"repository": f"{REGISTRY}/nvidia/k8s-device-plugin"}}
    assert values["mpi-operator"] == {"mpiOperator": {"image": {"repository": f"{REGISTRY}/mpioperator/mpi-operator"}}}
    assert values["training-operators"] == {"image": {"repository": f"{REGISTRY}/kubeflow/training-operator"}}
    assert "hmaimage" not in values["health-monitoring-agent"], "the region has a registry of its own"
    assert "aws-efa-k8s-device-plugin" not in values


@pytest.mark.parametrize(
    ("instance_type", "off"), [("ml.g5.12xlarge", {"devicePlugin": {"enabled": False}}), ("ml.trn1.32xlarge", None)]
)
def test_with_a_mirror_a_part_without_a_value_for_its_image_is_off_where_no_node_needs_it(instance_type, off):
    groups = [builders.group("gpu", instance_type, 1)]
    assert chart(groups, imageRegistry=REGISTRY).values.get("neuron-device-plugin") == off
    assert "neuron-device-plugin" not in chart(groups).values


def test_a_users_value_wins_over_the_mirror():
    mine = {"nvidia-device-plugin": {"image": {"repository": "mine/plugin"}}}
    assert chart(imageRegistry=REGISTRY, values=mine).values["nvidia-device-plugin"] == mine["nvidia-device-plugin"]


@pytest.mark.parametrize("instance_type", ["x", "ml", "p5"])
def test_a_word_that_is_no_instance_type_is_no_family_of_a_part(instance_type):
    groups = [builders.group("gpu", instance_type, 1)]
    assert chart(groups, imageRegistry=REGISTRY).values["neuron-device-plugin"] == {"devicePlugin": {"enabled": False}}

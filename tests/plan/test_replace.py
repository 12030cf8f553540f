"""Guards refuse exactly what would make VPC, EKS cluster, HyperPod cluster or an instance group another."""

import copy

import pytest

from hpkit.plan.derive import derive
from hpkit.plan.replace import guards_of
from tests.builders import organization, typed

BASE = organization()
BASE["environments"]["dev"]["eks"]["endpoint"] = {"public": True, "publicCidrs": ["203.0.113.0/24"]}
EXISTING = {
    "vpcId": "vpc-0123456789abcdef0",
    "subnets": {"us-west-2a": "subnet-0123456789abcdef0", "us-west-2b": "subnet-0123456789abcdef1"},
    "securityGroupIds": ["sg-0123456789abcdef0"],
}


def guards(data):
    return {guard.key: guard for guard in guards_of(derive(typed(data), "dev"))}


def changed(base, *steps):
    data = copy.deepcopy(base)
    for path, value in steps:
        *way, last = path.split(".")
        place = data["environments"]["dev"]
        for step in way:
            place = place[int(step) if step.isdigit() else step]
        place[last] = value
    return data


def others(one, two):
    """The keys of guards that say no: a setting that is there before and after has another value."""
    before, after = guards(one), guards(two)
    return {
        key
        for key in before
        for setting, value in before[key].identity.items()
        if after[key].identity.get(setting, value) != value
    }


@pytest.mark.parametrize(
    ("path", "value", "replaced"),
    [
        ("network.vpcCidr", "10.193.0.0/16", {"vpc", "eks", "cluster"}),
        ("network", {"existing": EXISTING}, {"vpc", "eks", "cluster"}),
        ("eks.existing", {"name": "another"}, {"eks", "cluster"}),
        ("cluster.name", "another", {"cluster"}),
    ],
)
def test_another_identity_replaces_it_and_what_stands_on_it(path, value, replaced):
    assert others(BASE, changed(BASE, (path, value))) == replaced


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("eks.version", "1.34"),
        ("eks.endpoint", {"public": False}),
        ("cluster.nodeRecovery", "None"),
        ("cluster.instanceGroups.0.instanceCount", 9),
        ("cluster.instanceGroups.0.name", "renamed"),
        ("network.natGateways", "PerZone"),
        ("network.endpoints", ["s3", "ecr.api"]),
        ("protect", False),
        ("tags", {"owner": "ml"}),
        ("allowReplace", ["cluster"]),
    ],
)
def test_what_changes_in_place_is_in_no_identity(path, value):
    assert others(BASE, changed(BASE, (path, value))) == set()


ZONE = ("network.zones.0.nodeCidr", "10.9.0.0/16")
ANYWHERE = {"name": "gpu", "instanceType": "ml.g5.12xlarge", "instanceCount": 4}
ONE_ZONE = [{"availabilityZone": "us-west-2a", "nodeCidr": "10.1.0.0/16"}]
TWO_ZONES = [*ONE_ZONE, {"availabilityZone": "us-west-2b", "nodeCidr": "10.2.0.0/16"}]


def test_a_group_that_lives_keeps_its_zone_and_its_zones_addresses():
    assert others(BASE, changed(BASE, ZONE)) == {"groups"}
    assert others(BASE, changed(BASE, ("cluster.instanceGroups.0.availabilityZone", "us-west-2b"))) == {"groups"}
    assert others(BASE, changed(BASE, ZONE, ("cluster.instanceGroups", [{**ANYWHERE, "name": "new"}]))) == set()


def test_a_zone_comes_and_goes_for_a_group_that_is_in_all_of_them():
    anywhere = ("cluster.instanceGroups", [ANYWHERE])
    one, two = (changed(BASE, anywhere, ("network.zones", zones)) for zones in (ONE_ZONE, TWO_ZONES))
    assert others(one, two) == others(two, one) == set()
    assert others(two, changed(two, ZONE)) == {"groups"}


def test_a_zone_without_groups_may_get_other_addresses():
    here = ("cluster.instanceGroups", [{**ANYWHERE, "availabilityZone": "us-west-2b"}])
    base = changed(BASE, here, ("network.zones", TWO_ZONES))
    assert others(base, changed(base, ZONE)) == set()


@pytest.mark.parametrize(
    ("existing", "replaced"),
    [
        ({**EXISTING, "vpcId": "vpc-0123456789abcdef9"}, {"vpc", "eks", "cluster"}),
        ({**EXISTING, "subnets": {**EXISTING["subnets"], "us-west-2b": "subnet-0123456789abcdef9"}}, {"cluster"}),
        ({**EXISTING, "securityGroupIds": ["sg-0123456789abcdef9"]}, {"cluster"}),
    ],
)
def test_the_cluster_keeps_its_subnets_and_groups_in_an_existing_network(existing, replaced):
    base = changed(BASE, ("network", {"existing": EXISTING}))
    assert others(base, changed(BASE, ("network", {"existing": existing}))) == replaced


def test_a_zone_added_to_an_existing_network_replaces_nothing():
    base = changed(BASE, ("network", {"existing": EXISTING}))
    later = {**EXISTING["subnets"], "us-west-2c": "subnet-0123456789abcdef2"}
    assert others(base, changed(BASE, ("network", {"existing": {**EXISTING, "subnets": later}}))) == set()
    earlier = {
        "subnets": {"us-west-2c": "subnet-0123456789abcdef2", **EXISTING["subnets"]},
        "controlPlaneSubnets": ["subnet-0123456789abcdef1", "subnet-0123456789abcdef2"],
    }
    kept = {**earlier, "subnets": {**earlier["subnets"], "us-west-2d": "subnet-0123456789abcdef3"}}
    one, two = (changed(BASE, ("network", {"existing": {**EXISTING, **each}})) for each in (earlier, kept))
    assert others(one, two) == set()


def test_the_order_in_which_an_existing_network_is_written_is_no_change():
    turned = {**EXISTING, "subnets": dict(reversed(EXISTING["subnets"].items()))}
    one, two = (changed(BASE, ("network", {"existing": each})) for each in (EXISTING, turned))
    assert others(one, two) == set()


def test_only_what_is_named_may_be_replaced_and_the_remedy_names_all_that_goes_with_it():
    found = guards(BASE)
    assert not any(guard.allowed for guard in found.values())
    assert "new names" in found.pop("groups").remedy
    for key, named in {"vpc": "vpc, eks, cluster", "eks": "eks, cluster", "cluster": "cluster"}.items():
        assert f"`allowReplace: [{named}]` in environments.dev of stacks/acme.yaml" in found[key].remedy


def test_a_remedy_keeps_what_is_allowed_already():
    found = guards(changed(BASE, ("allowReplace", ["eks"])))
    assert {key for key, guard in found.items() if guard.allowed} == {"eks"}
    assert "`allowReplace: [eks, cluster]`" in found["cluster"].remedy


def test_the_version_is_guarded_only_of_an_eks_cluster_that_the_kit_makes():
    assert {key: guard.version for key, guard in guards(BASE).items()} == {
        "vpc": None,
        "eks": "1.33",
        "cluster": None,
        "groups": None,
    }
    assert guards(changed(BASE, ("eks.existing", {"name": "there"})))["eks"].version is None

"""Text about what is lost with each protected resource, limited to what the environment creates."""

import copy

from hpkit.plan.derive import derive
from hpkit.plan.protected import allowed_in, contents_of, kept, nested_of, places_of
from tests.builders import organization, typed

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
    for team in plan().teams:
        assert team.name in cluster


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

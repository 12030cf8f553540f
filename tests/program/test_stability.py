"""An edit only affects its own resources: names and inputs of all others stay the same."""

import copy

import pytest

from generate.urns import FOLDER, parse_urns, registered
from hpkit.program.components.admission.policies import policies_of
from hpkit.project import project_root
from tests.builders import group, organization, team
from tests.program.recorder import recorded_from

BASE = organization(
    teams=[team("alpha"), team("gamma", members=["arn:aws:iam::123456789012:role/gamma"])],
    groups=[group("gpu", "ml.g5.12xlarge", 4), group("system", "ml.m5.4xlarge", 1, availabilityZone="us-west-2b")],
    allocations={
        "alpha": [{"instanceType": "ml.g5.12xlarge", "count": 2}],
        "gamma": [{"instanceType": "ml.g5.12xlarge", "count": 1}],
    },
)


def edited(change):
    data = copy.deepcopy(BASE)
    change(data, data["environments"]["dev"])
    return recorded_from(data)


def differences(change):
    """Return (type, name) of resources that are new, removed, or have different inputs."""
    before, after = recorded_from(BASE), edited(change)
    inputs = {(each.type, each.name): each.inputs for each in before.resources.values()}
    outputs = {(each.type, each.name): each.inputs for each in after.resources.values()}
    return {
        f"{resource_type.rpartition(':')[2]} {name}"
        for resource_type, name in inputs.keys() | outputs.keys()
        if inputs.get((resource_type, name)) != outputs.get((resource_type, name))
    }


POLICIES = {f"ValidatingAdmissionPolicy {policy.name}" for policy in policies_of(())}
# Nodes and teams that a rejection would mention: for the plugin, not a difference.
WORDS = {"ChangeGuard keep", "ChangeGuard keep-base", "hyperpod hyperpod"}


def test_the_order_in_the_file_means_nothing():
    def shuffle(data, dev):
        data["teams"].reverse()
        dev["cluster"]["instanceGroups"].reverse()
        dev["network"]["zones"].reverse()
        dev["governance"]["allocations"] = dict(reversed(dev["governance"]["allocations"].items()))

    assert differences(shuffle) == set()


def test_a_team_in_the_middle_adds_what_is_its_own():
    def add(data, dev):
        data["teams"].insert(1, team("beta", members=["arn:aws:iam::123456789012:role/beta"]))
        dev["governance"]["allocations"]["beta"] = [{"instanceType": "ml.g5.12xlarge", "count": 1}]

    changed = differences(add)
    # In place: each policy names the namespaces of teams with members.
    assert {each for each in changed if each.startswith("ValidatingAdmissionPolicy ")} == POLICIES
    assert changed - POLICIES == {
        "ComputeQuota beta",
        "LimitRange beta",
        "ResourceQuota beta",
        "NamespacePatch beta",
        "AccessEntry 123456789012:role/beta",
        "Role beta",
        "RoleBinding beta",
        "ClusterRoleBinding hpkit-data-scientist",
        "ChangeGuard keep-parts",
        *WORDS,
    }


def test_a_zone_before_the_others_adds_what_is_its_own_and_moves_no_gateway():
    zone = {"availabilityZone": "us-west-2c", "nodeCidr": "10.3.0.0/16"}
    changed = differences(lambda _, dev: dev["network"]["zones"].insert(0, zone))
    own = {each for each in changed if each.endswith("nodes-us-west-2c")}
    # In place: the endpoint gets the new route table, and the role may create interfaces in the new subnet.
    assert changed - own == {"VpcEndpoint endpoint-s3", "RolePolicy nodes"}
    assert {each.partition(" ")[0] for each in own} == {
        "VpcIpv4CidrBlockAssociation",
        "Subnet",
        "RouteTable",
        "RouteTableAssociation",
        "Route",
    }


def test_growing_a_group_touches_the_cluster_alone():
    def grow(_, dev):
        dev["cluster"]["instanceGroups"][0]["instanceCount"] = 5

    assert differences(grow) == {"Cluster cluster", "Readiness capacity", *WORDS}


def test_shifting_quota_touches_the_two_quotas_alone():
    def shift(_, dev):
        dev["governance"]["allocations"]["alpha"][0]["count"] = 1
        dev["governance"]["allocations"]["gamma"][0]["count"] = 2

    assert differences(shift) == {
        *("ComputeQuota alpha", "ResourceQuota alpha"),
        *("ComputeQuota gamma", "ResourceQuota gamma"),
    }


def test_removing_governance_removes_addon_policy_quotas_and_rights():
    changed = differences(lambda _, dev: dev.pop("governance"))
    assert "Addon amazon-sagemaker-hyperpod-taskgovernance" in changed
    assert {"ClusterSchedulerConfig policy", "ComputeQuota alpha", "ComputeQuota gamma", "RoleBinding gamma"} <= changed
    assert not {"Cluster cluster", "Vpc vpc"} & changed


@pytest.mark.parametrize("stack", sorted(file.stem for file in (project_root() / FOLDER).glob("*.txt")))
def test_what_an_example_ever_registered_it_registers_still_under_the_same_name(stack):
    before = parse_urns((project_root() / FOLDER / f"{stack}.txt").read_text(encoding="utf-8"))
    gone = sorted(before - registered(stack).keys())
    assert gone == [], "these are in people's state, and the next `up` would delete them: give them back their names"

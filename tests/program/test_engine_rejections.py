"""A rejected `up` of a live stack changes nothing, whatever rejects it."""

import copy
import json
import re

import pytest
import yaml

from hpkit_local.supervisor.pulumi_stack import Stack
from tests.program.cloud import ROOT

pytestmark = [pytest.mark.platform, pytest.mark.timeout(1800)]


def remove_a_team(data, environment):
    data["teams"].pop()
    environment["governance"]["allocations"].popitem()


def rename_a_group(data, environment):
    environment["cluster"]["instanceGroups"][0]["name"] = "gpus"


def rename_the_cluster(data, environment):
    environment["cluster"]["name"] = "other"


def move_the_vpc(data, environment):
    environment["network"] = json.loads(json.dumps(environment["network"]).replace("10.192.", "10.200."))


def move_the_groups(data, environment):
    environment["network"]["zones"][0]["nodeCidr"] = "10.192.192.0/18"


def move_and_rename_the_groups(data, environment):
    move_the_groups(data, environment)
    for group in environment["cluster"]["instanceGroups"]:
        group["name"] += "2"


def remove_a_member(data, environment):
    data["teams"][0]["members"] = []


ALLOW = re.compile(
    r"to allow it once, (?:first run `pulumi up` with (?P<first>`.*?`) in \S.*? and without this change, then make "
    r"this change with (?P<then>`.*?`(?: and `.*?`)*)|set (?P<all>`.*?`(?: and `.*?`)*) in )"
)


def written(data, settings):
    """Return the file with settings that a message has in backquotes."""
    edited = copy.deepcopy(data)
    for setting in re.findall(r"`(.*?)`", settings):
        edited["environments"]["dev"] |= yaml.safe_load(setting)
    return edited


@pytest.fixture
def stack(up, instance, repository):
    made = Stack(instance, "handson-dev", root=repository.folder)
    made.environment = up.environment
    return made


@pytest.mark.parametrize(
    ("change", "error", "follow"),
    [
        (remove_a_team, "ChangeGuard keep-parts: This change would", remove_a_team),
        (rename_a_group, "Cluster cluster: This change would DELETE the instance group", rename_a_group),
        (move_the_groups, "ChangeGuard keep-groups: ", move_and_rename_the_groups),
        (move_the_vpc, "ChangeGuard keep-groups: handson-dev: an EKS cluster can't move", None),
        (None, "mandatory-tags: ", None),
        (remove_a_member, "pulumi state unprotect", None),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_rejected_up_changes_nothing_and_its_printed_advice_is_enough(
    change, error, follow, stack, up, repository, live, tmp_path
):
    data = repository.read("handson")
    # Each resource with tags would be updated.
    data["tags"] = {**data["tags"], "cost-center": "other"}
    options = ()
    if change is None:
        config = tmp_path / "policy.json"
        config.write_text(json.dumps({"mandatory-tags": {"values": {"cost-center": ["ml"]}}}))
        options = ("--policy-pack", str(ROOT / "policies"), "--policy-pack-config", str(config))
    else:
        change(data, data["environments"]["dev"])
    protected = change is remove_a_member
    if protected:
        (urn,) = (
            each["urn"]
            for each in json.loads(up.read("stack", "export"))["deployment"]["resources"]
            if each["urn"].endswith(":role/john-scientists")
        )
        up.read("state", "protect", urn, "--yes")
    state = up.read("stack", "export")
    before = live.settled()
    repository.write("handson", data)
    shown = []
    try:
        assert stack.run("up", *options, show=shown.append) != 0
        (found,) = [each for each in shown[-1].errors if error in each]
        assert shown[-1].done == {}
        assert live.settled() == before
        assert json.loads(up.read("stack", "export")) == json.loads(state)
        if follow is not None:
            data = repository.read("handson")
            follow(data, data["environments"]["dev"])
            repository.write("handson", written(data, ALLOW.search(found)["all"]))
            assert stack.run("preview", show=shown.append) == 0, shown[-1].errors
    finally:
        repository.write("handson", repository.read("handson"))
        if protected:
            up.read("state", "unprotect", urn, "--yes")


@pytest.mark.platform(taken_away=2)
def test_the_printed_advice_about_a_protected_stack_is_enough(stack, repository, live):
    def up(data):
        repository.write("handson", data)
        shown = []
        return stack.run("up", show=shown.append), "\n".join(shown[-1].errors)

    protected = repository.read("handson")
    protected["environments"]["dev"]["protect"] = True
    assert up(protected) == (0, "")
    goal = copy.deepcopy(protected)
    rename_the_cluster(goal, goal["environments"]["dev"])
    code, error = up(goal)
    assert code
    advice = ALLOW.search(error)
    assert advice, error
    if advice["first"]:
        assert up(written(protected, advice["first"])) == (0, "")
    assert up(written(goal, advice["then"] or advice["all"])) == (0, "")
    assert live.cluster()["ClusterName"] == "other"

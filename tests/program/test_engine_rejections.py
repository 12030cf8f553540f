"""A rejected `up` of a live stack changes nothing, whatever rejects it."""

import json

import pytest

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


def remove_a_member(data, environment):
    data["teams"][0]["members"] = []


@pytest.fixture
def stack(up, instance, repository):
    made = Stack(instance, "handson-dev", root=repository.folder)
    made.environment = up.environment
    return made


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (remove_a_team, "ChangeGuard keep-parts: This change would"),
        (rename_a_group, "Cluster cluster: This change would DELETE the instance group"),
        (rename_the_cluster, "Cluster cluster: This change would REPLACE the HyperPod cluster"),
        (move_the_vpc, "ChangeGuard keep-groups: The place"),
        (None, "mandatory-tags: "),
        (remove_a_member, "pulumi state unprotect"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_rejected_up_changes_nothing(change, error, stack, up, repository, live, tmp_path):
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
        assert any(error in each for each in shown[-1].errors), shown[-1].errors
        assert shown[-1].done == {}
        assert live.settled() == before
        assert json.loads(up.read("stack", "export")) == json.loads(state)
    finally:
        repository.write("handson", repository.read("handson"))
        if protected:
            up.read("state", "unprotect", urn, "--yes")

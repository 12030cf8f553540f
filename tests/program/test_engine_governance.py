"""Governance of an existing stack becomes a separate stack: nothing is created, replaced or deleted by the move."""

import json
import re

import pytest

from tests.builders import split
from tests.cli.invoke import hpkit
from tests.program.asked import Asked
from tests.program.cloud import Live, Program

pytestmark = [pytest.mark.engine, pytest.mark.cluster, pytest.mark.nightly, pytest.mark.timeout(1800)]

STATE_ONLY = re.compile(
    r"ChangeGuard|Readiness|pulumi:providers|hpkit:index|pulumi:pulumi|^(Governance|Scheduling|Registry|TeamVolumes):"
)
WRITES = re.compile(r":(Create|Update|Delete|Put|Attach|Detach|Modify|Authorize|Revoke|Associate|Run)")

FILE_SYSTEM = "aws:fsx/lustreFileSystem:LustreFileSystem"
LUSTRE = {"availabilityZone": "us-west-2a", "storageCapacityGiB": 1200, "teams": True}


def state(program):
    return json.loads(program.read("stack", "export"))["deployment"]["resources"]


def changes(program):
    found = program.preview().items()
    return {name: op for name, op in found if op != "discard" and not STATE_ONLY.search(name)}


def test_a_stack_is_split_and_a_weight_changes_without_rights_over_the_network(instance, repository):
    live, platform = Live(instance), Program(instance, "handson-dev", root=repository.folder)
    before, data = live.everything(), repository.read("handson")
    data["teams"][0] |= {"registry": ["train"], "memberRole": {"permissionSets": ["Scientists"]}}
    data["environments"]["dev"]["storage"] = {"lustre": LUSTRE}
    repository.write("handson", data)
    platform.up()
    there = live.everything()
    data = split(data)
    (system,) = (each["id"] for each in state(platform) if each["type"] == FILE_SYSTEM)
    data["environments"]["governance"]["storage"]["lustre"]["existing"] = system
    # Its nodes can pull what they could pull before.
    data["environments"]["dev"]["registry"] = {"pullFrom": ["handson-dev/*"]}
    repository.write("handson", data)
    governance = Program(instance, "handson-governance", root=repository.folder)
    split_off = ("aws", "adopt", "run", "--stack", "handson-governance", "--from-stack", "handson-dev")
    moved = hpkit(*split_off, cwd=repository.folder, **platform.environment)
    assert moved.returncode == 0, moved.stdout + moved.stderr
    assert set(changes(governance).values()) == {"update"}, changes(governance)
    assert changes(platform) == {}
    governance.up()
    platform.up()
    assert changes(governance) == changes(platform) == {}
    assert live.everything().keys() == there.keys()

    data["teams"][0]["fairShareWeight"] = 70
    repository.write("handson", data)
    asked = Asked(instance)
    asked.during(governance.up)
    assert live.quotas()["john"]["ComputeQuotaTarget"]["FairShareWeight"] == 70
    assert {each for each in asked.operations if WRITES.search(each)} == {"sagemaker:UpdateComputeQuota"}

    governance.destroy()
    assert live.cluster()["ClusterStatus"] == "InService"
    platform.destroy()
    assert live.everything() == before

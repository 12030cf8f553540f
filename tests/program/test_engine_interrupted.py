"""`up` is interrupted at random moments; a second run ends like an undisturbed one."""

import json
import os
import random
import re
import signal
import subprocess

import pytest
from boto3 import Session

from hpkit.adopt.live_objects import find_objects
from hpkit.adopt.pending import find_ids, is_looked_for, is_object, unfinished
from hpkit.adopt.pulumi_stack import PulumiStack
from hpkit.adopt.unrecorded import unrecorded
from hpkit.errors import ToolError
from tests.program.cloud import ROOT
from tests.program.recorder import recorded
from tests.running import eventually

pytestmark = pytest.mark.platform

RUNS = max(1, int(os.environ.get("HPKIT_KILLS", "1")) // 3)
SEED = os.environ.get("HPKIT_SEED") or str(random.SystemRandom().randrange(10**6))


def test_each_resource_of_a_live_stack_is_found_as_if_its_creation_had_not_finished(up, live, monkeypatch):
    state = json.loads(up.read("stack", "export"))
    resources = state["deployment"]["resources"]
    assert unfinished(state) == ()
    looked_for = [each for each in resources if is_looked_for(each["type"]) and not each.get("external")]
    differing = {}
    for live_resource in looked_for:
        if is_object(live_resource["type"]):
            continue
        others = [other for other in resources if other is not live_resource]
        pending = [{"type": "creating", "resource": live_resource}]
        killed = {"deployment": {"resources": others, "pending_operations": pending}}
        dropped = {"deployment": {"resources": others}}
        for creations in (unfinished(killed), unrecorded(dropped, recorded("handson-dev"))):
            found = find_ids(live, creations, killed)
            if found != {live_resource["urn"]: live_resource["id"]}:
                differing.setdefault(live_resource["type"], []).append((found, live_resource["id"]))
    # Their import IDs consist of what they connect: subnet and route table, route table and destination.
    joined = {"aws:ec2/route:Route", "aws:ec2/routeTableAssociation:RouteTableAssociation"}
    assert differing.keys() <= joined, differing
    assert all(len(found) == 1 for pairs in differing.values() for found, _ in pairs)

    for name, value in up.environment.items():
        monkeypatch.setenv(name, value)
    # Without its chart, the release is only recorded.
    objects = {each["urn"]: each for each in looked_for if is_object(each["type"]) and "helm.sh" not in each["type"]}
    creations = []
    for urn in objects:
        others = [each for each in resources if each["urn"] != urn]
        creations += unrecorded({"deployment": {"resources": others}}, recorded("handson-dev"))
    cluster = live.client("eks").describe_cluster(name="handson-dev")["cluster"]
    found = find_objects(Session(region_name=live.region), cluster, creations)
    managers = {urn: outputs.get("__fieldManager") for urn, outputs in found.items()}
    assert managers == {urn: each["outputs"].get("__fieldManager") for urn, each in objects.items()}


@pytest.mark.nightly
def test_the_lock_of_a_killed_up_is_released_as_the_page_of_recovery_says(instance, handson, up, tmp_path):
    page = (ROOT / "docs" / "guides" / "recovery.md").read_text(encoding="utf-8")
    (release,) = re.findall(r"^\$ (pulumi cancel .*)$", page, re.MULTILINE)
    (shown,) = re.findall(r"`(the stack is currently locked[^`]*)`", page)
    begun = [*handson.command("up", "--yes", "--skip-preview")]
    with (tmp_path / "log").open("w") as log:
        killed = handson.start("up", "--yes", "--skip-preview", log=log)
        locks = instance.state_folder / ".pulumi" / "locks"
        eventually(lambda: any(locks.rglob("handson-dev/*.json")), "no lock")
        (lock,) = locks.rglob("handson-dev/*.json")
        os.killpg(killed.pid, signal.SIGKILL)
        killed.wait(120)

    def typed(words):
        # `Program` isn't used, because it removes a dead run's lock, as `hpkit local` does.
        done = subprocess.run(words, cwd=handson._root, env=handson.environment, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    code, output = typed(begun)
    held = json.loads(lock.read_text(encoding="utf-8"))
    assert (code != 0, shown in output) == (True, True), output
    assert f"{held['username']}@{held['hostname']} (pid {held['pid']}) at " in output
    stack = PulumiStack("handson-dev", root=handson._root, environment=handson.environment)
    with pytest.raises(ToolError, match=f"If no other run is active: `{release}`"):
        stack.refresh()
    assert typed(release.split())[0] == 0
    assert typed(begun)[0] == 0
    assert handson.preview() == {}


@pytest.fixture(scope="module")
def reference(up, live, clouds):
    """Return the result of an undisturbed run, its duration in seconds, and what exists without it."""
    settled = live.settled()
    up.destroy()
    assert clouds.is_empty()
    return settled, clouds.seconds_of_up, live.everything()


@pytest.mark.nightly
@pytest.mark.parametrize("run", range(RUNS))
def test_an_interrupted_up_that_is_run_again_ends_as_an_undisturbed_one(handson, live, reference, tmp_path, run):
    settled, seconds, nothing = reference
    if handson.resources():
        handson.destroy()
    assert live.everything() == nothing, "what an interrupted run before made went with the stack"
    dice = random.Random(f"{SEED}-{run}")  # noqa: S311 - dice, not a secret
    # A terminal interrupts every process of the job; a CI runner that stops interrupts only the first.
    send, number = ((os.killpg, signal.SIGINT), (os.kill, signal.SIGTERM))[run % 2]
    moment = dice.uniform(0, seconds)
    print(f"HPKIT_SEED={SEED}, run {run}: {number.name} after {moment:.2f} of {seconds:.1f} s")
    with (tmp_path / "log").open("w") as log:
        interrupted = handson.start("up", "--yes", "--skip-preview", log=log)
        try:
            interrupted.wait(moment)
        except subprocess.TimeoutExpired:
            send(interrupted.pid, number)
        interrupted.wait(120)
    handson.up()
    assert live.settled() == settled, "and nothing is there twice"
    assert handson.preview() == {}


@pytest.mark.nightly
def test_an_up_takes_over_the_log_group_that_eks_wrote_again(handson, live, reference):
    settled, _, nothing = reference
    if handson.resources():
        handson.destroy()
    # Like the fault late-logs, which waits for a time.
    logs, name = live.client("logs"), "/aws/eks/handson-dev/cluster"
    logs.create_log_group(logGroupName=name)
    logs.create_log_stream(logGroupName=name, logStreamName="last")
    handson.up()
    (group,) = logs.describe_log_groups()["logGroups"]
    assert (group["retentionInDays"], bool(group["kmsKeyId"])) == (90, True)
    assert [each["logStreamName"] for each in logs.describe_log_streams(logGroupName=name)["logStreams"]] == ["last"]
    assert live.settled() == settled
    handson.destroy()
    assert live.everything() == nothing

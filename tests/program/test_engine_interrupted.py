"""`up` is interrupted or killed at random moments; a second run ends like an undisturbed one."""

import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import time

import psutil
import pytest

from hpkit.adopt.pending import find_ids, is_looked_for, unfinished
from hpkit.adopt.pulumi_stack import PulumiStack
from hpkit.errors import ToolError
from tests.cli.invoke import hpkit
from tests.documents import document
from tests.program.cloud import ROOT
from tests.running import eventually

pytestmark = pytest.mark.platform

RUNS = int(os.environ.get("HPKIT_KILLS", "1"))
# Processes that are killed, in turn, with a part of each plugin's command line.
VICTIMS = {
    "engine": "",
    "aws": "hpkit_local.plugins.aws",
    "kubernetes": "hpkit_local.plugins.kubernetes",
}
# At least as many as handson-dev has.
RESOURCES = 100
SEED = os.environ.get("HPKIT_SEED") or str(random.SystemRandom().randrange(10**6))


def test_each_resource_of_a_live_stack_is_found_as_if_its_creation_had_not_finished(up, live):
    state = json.loads(up.read("stack", "export"))
    resources = state["deployment"]["resources"]
    differing = {}
    for live_resource in [
        resource for resource in resources if is_looked_for(resource["type"]) and not resource.get("external")
    ]:
        others = [other for other in resources if other is not live_resource]
        pending = [{"type": "creating", "resource": live_resource}]
        killed = {"deployment": {"resources": others, "pending_operations": pending}}
        found = find_ids(live, unfinished(killed), killed)
        if found != {live_resource["urn"]: live_resource["id"]}:
            differing.setdefault(live_resource["type"], []).append((found, live_resource["id"]))
    # Their import IDs consist of what they connect: subnet and route table, route table and destination.
    joined = {"aws:ec2/route:Route", "aws:ec2/routeTableAssociation:RouteTableAssociation"}
    assert differing.keys() <= joined, differing


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


def recorded(instance):
    """Return how many resources and unfinished operations the state has, also while it's being written."""
    return sum(file.read_bytes().count(b'"urn"') for file in instance.state_folder.rglob("handson-dev.json"))


def killed_processes(engine, victim):
    """Return the engine, or its plugin for a package, as processes to kill."""
    if victim == "engine":
        return [psutil.Process(engine.pid)]
    children = psutil.Process(engine.pid).children(recursive=True)
    return [each for each in children if VICTIMS[victim] in " ".join(each.cmdline())]


@pytest.mark.nightly
@pytest.mark.parametrize("run", range(RUNS))
def test_an_up_that_is_killed_and_recovered_ends_as_an_undisturbed_one(
    instance, handson, live, reference, tmp_path, run
):
    settled, _, nothing = reference
    if handson.resources():
        handson.destroy()
    assert live.everything() == nothing
    victim = list(VICTIMS)[run % len(VICTIMS)]
    # By progress, because the duration depends on the machine.
    moment = random.Random(f"{SEED}-killed-{run}").randrange(1, RESOURCES)  # noqa: S311 - dice, not a secret
    with (tmp_path / "log").open("w") as log:
        killed = handson.start("up", "--yes", "--skip-preview", log=log)
        while killed.poll() is None and recorded(instance) < moment:
            time.sleep(0.01)
        with contextlib.suppress(psutil.Error):
            for process in killed_processes(killed, victim):
                process.kill()
        killed.wait(120)
    # Pulumi writes this backend's files in place.
    for file in instance.state_folder.rglob("handson-dev.json"):
        if not file.read_text(encoding="utf-8").endswith("}\n"):
            shutil.copy(f"{file}.bak", file)
    words = ("aws", "recover", "--stack", "handson-dev", "--yes", "--format", "json")
    recovered = hpkit(*words, cwd=handson._root, **handson.environment)
    assert recovered.returncode == 0, recovered.stderr
    items = document(recovered.stdout)["items"]
    added = sum(item["done"] for item in items)
    print(
        f"HPKIT_SEED={SEED}, run {run}: SIGKILL of {victim} at resource {moment}, up ended with {killed.returncode}, "
        f"{len(items)} unfinished, {added} added"
    )
    assert {item["action"] for item in items} <= {"import"}
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

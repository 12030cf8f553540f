"""Runs that end too early, by a kill, a lock or a failed call: the next run loses nothing and creates nothing twice.

The kills by day are the same in each run. The nightly ones differ, and print their seed for HPKIT_SEED.
"""

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from unittest import mock

import psutil
import pytest
import urllib3
import yaml
from boto3 import Session

from hpkit.adopt.live_objects import find_objects, unrecorded
from hpkit.adopt.pending import find_ids, is_looked_for, is_object, unfinished
from hpkit.clients.pulumi_stack import PulumiStack
from hpkit.errors import ToolError
from hpkit.project import pulumi_project
from tests.builders import split
from tests.cli.invoke import hpkit
from tests.conftest import NIGHTLY
from tests.documents import document
from tests.program.cloud import ROOT, Program, Repository
from tests.program.recorder import recorded
from tests.program.small_stack import build
from tests.running import eventually

pytestmark = pytest.mark.platform

# Processes that are killed, with a part of each plugin's command line.
VICTIMS = {
    "engine": "",
    "aws": "hpkit_local.plugins.aws",
    "kubernetes": "hpkit_local.plugins.kubernetes",
    "hyperpod": "pulumi-resource-hyperpod",
}
# At least as many as handson-dev has.
RESOURCES = 100
SEED = os.environ.get("HPKIT_SEED", "1")


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
    # Their import IDs consist of what they connect: subnet and route table, route table and destination, cluster
    # and association.
    joined = {
        "aws:ec2/route:Route",
        "aws:ec2/routeTableAssociation:RouteTableAssociation",
        "aws:eks/podIdentityAssociation:PodIdentityAssociation",
    }
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


def state_file(program):
    project, _ = pulumi_project(program._root)
    return program._cloud.state_folder / ".pulumi" / "stacks" / project / f"{program._name}.json"


def in_state(program):
    """Return how many resources and unfinished operations the state has, also while it's being written."""
    file = state_file(program)
    return file.read_bytes().count(b'"urn"') if file.is_file() else 0


def kill(program, victim, *, within, chance, log):
    """Run `up` until at most `within` more resources are in the state, and kill the victim; return whether it hit."""
    moment = in_state(program) + chance.randint(1, within)
    killed = []
    with log.open("w") as output:
        engine = program.start("up", "--yes", "--skip-preview", log=output)
        while engine.poll() is None and not killed:
            time.sleep(0.01)
            if in_state(program) < moment:
                continue
            # A creation takes some milliseconds.
            time.sleep(chance.uniform(0, 0.05))
            # The engine starts a plugin when it first needs it.
            with contextlib.suppress(psutil.Error):
                process = psutil.Process(engine.pid)
                plugins = (each for each in process.children(recursive=True) if VICTIMS[victim] in str(each.cmdline()))
                killed = [process] if victim == "engine" else list(plugins)
                for each in killed:
                    each.kill()
        engine.wait(120)
    # Pulumi writes a checksum in place, and can't read the state if it's empty.
    file = state_file(program)
    checksum = Path(f"{file}.attrs")
    if checksum.is_file() and not checksum.read_text(encoding="utf-8"):
        checksum.unlink()
    if not file.read_text(encoding="utf-8").endswith("}\n"):
        shutil.copy(f"{file}.bak", file)
    return bool(killed) and engine.returncode != 0


def recover(program):
    """Return whether each unfinished creation was added to the state."""
    words = ("aws", "recover", "--stack", program._name, "--yes", "--format", "json")
    recovered = hpkit(*words, cwd=program._root, **program.environment)
    assert recovered.returncode == 0, recovered.stderr
    items = document(recovered.stdout)["items"]
    assert {item["action"] for item in items} <= {"import"}
    return [item["done"] for item in items]


@pytest.fixture
def small(instance, live, tmp_path, monkeypatch):
    """Return a small stack on the platform, next to its own."""
    cluster = live.cluster()["ClusterArn"]
    build_small = f"build({cluster!r}, {instance.kubeconfig.read_text(encoding='utf-8')!r})"
    repository = Repository(tmp_path)
    repository.write("handson", split(repository.read("handson")))
    settings = yaml.safe_load((ROOT / "Pulumi.yaml").read_text(encoding="utf-8"))
    (tmp_path / "Pulumi.yaml").write_text(json.dumps({**settings, "name": "small"}), encoding="utf-8")
    program = f"from tests.program.small_stack import build\n{build_small}\n"
    (tmp_path / "infra" / "__main__.py").write_text(program, encoding="utf-8")
    # `recover` compares the state with what the program registers.
    recording = sys.modules["hpkit.program.recording.record"]
    monkeypatch.setattr(recording, "build", mock.Mock(side_effect=lambda *_, **__: build(cluster, "") or {}))
    small = Program(instance, "handson-governance", root=tmp_path)
    small.environment["PYTHONPATH"] = str(ROOT)
    yield small
    small.destroy()
    small.remove()


@pytest.fixture
def fault(live):
    """Return a function that sets faults of the endpoint, which end with the test."""
    names = set()

    def change(**faults):
        names.update(faults)
        urllib3.request("POST", f"{live.url}/_hpkit/faults", json=faults)

    yield change
    change(**dict.fromkeys(names))


def test_a_small_stack_that_is_killed_again_and_again_is_recovered(small, live, tmp_path, fault):
    nothing = live.everything()
    chance = random.Random(SEED)  # noqa: S311 - no secret
    effective = 0
    # The order in which the program needs them: a plugin starts late, and is waited for.
    victims = ("engine", "aws", "engine", "kubernetes", "hyperpod") if NIGHTLY else ("engine", "hyperpod")
    for number, victim in enumerate(victims):
        log = tmp_path / f"log-{number}"
        # Otherwise the run could end before the kill.
        fault(latency=0.3)
        effective += kill(small, victim, within=4, chance=chance, log=log)
        fault(latency=None)
        recover(small)
        assert "already exists" not in log.read_text(encoding="utf-8"), "something was lost in an earlier round"
    assert effective >= len(victims) / 2
    small.up()
    # Only these could exist twice, because AWS names them.
    once = {"vpcs": 1, "subnets": 3, "internet_gateways": 1, "addresses": 1, "route_tables": 2}  # one is the VPC's own
    everything = live.everything()
    parts = {**{f"ec2.describe_{name}": count for name, count in once.items()}, "keys": 1, "quotas": 1}
    assert {part: len(everything[part]) - len(nothing[part]) for part in parts} == parts


DROPPED = ("aws:eks/addon:Addon::coredns", "v1:ClusterRoleBinding::hpkit-data-scientist")


@pytest.fixture
def dropped(up):
    """Return a function that takes DROPPED out of the state, as unfinished creations if `pending`; returns URNs.

    It writes the file, because `pulumi stack import` would drop unfinished operations.
    """
    file = state_file(up)

    def drop(*, pending):
        state = json.loads(file.read_text(encoding="utf-8"))
        deployment = state["checkpoint"]["latest"]
        left_out = [each for each in deployment["resources"] if each["urn"].endswith(DROPPED)]
        urns = {each["urn"] for each in left_out}
        assert len(urns) == len(DROPPED)
        kept = [each for each in deployment["resources"] if each["urn"] not in urns]
        for each in kept:
            each["dependencies"] = [urn for urn in each.get("dependencies") or () if urn not in urns]
        deployment["resources"] = kept
        if pending:
            created = [{key: value for key, value in each.items() if key not in ("id", "outputs")} for each in left_out]
            deployment["pending_operations"] = [{"type": "creating", "resource": each} for each in created]
        file.write_text(json.dumps(state), encoding="utf-8")
        return urns

    return drop


def is_whole(program):
    """Return whether each resource is in the state once, and nothing is unfinished or would change."""
    deployment = json.loads(program.read("stack", "export"))["deployment"]
    urns = [each["urn"] for each in deployment["resources"]]
    assert len(urns) == len(set(urns))
    assert not deployment.get("pending_operations")
    return program.preview() == {}


def recovering(program):
    """Start `hpkit aws recover` as a separate process."""
    command = [Path(sys.executable).parent / "hpkit", "aws", "recover", "--stack", "handson-dev", "--yes"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen(command, cwd=program._root, env=program.environment, **pipes)


@pytest.mark.nightly
@pytest.mark.parametrize("pending", [True, False])
def test_the_next_recovery_finishes_an_interrupted_one(up, dropped, pending, monkeypatch):
    urns = dropped(pending=pending)
    words = ("aws", "recover", "--stack", "handson-dev", "--yes")
    with monkeypatch.context() as patch:
        patch.setattr(PulumiStack, "refresh", mock.Mock(side_effect=ToolError("interrupted")))
        assert hpkit(*words, cwd=up._root, **up.environment).returncode != 0
    items = document(hpkit(*words, "--format", "json", cwd=up._root, **up.environment).stdout)["items"]
    # The objects that it found need no refresh.
    assert {item["target"] for item in items if item["done"]} == {urn for urn in urns if "kubernetes:" not in urn}
    assert is_whole(up)


@pytest.mark.nightly
def test_two_recoveries_at_once_keep_the_state_whole(up, dropped):
    dropped(pending=True)
    runs = [recovering(up), recovering(up)]
    outputs = [run.communicate(timeout=300)[0] for run in runs]
    codes = [run.returncode for run in runs]
    assert 0 in codes, outputs
    for code, output in zip(codes, outputs, strict=True):
        assert code == 0 or "is currently locked" in output or "another run has changed the state" in output, output
    recover(up)
    assert is_whole(up)


@pytest.mark.nightly
def test_a_recovery_respects_the_lock_of_a_running_up_and_names_the_command_for_one_of_a_killed_up(
    up, dropped, instance, tmp_path
):
    dropped(pending=True)
    locks = instance.state_folder / ".pulumi" / "locks"
    # This removes a dead run's lock, as `hpkit local` does, so it comes first.
    begun = up.command("up", "--yes", "--skip-preview")
    with (tmp_path / "log").open("w") as log:
        running = up.start("up", "--yes", "--skip-preview", log=log)
        eventually(lambda: any(locks.rglob("handson-dev/*.json")), "no lock")
        os.kill(running.pid, signal.SIGSTOP)
        output = recovering(up).communicate(timeout=300)[0]
        assert f"(pid {running.pid})" in output
        release = "pulumi cancel --yes --stack handson-dev"
        assert f"If no other run is active: `{release}`" in output
        os.killpg(running.pid, signal.SIGKILL)
        running.wait(120)
    refused = subprocess.run(begun, cwd=up._root, env=up.environment, capture_output=True, text=True)
    assert "the stack is currently locked" in refused.stdout + refused.stderr
    subprocess.run(release.split(), cwd=up._root, env=up.environment, check=True, capture_output=True)
    recover(up)
    up.up()
    assert is_whole(up)


@pytest.mark.nightly
def test_a_recovery_repeats_throttled_calls_and_otherwise_changes_nothing(up, dropped, fault):
    urns = dropped(pending=True)
    before = json.loads(up.read("stack", "export"))["deployment"]
    fault(throttle=1)
    refused = recovering(up)
    output = refused.communicate(timeout=300)[0]
    assert refused.returncode == 1
    assert "nothing was changed" in output
    assert json.loads(up.read("stack", "export"))["deployment"] == before
    fault(throttle=0.2)
    assert recover(up) == [True] * len(urns)
    fault(throttle=None)
    assert is_whole(up)


@pytest.mark.nightly
def test_the_next_up_deletes_an_orphan_also_after_a_failed_deletion(up, live, fault):
    state = json.loads(up.read("stack", "export"))
    (gateway,) = (each for each in state["deployment"]["resources"] if each["type"] == "aws:ec2/eip:Eip")
    tags = [{"Key": key, "Value": value} for key, value in gateway["outputs"]["tagsAll"].items()]
    specification = [{"ResourceType": "elastic-ip", "Tags": tags}]
    orphan = live.client("ec2").allocate_address(Domain="vpc", TagSpecifications=specification)["AllocationId"]
    written = json.loads(state_file(up).read_text(encoding="utf-8"))
    written["checkpoint"]["latest"]["pending_operations"] = [{"type": "creating", "resource": gateway}]
    state_file(up).write_text(json.dumps(written), encoding="utf-8")
    recovered = hpkit("aws", "recover", "--stack", "handson-dev", "--yes", cwd=up._root, **up.environment)
    assert f"{orphan} exists in addition to {gateway['id']}, so the next `up` deletes it" in recovered.stderr
    assert recovered.returncode == 0
    fault(internal="1@ReleaseAddress")
    assert up.up(check=False).returncode != 0
    fault(internal=None)
    up.up()
    addresses = [each["AllocationId"] for each in live.client("ec2").describe_addresses()["Addresses"]]
    assert addresses == [gateway["id"]]
    assert is_whole(up)


@pytest.mark.nightly
@pytest.mark.platform(taken_away=2)
def test_an_up_that_is_interrupted_and_killed_ends_as_an_undisturbed_one(up, live, clouds, tmp_path):
    settled = live.settled()
    up.destroy()
    assert clouds.is_empty()
    # Like the fault late-logs, which waits for a time: EKS writes its log group again after its deletion.
    live.client("logs").create_log_group(logGroupName="/aws/eks/handson-dev/cluster")
    seed = os.environ.get("HPKIT_SEED") or str(random.SystemRandom().randrange(10**6))
    print(f"HPKIT_SEED={seed}")
    chance = random.Random(seed)  # noqa: S311 - no secret
    # A terminal interrupts every process of the job; a CI runner that stops interrupts only the first.
    for send, number in ((os.killpg, signal.SIGINT), (os.kill, signal.SIGTERM)):
        with (tmp_path / "log").open("w") as log:
            interrupted = up.start("up", "--yes", "--skip-preview", log=log)
            with contextlib.suppress(subprocess.TimeoutExpired):
                interrupted.wait(chance.uniform(2, clouds.seconds_of_up / 4))
            send(interrupted.pid, number)
            interrupted.wait(120)
        recover(up)
    victims = [*VICTIMS, *VICTIMS]
    chance.shuffle(victims)
    hits = []
    for number, victim in enumerate(victims):
        log = tmp_path / f"log-{number}"
        hits.append(kill(up, victim, within=2 * RESOURCES // len(victims), chance=chance, log=log))
        recover(up)
        assert "already exists" not in log.read_text(encoding="utf-8"), "something was lost in an earlier round"
        if not hits[-1]:
            break
    assert sum(hits) >= len(VICTIMS) / 2
    up.up()
    assert live.settled() == settled, "and nothing is there twice"
    assert up.preview() == {}

"""`up` is killed at random moments and recovered, again and again: nothing is lost, and nothing is created twice."""

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import psutil
import pytest
import urllib3
import yaml

from hpkit.adopt.pulumi_stack import PulumiStack
from hpkit.errors import ToolError
from hpkit.project import pulumi_project
from tests.builders import split
from tests.cli.invoke import hpkit
from tests.documents import document
from tests.program.cloud import ROOT, Program, Repository
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
# For each victim.
KILLS = int(os.environ.get("HPKIT_KILLS", "2"))
KILLS_PER_UP = 8
# At least as many as handson-dev has.
RESOURCES = 100
SEED = os.environ.get("HPKIT_SEED") or str(random.SystemRandom().randrange(10**6))


@dataclass
class Round:
    """A kill: its moment as the number of resources in the state, and what `hpkit aws recover` did."""

    victim: str
    moment: int
    is_effective: bool
    found: int
    added: int


@pytest.fixture(scope="module")
def rounds():
    """Return the list of all rounds, which is summed up in the end."""
    rounds = []
    yield rounds
    for victim in VICTIMS:
        own = [each for each in rounds if each.victim == victim]
        effective = [each for each in own if each.is_effective]
        moments = sorted(each.moment for each in effective)
        found, added = (sum(getattr(each, name) for each in effective) for name in ("found", "added"))
        print(f"{victim}: {len(own)} rounds, {len(effective)} effective, {found} unfinished, {added} added; {moments}")


@pytest.fixture(scope="module")
def reference(up, live, clouds):
    """Return the result of an undisturbed run, and what exists without it."""
    settled = live.settled()
    up.destroy()
    assert clouds.is_empty()
    return settled, live.everything()


def state_file(program):
    project, _ = pulumi_project(program._root)
    return program._instance.state_folder / ".pulumi" / "stacks" / project / f"{program._name}.json"


def recorded(program):
    """Return how many resources and unfinished operations the state has, also while it's being written."""
    file = state_file(program)
    return file.read_bytes().count(b'"urn"') if file.is_file() else 0


def processes_of(engine, victim):
    """Return the engine, or its plugin for a package, as processes to kill."""
    if victim == "engine":
        return [psutil.Process(engine.pid)]
    children = psutil.Process(engine.pid).children(recursive=True)
    return [each for each in children if VICTIMS[victim] in " ".join(each.cmdline())]


def kill(program, victim, *, within, dice, log):
    """Run `up` until `within` more resources are in the state at most, and kill the victim; return when and whether."""
    moment = recorded(program) + dice.randint(1, within)
    killed = []
    with log.open("w") as output:
        engine = program.start("up", "--yes", "--skip-preview", log=output)
        while engine.poll() is None and not killed:
            time.sleep(0.01)
            if recorded(program) < moment:
                continue
            # A creation takes some milliseconds.
            time.sleep(dice.uniform(0, 0.05))
            # The engine starts a plugin when it first needs it.
            with contextlib.suppress(psutil.Error):
                killed = processes_of(engine, victim)
                for process in killed:
                    process.kill()
        engine.wait(120)
    # Pulumi writes a checksum in place, and can't read the state if it's empty.
    file = state_file(program)
    checksum = Path(f"{file}.attrs")
    if checksum.is_file() and not checksum.read_text(encoding="utf-8"):
        checksum.unlink()
    if not file.read_text(encoding="utf-8").endswith("}\n"):
        shutil.copy(f"{file}.bak", file)
    return recorded(program), bool(killed) and engine.returncode != 0


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


def test_a_small_stack_is_killed_five_times_and_recovered(small, live, tmp_path):
    nothing = live.everything()
    dice = random.Random(SEED)  # noqa: S311 - dice, not a secret
    effective = 0
    faults = f"{live.url}/_hpkit/faults"
    # The order in which the program needs them: a plugin starts late, and is waited for.
    for number, victim in enumerate(("engine", "aws", "engine", "kubernetes", "hyperpod")):
        log = tmp_path / f"log-{number}"
        # Otherwise the run could end before the kill.
        urllib3.request("POST", faults, json={"latency": 0.3})
        try:
            moment, is_effective = kill(small, victim, within=4, dice=dice, log=log)
        finally:
            urllib3.request("POST", faults, json={"latency": None})
        added = recover(small)
        print(f"HPKIT_SEED={SEED}: {Round(victim, moment, is_effective, len(added), sum(added))}")
        assert "already exists" not in log.read_text(encoding="utf-8"), "something was lost in an earlier round"
        effective += is_effective
    assert effective >= 3
    small.up()
    # Only these could exist twice, because AWS names them.
    once = {"vpcs": 1, "subnets": 3, "internet_gateways": 1, "addresses": 1, "route_tables": 2}  # one is the VPC's own
    everything = live.everything()
    parts = {**{f"ec2.describe_{name}": count for name, count in once.items()}, "keys": 1, "quotas": 1}
    assert {part: len(everything[part]) - len(nothing[part]) for part in parts} == parts


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


def recovering(program, **options):
    """Start `hpkit aws recover` as a separate process."""
    command = [Path(sys.executable).parent / "hpkit", "aws", "recover", "--stack", "handson-dev", "--yes"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen(command, cwd=program._root, env=program.environment, **pipes, **options)


DROPPED = ("aws:eks/addon:Addon::coredns", "v1:ClusterRoleBinding::hpkit-data-scientist")


@pytest.mark.nightly
@pytest.mark.parametrize("pending", [True, False])
def test_a_recovery_that_was_interrupted_is_finished_by_the_next_one(up, dropped, pending, monkeypatch):
    urns = dropped(pending=pending)
    with monkeypatch.context() as patch:
        patch.setattr(PulumiStack, "refresh", mock.Mock(side_effect=ToolError("interrupted")))
        words = ("aws", "recover", "--stack", "handson-dev", "--yes")
        assert hpkit(*words, cwd=up._root, **up.environment).returncode != 0
    words = ("aws", "recover", "--stack", "handson-dev", "--yes", "--format", "json")
    items = document(hpkit(*words, cwd=up._root, **up.environment).stdout)["items"]
    # The objects that it found need no refresh.
    assert {item["target"] for item in items if item["done"]} == {urn for urn in urns if "kubernetes:" not in urn}
    assert is_whole(up)


@pytest.mark.nightly
def test_of_two_recoveries_at_once_none_breaks_the_state(up, dropped):
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
def test_a_recovery_does_not_take_the_lock_of_a_running_up(up, dropped, instance, tmp_path):
    dropped(pending=True)
    with (tmp_path / "log").open("w") as log:
        running = up.start("up", "--yes", "--skip-preview", log=log)
        locks = instance.state_folder / ".pulumi" / "locks"
        eventually(lambda: any(locks.rglob("handson-dev/*.json")), "no lock")
        os.kill(running.pid, signal.SIGSTOP)
        try:
            refused = recovering(up)
            output = refused.communicate(timeout=300)[0]
        finally:
            os.kill(running.pid, signal.SIGCONT)
        assert refused.returncode == 1
        assert f"(pid {running.pid})" in output
        assert "If no other run is active: `pulumi cancel --yes --stack handson-dev`" in output
        running.wait(300)
    # This `up` created nothing twice: the endpoint and the API server rejected the second ones.
    recover(up)
    up.up()
    assert is_whole(up)


@pytest.mark.nightly
def test_a_recovery_repeats_throttled_calls_and_otherwise_changes_nothing(up, dropped, live):
    urns = dropped(pending=True)
    before = json.loads(up.read("stack", "export"))["deployment"]
    faults = f"{live.url}/_hpkit/faults"
    try:
        urllib3.request("POST", faults, json={"throttle": 1})
        refused = recovering(up)
        output = refused.communicate(timeout=300)[0]
        assert refused.returncode == 1
        assert "nothing was changed" in output
        assert json.loads(up.read("stack", "export"))["deployment"] == before
        urllib3.request("POST", faults, json={"throttle": 0.2})
        assert recover(up) == [True] * len(urns)
    finally:
        urllib3.request("POST", faults, json={"throttle": None})
    assert is_whole(up)


@pytest.mark.nightly
def test_an_orphan_is_deleted_by_the_next_up_even_if_the_first_deletion_fails(up, live):
    state = json.loads(up.read("stack", "export"))
    (gateway,) = (each for each in state["deployment"]["resources"] if each["type"] == "aws:ec2/eip:Eip")
    tags = [{"Key": key, "Value": value} for key, value in gateway["outputs"]["tagsAll"].items()]
    specification = [{"ResourceType": "elastic-ip", "Tags": tags}]
    orphan = live.client("ec2").allocate_address(Domain="vpc", TagSpecifications=specification)["AllocationId"]
    written = json.loads(state_file(up).read_text(encoding="utf-8"))
    written["checkpoint"]["latest"]["pending_operations"] = [{"type": "creating", "resource": gateway}]
    state_file(up).write_text(json.dumps(written), encoding="utf-8")
    words = ("aws", "recover", "--stack", "handson-dev", "--yes")
    recovered = hpkit(*words, cwd=up._root, **up.environment)
    assert f"{orphan} exists in addition to {gateway['id']}, so the next `up` deletes it" in recovered.stderr
    assert recovered.returncode == 0
    faults = f"{live.url}/_hpkit/faults"
    try:
        urllib3.request("POST", faults, json={"internal": "1@ReleaseAddress"})
        assert up.up(check=False).returncode != 0
    finally:
        urllib3.request("POST", faults, json={"internal": None})
    up.up()
    addresses = [each["AllocationId"] for each in live.client("ec2").describe_addresses()["Addresses"]]
    assert addresses == [gateway["id"]]
    assert is_whole(up)


@pytest.mark.nightly
@pytest.mark.parametrize("run", range(-(-KILLS * len(VICTIMS) // KILLS_PER_UP)))
def test_an_up_that_is_killed_and_recovered_ends_as_an_undisturbed_one(
    instance, handson, live, reference, rounds, tmp_path, run
):
    settled, nothing = reference
    if handson.resources():
        handson.destroy()
    assert live.everything() == nothing
    dice = random.Random(f"{SEED}-killed-{run}")  # noqa: S311 - dice, not a secret
    victims = [*VICTIMS] * (KILLS_PER_UP // len(VICTIMS))
    dice.shuffle(victims)
    for number, victim in enumerate(victims):
        log = tmp_path / f"log-{number}"
        moment, is_effective = kill(handson, victim, within=2 * RESOURCES // KILLS_PER_UP, dice=dice, log=log)
        output = log.read_text(encoding="utf-8")
        added = recover(handson)
        rounds.append(Round(victim, moment, is_effective, len(added), sum(added)))
        print(f"HPKIT_SEED={SEED}, run {run}: {rounds[-1]}")
        assert "already exists" not in output, "something was lost in an earlier round"
        if not is_effective:
            break
    handson.up()
    assert live.settled() == settled, "and nothing is there twice"
    assert handson.preview() == {}


@pytest.mark.nightly
def test_most_kills_hit_a_run_that_had_not_ended(rounds):
    effective = Counter(each.victim for each in rounds if each.is_effective)
    assert {victim: effective[victim] for victim in VICTIMS if effective[victim] < KILLS / 2} == {}

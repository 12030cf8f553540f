"""Two concurrent commands on one instance, with the real engine: which waits, which fails, and what ends an `up`."""

import contextlib
import json
import os
import signal
import subprocess
import urllib.request
import uuid
from contextlib import contextmanager

import psutil
import pytest

from hpkit_local.supervisor import control
from hpkit_local.supervisor.instance import Instance
from tests.cli.test_validate import HPKIT
from tests.running import eventually

pytestmark = [pytest.mark.engine, pytest.mark.cluster, pytest.mark.timeout(900)]

MARK = "HPKIT_TEST_MARK"
SECONDS = 300


@pytest.fixture
def instance(repository):
    """Return the stack's own instance; EKS takes minutes there, so that tests can interrupt an `up` while it waits."""
    instance = Instance.of_stack("handson-dev", root=repository.folder)
    instance.write_aws_arguments(["--latency-factor", "1"])
    yield instance
    control.reset(instance)


@pytest.fixture
def mark(monkeypatch):
    value = uuid.uuid4().hex
    monkeypatch.setenv(MARK, value)
    return value


def local(repository, *arguments):
    return subprocess.run(
        [HPKIT, "local", *arguments], cwd=repository.folder, capture_output=True, text=True, timeout=SECONDS
    )


@contextmanager
def up(repository):
    """Run `hpkit local up`, which ends with the block."""
    pipe = subprocess.PIPE
    command = [HPKIT, "local", "up", "--stack", "handson-dev"]
    with subprocess.Popen(command, cwd=repository.folder, stdout=pipe, stderr=subprocess.STDOUT, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def at_work(instance, process):
    """Wait until a run waits for EKS, which takes longest."""
    eventually(lambda: making_eks(instance) or process.poll() is not None, "it is at work", SECONDS)
    assert process.poll() is None, process.communicate()[0]


def making_eks(instance):
    with contextlib.suppress(OSError, KeyError):
        url = f"http://127.0.0.1:{instance.ports()['aws']}/_hpkit/stats"
        with urllib.request.urlopen(url) as answer:
            return json.load(answer)["calls"].get("eks.CreateCluster", 0) > 0
    return False


def engines(mark):
    """Return the command lines of processes that a run left; the instance isn't included."""
    problems = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get(MARK) == mark and "pulumi" in " ".join(process.cmdline()[:2]):
                problems.append(process.cmdline())
    return problems


@pytest.mark.nightly
def test_beside_an_up_others_are_refused_and_looking_is_not_and_the_death_of_the_cloud_ends_it(
    instance, repository, mark
):
    with up(repository) as first:
        at_work(instance, first)
        for verb in (
            ("up", "--stack", "handson-dev"),
            ("down", "--stack", "handson-dev"),
            ("stop",),
            ("reset", "--yes"),
        ):
            refused = local(repository, *verb, "--no-wait")
            assert refused.returncode == 1, refused.stdout
            message = refused.stderr.splitlines()[-1]
            assert message.startswith(
                f"error: `hpkit local up --stack handson-dev --name handson-dev` (process {first.pid}, "
            )
        status = local(repository, "status", "--format", "json")
        assert (status.returncode, json.loads(status.stdout)["stacks"][0]["name"]) == (0, "handson-dev")
        assert "KUBECONFIG" in local(repository, "env").stdout
        os.kill(instance.running().supervisor.pid, signal.SIGKILL)
        message, _ = first.communicate(timeout=SECONDS)
    assert first.returncode == 1
    assert "error: up stopped, because the supervisor of the local cloud handson-dev was killed. " in message
    assert engines(mark) == []
    assert instance.running() is None, "it starts nothing anew"


@pytest.mark.nightly
def test_a_reset_by_force_ends_an_up_and_deletes_everything(instance, repository, mark):
    with up(repository) as first:
        at_work(instance, first)
        forced = local(repository, "reset", "--yes", "--force")
        assert (forced.returncode, forced.stdout) == (0, "handson-dev is deleted\n"), forced.stderr
        said, _ = first.communicate(timeout=SECONDS)
    assert first.returncode == 1
    assert "error: up stopped, because the local cloud handson-dev was stopped. " in said
    assert engines(mark) == []
    assert not instance.folder.exists()
    assert not instance.folder.with_name("handson-dev.lock").exists()


@pytest.mark.nightly
def test_a_killed_up_holds_nobody_up_and_its_engine_ends_before_the_next_begins(instance, repository, mark):
    with up(repository) as first:
        at_work(instance, first)
        first.kill()
        first.wait()
        # A preview waits for the killed run's engine, and needs its saved state.
        after = local(repository, "preview", "--stack", "handson-dev")
    assert after.returncode == 0, after.stdout + after.stderr
    assert engines(mark) == []

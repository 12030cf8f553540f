"""Ctrl-C on `hpkit local up`: it reports what remains, the next one continues, and `down` deletes everything."""

import os
import signal
import subprocess
from contextlib import contextmanager

import pytest

from hpkit_local.supervisor import control
from hpkit_local.supervisor.instance import Instance
from tests.cli.test_validate import HPKIT
from tests.local.chaos.harness import SECONDS, calls, marked
from tests.program.cloud import Live
from tests.running import eventually

pytestmark = [pytest.mark.engine, pytest.mark.cluster, pytest.mark.nightly, pytest.mark.timeout(1800)]


@pytest.fixture
def instance(tools, mark, repository):
    instance = Instance.of_stack("handson-dev", root=repository.folder)
    instance.write_aws_arguments(["--latency-factor", "0.003"])
    yield instance
    control.reset(instance)


@contextmanager
def hpkit(repository, verb):
    """Run `hpkit local VERB` as a terminal's job that ends with the block."""
    pipe = subprocess.PIPE
    command = [HPKIT, "local", verb]
    with subprocess.Popen(
        command, cwd=repository.folder, stdout=pipe, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def ended(process):
    said, _ = process.communicate(timeout=SECONDS)
    assert "Traceback" not in said, said
    return process.returncode, said


def interrupted(process):
    """Press Ctrl-C, which a terminal sends to every process of the job."""
    os.killpg(process.pid, signal.SIGINT)
    return ended(process)


def test_an_up_that_is_interrupted_at_each_stage_goes_on_and_down_leaves_nothing(instance, repository, mark):
    with hpkit(repository, "up") as first:
        eventually(lambda: control.running(instance) is not None or first.poll() is not None, "it starts", SECONDS)
        code, output = interrupted(first)
    assert code == 1
    assert "error: interrupted. The local cloud goes on starting: run it again, or end it with" in output
    with hpkit(repository, "up") as second:
        # Long after the start, while the network is being created.
        eventually(lambda: made(instance, "ec2.CreateSubnet") or second.poll() is not None, "it is at work", SECONDS)
        code, output = interrupted(second)
    assert code == 1, output
    assert output.splitlines()[-1].startswith("error: up was interrupted. Created resources are kept"), output
    with hpkit(repository, "up") as third:
        code, output = ended(third)
    assert code == 0, output
    assert Live(instance).cluster()["ClusterStatus"] == "InService"
    with hpkit(repository, "down") as last:
        code, output = ended(last)
    assert code == 0, output
    assert marked(mark) == []


def made(instance, operation):
    state = control.running(instance)
    return state is not None and state.ready and calls(instance).get(operation, 0) > 0

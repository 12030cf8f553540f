"""A rehearsal at a limited speed, and one that is interrupted: it leaves nothing."""

import signal
import subprocess
import time

import pytest

from hpkit.cli.common.inputs import choose_stack
from hpkit_local.kubernetes.api import Api
from hpkit_whatif.cli.rehearse import Rehearsal
from hpkit_whatif.scenario import open_scenario
from tests.cli.test_validate import HPKIT, ROOT
from tests.running import HANGS

pytestmark = [pytest.mark.nightly, pytest.mark.cluster, pytest.mark.timeout(900)]

STACK = "handson-dev"
KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
TASKS = """\
tasks:
  - {name: first, team: john, instanceType: ml.g5.12xlarge, count: 1, submit: 0s, run: 30s}
  - {name: second, team: john, instanceType: ml.g5.12xlarge, count: 1, submit: 60s, run: 30s}
"""


@pytest.fixture
def scenario(tmp_path):
    file = tmp_path / "two.yaml"
    file.write_text(TASKS)
    return file


def test_at_a_speed_nothing_comes_before_its_time(clouds, scenario):
    times = {}
    began = time.monotonic()
    rehearsal = Rehearsal.from_source(choose_stack(STACK), open_scenario(str(scenario)))
    _, differences = rehearsal.on(clouds.empty(), speed=20, say=lambda line: times.setdefault(line, time.monotonic()))
    assert differences == []
    (moment,) = (when for line, when in times.items() if "submitted second" in line)
    assert moment - began >= 60 / 20


def test_one_that_is_interrupted_leaves_the_instance_running_and_nothing_on_it(clouds, scenario):
    instance = clouds.empty()
    root = instance.folder.parents[1]
    (root / "Pulumi.yaml").touch()
    options = ("--stack", STACK, "--name", instance.name, "--dir", str(root), "--speed", "0.01")
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([HPKIT, "whatif", "rehearse", str(scenario), *options], cwd=ROOT, **pipes) as process:
        try:
            lines = iter(process.stderr.readline, "")
            assert any("admitted first" in line for line in lines)
            process.send_signal(signal.SIGINT)
            rest = process.stderr.read()
            code = process.wait(timeout=HANGS)
        finally:
            process.kill()
    assert (code, rest.strip().splitlines()[-1:]) == (130, ["error: interrupted"])
    assert "Traceback" not in rest
    assert instance.state().ready
    api = Api.of_kubeconfig(instance.kubeconfig, field_manager="test")
    left = [api.items(f"{KUEUE}/{kind}") for kind in ("clusterqueues", "localqueues", "workloads", "resourceflavors")]
    assert [*left, api.items("/apis/batch/v1/jobs")] == [[], [], [], [], []]

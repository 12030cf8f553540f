"""A local cloud that dies and stays away during an `up`: it says so, and the next `up` goes on."""

import os
import signal

import pytest

from hpkit_local.supervisor import control
from tests.local.chaos.harness import run_of
from tests.program.cloud import Live, Program
from tests.running import eventually

pytestmark = [pytest.mark.engine, pytest.mark.cluster, pytest.mark.timeout(1800)]


@pytest.mark.nightly
def test_an_up_whose_cloud_stays_away_fails_clearly_and_the_next_one_goes_on(make, repository, tmp_path):
    instance = make("outage", latency=0.003)
    before = control.start(instance, say=print)
    live, program = Live(instance), Program(instance, "handson-dev", root=repository.folder)
    empty = live.everything()
    with run_of(program, instance, tmp_path) as run:
        run.reaches("sagemaker.CreateCluster")
        os.kill(before.supervisor.pid, signal.SIGKILL)
        assert not run.ends(), run.said
    control.start(instance, say=print)
    program.up()
    assert live.cluster()["ClusterStatus"] == "InService"
    assert set(live.quotas()) == {"john", "smith"}
    program.destroy()
    eventually(lambda: live.everything() == empty, lambda: (empty, live.everything()))

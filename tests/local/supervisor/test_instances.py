"""Start, stop, kill and start again, with the real parts."""

import os
import signal
import socket
import time

import pytest

from local.supervisor import control
from local.supervisor.instance import Instance
from local.supervisor.process import Identity

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]


def eventually(holds, what, seconds=60):
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.1)


def taken(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize("part", ["aws", "etcd", "kube-apiserver", "kueue"])
def test_a_killed_part_comes_back_on_its_port(running, part):
    before = running.state().parts[part]
    ports = running.ports()
    os.kill(before.pid, signal.SIGKILL)
    eventually(lambda: running.state().parts[part].restarts > before.restarts, "the death is seen")
    eventually(lambda: running.state().ready, "all parts are healthy again")
    assert running.state().parts[part].pid != before.pid
    assert running.ports() == ports, "clients keep their addresses"


def test_stop_leaves_no_process_port_or_record_even_after_the_supervisor_was_killed(tools, tmp_path, running):
    other = Instance.named("two", root=tmp_path)
    try:
        first = control.start(other, say=print)
        assert running.state().ready, "the instance beside it goes on"
        assert not set(other.ports().values()) & set(running.ports().values())
        os.kill(first.supervisor.pid, signal.SIGKILL)
        eventually(lambda: not first.supervisor.alive(), "the supervisor is dead")
        second = control.start(other, say=print)
        assert second.supervisor != first.supervisor
        assert not [each for each in first.processes() if each.alive()], "nothing of the killed one is left"
    finally:
        control.stop(other)
    assert not [each for each in second.processes() if each.alive()]
    assert not [port for port in other.ports().values() if taken(port)]
    assert other.state() is None
    assert control.stop(other) is False, "stopping twice is no error"


def test_a_process_number_used_again_is_not_taken_for_the_process_that_had_it():
    assert Identity(os.getpid(), "another start").alive() is False

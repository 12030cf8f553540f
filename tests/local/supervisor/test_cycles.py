"""Starts and stops leave nothing behind; HPKIT_TEST_CYCLES sets their number (100 take a quarter of an hour)."""

import os
import signal
import socket
import subprocess
import time
import uuid
from pathlib import Path

import psutil
import pytest

from hpkit.cache import cache_root
from hpkit_local.supervisor.instance import Instance
from tests.cli.test_validate import HPKIT, hpkit

CYCLES = int(os.environ.get("HPKIT_TEST_CYCLES", "3"))
MARK = "HPKIT_TEST_MARK"

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120 + 60 * CYCLES)]


@pytest.fixture
def surroundings(tools, tmp_path):
    """Run the command with an empty home, temporary folder and repository, and mark all its processes."""
    folders = {name: tmp_path / name for name in ("home", "tmp", "repository")}
    for folder in folders.values():
        folder.mkdir()
    (folders["repository"] / "Pulumi.yaml").write_text("name: hpkit\n")
    environment = {
        "HOME": str(folders["home"]),
        "TMPDIR": str(folders["tmp"]),
        "HPKIT_CACHE": str(cache_root()),
        MARK: uuid.uuid4().hex,
    }
    yield folders["repository"], environment
    hpkit("local", "reset", "--yes", "--name", "cycles", cwd=folders["repository"], **environment)


def marked(mark):
    """Return the command lines of all processes with the mark, which every child process inherits.

    Without processes, no port is in use either. Checking the ports is less reliable: another program may have taken
    one.
    """
    commands = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == mark:
                commands.append(process.cmdline())
        except psutil.Error:
            continue
    return commands


def files(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def listening(ports):
    taken = []
    for port in ports:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                taken.append(port)
    return taken


@pytest.mark.nightly
def test_starts_and_stops_leave_no_process_port_or_file_behind(surroundings):
    repository, environment = surroundings
    instance = Instance.named("cycles", root=repository)
    tools_before = files(cache_root() / "tools")
    kept = None
    for cycle in range(CYCLES):
        before = time.monotonic()
        started = hpkit("local", "start", "--name", "cycles", cwd=repository, **environment)
        assert started.returncode == 0, started.stderr
        assert len(marked(environment[MARK])) >= 5, "the supervisor and its four parts carry the mark"
        serving = {instance.ports()[name] for name in ("aws", "etcd", "kube-apiserver", "kueue-webhook")}
        assert serving <= set(listening(instance.ports().values())), "the ports written down are the ports that serve"
        stopped = hpkit("local", "stop", "--name", "cycles", cwd=repository, **environment)
        assert (stopped.returncode, stopped.stdout) == (0, "cycles is stopped\n"), stopped.stderr
        assert marked(environment[MARK]) == [], f"cycle {cycle}"
        outside = files(repository.parent) - {"home", "tmp", "repository", "repository/Pulumi.yaml"}
        assert {name for name in outside if not f"{name}/".startswith("repository/.local/")} == set(), f"cycle {cycle}"
        # etcd writes snapshots and prunes them, so its files are ignored.
        inside = {name for name in files(instance.folder) if not name.startswith("etcd/")}
        kept = kept or inside
        assert inside == kept, f"cycle {cycle} kept something else than the first"
        print(f"cycle {cycle + 1} of {CYCLES}: {time.monotonic() - before:.1f} s")
    assert files(cache_root() / "tools") == tools_before
    hpkit("local", "reset", "--yes", "--name", "cycles", cwd=repository, **environment)
    assert files(Path(repository)) - {".local"} == {"Pulumi.yaml"}


@pytest.mark.parametrize("when", [pytest.param("it is up", marks=pytest.mark.nightly), "it is starting"])
def test_stop_after_kill_9_of_the_supervisor_leaves_no_process_behind(surroundings, when):
    repository, environment = surroundings
    instance = Instance.named("cycles", root=repository)
    command = [HPKIT, "local", "start", "--name", "cycles"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=repository, env={**os.environ, **environment}, stdout=pipe, stderr=pipe, text=True
    ) as starter:
        while not ((state := instance.state()) and (state.ready or when == "it is starting")):
            assert starter.poll() is None, "it did not start"
            time.sleep(0.01)
        os.kill(state.supervisor.pid, signal.SIGKILL)
        _, output = starter.communicate()
    if when == "it is starting":
        assert starter.returncode == 1
        assert output.splitlines()[-1].startswith("error: the supervisor ended: ")
    hpkit("local", "stop", "--name", "cycles", cwd=repository, **environment)
    assert marked(environment[MARK]) == []
    status = hpkit("local", "status", "--name", "cycles", cwd=repository, **environment)
    assert (status.returncode, "isn't running" in status.stdout) == (1, True)


# By day, test_lock.py shows that no two commands run at the same time.
@pytest.mark.nightly
def test_two_starts_at_once_make_one_supervisor(surroundings):
    repository, environment = surroundings
    command = [HPKIT, "local", "start", "--name", "cycles"]
    both = [
        subprocess.Popen(command, cwd=repository, env={**os.environ, **environment}, stdout=subprocess.DEVNULL)
        for _ in range(2)
    ]
    assert [each.wait() for each in both] == [0, 0]
    supervisors = [line for line in marked(environment[MARK]) if "hpkit_local.supervisor" in line]
    assert len(supervisors) == 1

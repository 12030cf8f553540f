"""The plugin as a process of its own."""

import signal
import subprocess
import sys
import time

import psutil
import pytest

from tests.provider.harness import FOLDER


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_the_plugin_ends_by_itself_when_the_engine_asks(ending):
    with subprocess.Popen(
        [FOLDER / "pulumi-resource-hyperpod", "127.0.0.1:1"], stdout=subprocess.PIPE, text=True
    ) as plugin:
        assert plugin.stdout.readline().strip().isdigit(), "the first line is the port"
        plugin.send_signal(ending)
        assert plugin.wait(timeout=30) == 0, "ended by itself, and was not killed"


def test_the_plugin_ends_when_the_engine_is_killed(tmp_path):
    told = tmp_path / "pid"
    engine = (
        f"import subprocess, time; p = subprocess.Popen([{str(FOLDER / 'pulumi-resource-hyperpod')!r}, '127.0.0.1:1']"
    )
    engine += (
        f", stdout=subprocess.PIPE); p.stdout.readline(); open({str(told)!r}, 'w').write(str(p.pid)); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", engine]) as parent:
        wait_until(told.exists)
        parent.kill()
    plugin = psutil.Process(int(told.read_text())) if psutil.pid_exists(int(told.read_text())) else None
    wait_until(lambda: plugin is None or not plugin.is_running() or plugin.status() == psutil.STATUS_ZOMBIE)


def wait_until(condition):
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.1)

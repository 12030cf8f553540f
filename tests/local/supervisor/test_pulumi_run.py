"""A run that ends because its instance is gone leaves no process, whatever its children do."""

import json
import subprocess
import sys
from contextlib import contextmanager
from types import SimpleNamespace

import psutil
import pytest

from hpkit.errors import InterruptionError, ToolError
from hpkit_local.supervisor import control, pulumi_run
from hpkit_local.supervisor.local_cloud import LocalCloud, exclusive, holder_of
from hpkit_local.supervisor.pulumi_run import Ended, run
from hpkit_local.supervisor.pulumi_stack import Stack

# Like an engine: its plugins have separate process groups, and receive no interrupt.
ENGINE = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGINT, {handler})
plugin = "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
child = subprocess.Popen([sys.executable, "-c", plugin], process_group=0, stdout=subprocess.PIPE, text=True)
child.stdout.readline()
with open(sys.argv[1], "w") as file:
    file.write(f"{{child.pid}}")
time.sleep(600)
"""

pytestmark = pytest.mark.timeout(900)
HOLD = """
import sys
from pathlib import Path
from hpkit_local.supervisor import control
from hpkit_local.supervisor.local_cloud import LocalCloud
from hpkit_local.supervisor import control
from hpkit_local.supervisor.local_cloud import exclusive
with exclusive(LocalCloud.named("one", root=Path(sys.argv[1])), "hpkit local up --stack acme-dev", say=print):
    print("has it", flush=True)
    sys.stdin.readline()
"""


def reason_once(file):
    return lambda: "its instance is gone" if file.exists() and file.read_text() else ""


@pytest.mark.parametrize("handler", ["lambda *_: sys.exit(3)", "signal.SIG_IGN"], ids=["polite", "deaf"])
def test_when_the_reason_comes_the_whole_session_ends(tmp_path, monkeypatch, handler):
    if handler == "signal.SIG_IGN":
        monkeypatch.setattr(pulumi_run, "_END_SECONDS", (0.2, 0.2))
    file = tmp_path / "plugin"
    ended = run(
        [sys.executable, "-c", ENGINE.format(handler=handler), file], tmp_path, {}, stop_reason=reason_once(file)
    )
    assert ended.gone == "its instance is gone"
    assert ended.code != 0
    pid = int(file.read_text())
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_a_run_that_nothing_happens_to_ends_with_its_own_code(tmp_path):
    assert run([sys.executable, "-c", "raise SystemExit(7)"], tmp_path, {}, stop_reason=lambda: "") == Ended(
        7, False, ""
    )


@pytest.mark.parametrize(
    ("verb", "message"),
    [
        ("up", "Nothing was created. Run the command again"),
        ("preview", "Nothing was changed. Run the command again"),
        ("destroy", "The remaining resources are kept. Run the command again to continue"),
    ],
)
def test_an_interruption_says_what_is_left_of_it(monkeypatch, instance, verb, message):
    stack = Stack.__new__(Stack)
    stack._cloud, stack._name = instance, "acme-dev"
    for name in ("_await_others", "_prepare", "lift_protection"):
        monkeypatch.setattr(stack, name, lambda: None)
    monkeypatch.setattr(Stack, "_which", lambda _: ())
    monkeypatch.setattr(stack, "_run", lambda *_: Ended(0, interrupted=True, gone=""))
    keeps = r"The local cloud one keeps running. To stop it: hpkit local stop --name one"
    with pytest.raises(InterruptionError, match=f"^{verb} was interrupted. {message}. {keeps}$"):
        stack.run(verb)


@pytest.fixture
def instance(tmp_path):
    return LocalCloud.named("one", root=tmp_path)


@pytest.mark.parametrize(("wal", "free", "needs"), [("", 191, "192 MB"), ("", 192, ""), ("0.wal", 63, "64 MB")])
def test_a_full_disk_is_named_where_a_cloud_starts_or_ends(monkeypatch, instance, wal, free, needs):
    (folder := instance.folder / "etcd/member/wal").mkdir(parents=True)
    (folder / wal).touch()
    monkeypatch.setattr(control.shutil, "disk_usage", lambda _: SimpleNamespace(free=free * 1_000_000))
    stack = Stack.__new__(Stack)
    stack._cloud, stack._name, stack._starting = instance, "acme-dev", control.Starting(instance)
    said = (control.full_disk(instance), control._tail(instance, "etcd"), stack._watch("up")())
    words = f"{instance.folder} has {free} MB of free space, but the local cloud one needs {needs}. Delete files there"
    assert [words in text for text in said] == [bool(needs)] * 3


@contextmanager
def holder(root):
    """Return a process that holds the lock until it reads a line."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", HOLD, root], stdin=pipe, stdout=pipe, text=True) as process:
        try:
            assert process.stdout.readline() == "has it\n"
            yield process
        finally:
            process.kill()


def test_who_does_not_wait_is_told_command_process_and_time(instance, tmp_path):
    with holder(tmp_path) as other:
        with pytest.raises(ToolError) as refused, exclusive(instance, "hpkit local stop", wait=False):
            pass
        since = json.loads(instance.folder.with_name("one.lock").read_text())["since"]
        assert f"`hpkit local up --stack acme-dev` (process {other.pid}, since {since})" in str(refused.value)


def test_a_killed_holder_has_the_lock_no_more(instance, tmp_path):
    with holder(tmp_path) as other:
        other.kill()
        other.wait()
        assert holder_of(instance).pid == other.pid, "its name is still there"
        with exclusive(instance, "hpkit local stop", wait=False):
            assert holder_of(instance).command == "hpkit local stop"

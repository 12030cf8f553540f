"""Starts and stops instances from outside: what `hpkit local` does."""

import fcntl
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hpkit.errors import ToolError
from local.plugins.install import install
from local.processes.process import end, spawn
from local.supervisor.instance import Instance, State
from local.toolchain import search_path

__all__ = ["environment", "find_root", "reset", "running", "start", "stop"]

_READY_SECONDS = 120.0
_STOP_SECONDS = 30.0
_HOPELESS_STARTS = 4
_POLL_SECONDS = 0.1
_TAIL_LINES = 5


def find_root(start: Path) -> Path:
    """Return the nearest folder upward that holds Pulumi.yaml."""
    for folder in (start.absolute(), *start.absolute().parents):
        if (folder / "Pulumi.yaml").is_file():
            return folder
    raise ToolError(f"no Pulumi.yaml in {start.absolute()} or above: go into the repository, or name it with --dir")


def running(instance: Instance) -> State | None:
    """Return what runs, if the supervisor does."""
    state = instance.state()
    return state if state is not None and state.supervisor.alive() else None


def start(instance: Instance, *, say: Callable[[str], None]) -> State:
    """Start or go on; return when every service is healthy. What a killed supervisor left behind is ended first."""
    with _alone(instance):
        state = running(instance)
        if state is None:
            _clear(instance)
            package_root = Path(__file__).resolve().parents[2]
            child = spawn(
                [sys.executable, "-m", "local.supervisor", str(instance.folder)],
                log=instance.log("supervisor"),
                environment=dict(os.environ),
                folder=package_root,
                bound=False,
            )
            # A supervisor outlives its starter on purpose; if it ends first, this thread leaves no zombie.
            threading.Thread(target=child.wait, daemon=True).start()
            try:
                return _await_ready(instance, say, lambda: child.poll() is None)
            except ToolError:
                # Its logs tell why; what cannot become ready is not left running.
                _clear(instance)
                raise
        return _await_ready(instance, say, lambda: running(instance) is not None)


def stop(instance: Instance) -> bool:
    """End the supervisor and every service, and return whether anything ran; nothing is left running."""
    if not instance.folder.is_dir():
        return False
    with _alone(instance):
        return _clear(instance)


def reset(instance: Instance) -> None:
    """Stop, and delete all that the instance keeps."""
    if not instance.folder.is_dir():
        return
    with _alone(instance):
        try:
            _clear(instance)
        except ToolError:
            # A record that cannot be read is deleted too, unless there is a supervisor that it may be of.
            if _supervised(instance):
                raise
        shutil.rmtree(instance.folder, ignore_errors=True)


def environment(instance: Instance, *, tools: tuple[str, ...] = ("pulumi", "pulumi-language-python")) -> dict[str, str]:
    """Return the variables that point AWS, Kubernetes and Pulumi clients at the instance, and nowhere else."""
    ports = instance.ports()
    if not ports:
        raise ToolError(
            f"instance {instance.name} was never started. Start it: hpkit local start --name {instance.name}"
        )
    backend = instance.folder / "pulumi-state"
    backend.mkdir(exist_ok=True)
    pulumi_home = instance.folder / "pulumi-home"
    install(pulumi_home)
    local_only = "local"
    return {
        "KUBECONFIG": str(instance.kubeconfig),
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{ports['aws']}",
        "AWS_ACCESS_KEY_ID": local_only,
        "AWS_SECRET_ACCESS_KEY": local_only,
        "AWS_REGION": "us-west-2",
        "AWS_EC2_METADATA_DISABLED": "true",
        "PULUMI_HOME": str(pulumi_home),
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "PULUMI_BACKEND_URL": backend.as_uri(),
        "PULUMI_CONFIG_PASSPHRASE": local_only,
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PATH": search_path(*tools),
    }


def _clear(instance: Instance) -> bool:
    state = instance.state()
    if state is None:
        return False
    alive = [each for each in state.processes() if each.alive()]
    # The supervisor ends its services in order; only what it leaves behind is ended here.
    end([each for each in alive if each == state.supervisor], seconds=_STOP_SECONDS)
    latest = instance.state() or state
    end([*state.processes(), *latest.processes()], seconds=_STOP_SECONDS)
    instance.forget_state()
    return bool(alive)


def _supervised(instance: Instance) -> bool:
    """Say whether a supervisor holds the instance's lock, whatever is written down."""
    with (instance.folder / "lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _await_ready(instance: Instance, say: Callable[[str], None], goes_on: Callable[[], bool]) -> State:
    deadline = time.monotonic() + _READY_SECONDS
    reported: set[str] = set()
    while time.monotonic() < deadline:
        if not goes_on():
            raise ToolError(f"the supervisor ended: {_tail(instance.log('supervisor'))}")
        state = running(instance)
        for name, part in (state.parts if state else {}).items():
            if part.state == "healthy" and name not in reported:
                reported.add(name)
                say(f"{name}: healthy")
            elif part.state == "waiting" and part.restarts >= _HOPELESS_STARTS and name not in reported:
                raise ToolError(f"{name}: {part.problem}, {part.restarts} times. {_tail(instance.log(name))}")
        if state is not None and state.ready:
            return state
        time.sleep(_POLL_SECONDS)
    state = instance.state()
    late = [name for name, part in (state.parts if state else {}).items() if part.state != "healthy"]
    logs = "; ".join(f"{name}: {_tail(instance.log(name))}" for name in late)
    raise ToolError(f"not ready after {_READY_SECONDS:.0f} s. {logs}")


def _tail(log: Path) -> str:
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-_TAIL_LINES:]
    except OSError:
        lines = []
    return " | ".join([*lines, f"whole log: {log}"])


@contextmanager
def _alone(instance: Instance) -> Iterator[None]:
    """Let one start or stop of an instance go on at a time; others wait."""
    instance.folder.mkdir(parents=True, exist_ok=True)
    with (instance.folder / "control.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield

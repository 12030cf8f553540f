"""Starts and stops local clouds from outside: what `hpkit local` does."""

import fcntl
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hpkit.errors import InterruptionError, ToolError
from hpkit_local.plugins.install import AUTO, HOME, install, installed, shadowing
from hpkit_local.processes import end, spawn
from hpkit_local.supervisor.local_cloud import LocalCloud, State, exclusive
from hpkit_local.supervisor.local_clouds import stacks_up
from hpkit_local.toolchain import TOOLS, emulated_version, locate, search_path

__all__ = [
    "VARIABLES",
    "Starting",
    "begin",
    "environment",
    "find_root",
    "full_disk",
    "reset",
    "running",
    "service_endpoints",
    "shell_environment",
    "start",
    "stop",
    "take_caller",
    "take_kubernetes",
    "take_plugins",
]

# Variables that `environment` sets, in addition to endpoints of single services; unsetting them needs no local cloud.
VARIABLES = (
    "HPKIT_STACK",
    "HYPERPOD_SETTLE_SECONDS",
    "HPKIT_LATENCY_FACTOR",
    "KUBECONFIG",
    "AWS_ENDPOINT_URL",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_EC2_METADATA_DISABLED",
    "PULUMI_HOME",
    "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION",
    "PULUMI_BACKEND_URL",
    "PULUMI_CONFIG_PASSPHRASE",
    "PULUMI_SKIP_UPDATE_CHECK",
    "PATH",
)
# The SDKs take a service's own endpoint before that of all services
# (https://docs.aws.amazon.com/sdkref/latest/guide/feature-ss-endpoints.html).
_SERVICE_ENDPOINT = "AWS_ENDPOINT_URL_"

# A part that hasn't become healthy after this time never will, even on the busiest machine. The error names the part.
_PART_SECONDS = 300.0
_SAY_SECONDS = 30.0
_STOP_SECONDS = 30.0
# What a reset deletes doesn't have to be written first.
_RESET_SECONDS = 0.5
_HOPELESS_STARTS = 4
_POLL_SECONDS = 0.1
_FIRST_POLL_SECONDS = 0.02
_TAIL_LINES = 5
_MB = 1_000_000
# etcd reserves its log in segments of this size (SegmentSizeBytes of its package wal), the first two at once.
_SEGMENT = 64 * _MB
_FIRST_START = 3 * _SEGMENT
_PORT_CLAIMS = 3
_REGION = "us-west-2"
_SETTLE_SECONDS = 10.0
# Longer than the endpoint is late at such factors.
_LEAST_SETTLE_SECONDS, _LEAST_SETTLE_FACTOR = 3.5, 0.01
# Tools that users run in a shell; the local cloud runs the others.
_FOR_SHELLS = ("pulumi", "pulumi-language-python", "helm", "kubectl")


class _PartError(ToolError):
    """A part does not become healthy; the supervisor is there."""


def find_root(start: Path) -> Path:
    """Return the nearest folder upward with Pulumi.yaml."""
    for folder in (start.absolute(), *start.absolute().parents):
        if (folder / "Pulumi.yaml").is_file():
            return folder
    raise ToolError(
        f"no Pulumi.yaml in {start.absolute()} or above: change to the project's folder, or pass it with --dir"
    )


def running(cloud: LocalCloud) -> State | None:
    """Return the running state, if the supervisor runs."""
    return cloud.running()


class Starting:
    """The services of a local cloud that starts: each is reported once, when it becomes healthy."""

    def __init__(self, cloud: LocalCloud, say: Callable[[str], None] = lambda _: None) -> None:
        self._cloud, self._say = cloud, say
        self.healthy: set[str] = set()

    def problem(self) -> str:
        """Report services that became healthy; return which service ends repeatedly and why, or ""."""
        state = running(self._cloud)
        for name, part in (state.parts if state else {}).items():
            if part.state == "healthy" and name not in self.healthy:
                self.healthy.add(name)
                self._say(f"{name}: healthy")
            elif (
                part.state == "waiting"
                and part.restarts >= _HOPELESS_STARTS
                and (name not in self.healthy or full_disk(self._cloud))
            ):
                return f"{name}: {part.problem}, {part.restarts} times. {_tail(self._cloud, name)}"
        return ""


def begin(cloud: LocalCloud) -> Starting:
    """Start a local cloud that isn't running; return when its ports are known, while its services start."""
    if _begin(cloud).poll() is not None:
        raise ToolError(f"the supervisor ended: {_tail(cloud, 'supervisor')}")
    return Starting(cloud)


def start(cloud: LocalCloud, *, say: Callable[[str], None], wait: bool = True) -> State:
    """Start or continue; return when every service is healthy. Processes of a killed supervisor are ended first."""
    with exclusive(cloud, f"hpkit local start --name {cloud.name}", wait=wait, say=say), _explained(cloud):
        if running(cloud) is not None:
            return _await_ready(cloud, say, lambda: running(cloud) is not None)
        for _ in range(_PORT_CLAIMS - 1):
            try:
                return _start(cloud, say)
            except _PartError:
                # Between finding a free port and listening on it, another program can take it. Each start reserves
                # ports again.
                used_ports = cloud.ports_of_others()
                if not used_ports:
                    raise
                say(
                    f"another program took {', '.join(f'port {port} ({name})' for name, port in used_ports.items())}: "
                    "again"
                )
        return _start(cloud, say)


@contextmanager
def _explained(cloud: LocalCloud) -> Iterator[None]:
    """Report after Ctrl-C that the local cloud, which has its own session, still starts."""
    try:
        yield
    except KeyboardInterrupt:
        if running(cloud) is None:
            raise
        raise InterruptionError(
            f"interrupted. The local cloud {cloud.name} continues to start. To stop it: hpkit local stop --name "
            f"{cloud.name}"
        ) from None


def stop(
    cloud: LocalCloud, *, say: Callable[[str], None] = lambda _: None, wait: bool = True, force: bool = False
) -> bool:
    """End the supervisor and every service, and return whether anything ran.

    force: don't wait for commands on the local cloud, which then end because their local cloud is stopped.
    """
    if not cloud.folder.is_dir():
        return False
    with _to_end(cloud, "stop", say=say, wait=wait, force=force) as ended:
        return _clear(cloud) or any(ended)


def reset(
    cloud: LocalCloud, *, say: Callable[[str], None] = lambda _: None, wait: bool = True, force: bool = False
) -> None:
    """Stop, and delete everything in the local cloud; force as for stop."""
    if not cloud.folder.is_dir():
        return
    with _to_end(cloud, "reset", say=say, wait=wait, force=force):
        try:
            _clear(cloud, reset=True)
        except ToolError:
            # A record that cannot be read is deleted too, unless there is a supervisor that it may be of.
            if _supervised(cloud):
                raise
        shutil.rmtree(cloud.folder, ignore_errors=True)


def take_caller(
    cloud: LocalCloud, stack: str, account: str, role: str | None = None, *, say: Callable[[str], None]
) -> None:
    """Set the account of a local cloud, and the role of its clients, from the next start on; stop it if they change.

    role: the ARN of one of the stack's deployers, None where it names none.

    Raises ToolError where the stack is up in another account.
    """
    before = cloud.account()
    if (account, role) == (before, cloud.role()):
        return
    if account != before and stacks_up(cloud):
        raise ToolError(
            f"{stack} is up on local cloud {cloud.name} in account {before}, but its file now has account {account}. "
            f"Delete it first: hpkit local down --stack {stack} --name {cloud.name}"
        )
    if running(cloud) is not None:
        say(f"{cloud.name} restarts as {role or f'account {account}'}")
        stop(cloud, say=say)
    cloud.write_caller(account, role)


def take_kubernetes(cloud: LocalCloud, version: str, *, say: Callable[[str], None]) -> None:
    """Set the Kubernetes version of a local cloud, such as "1.34", or the nearest possible one; it then restarts.

    Reports a change, and each time that the nearest version isn't the requested one.
    """
    emulated = emulated_version(version)
    changes = emulated != cloud.kubernetes()
    nearest = "" if emulated == version else f", the nearest to {version} that kube-apiserver emulates"
    if changes or nearest:
        say(f"{cloud.name}: Kubernetes {emulated}{nearest}")
    if not changes:
        return
    if running(cloud) is not None:
        stop(cloud, say=say)
    cloud.write_kubernetes(emulated)


def take_plugins(cloud: LocalCloud, stack: str, plugins: str, *, say: Callable[[str], None]) -> None:
    """Make a local cloud use Pulumi's own plugins, or the fakes; one with a stack keeps its plugins.

    plugins: value of `--plugins`. Raises ToolError if a stack was created with other plugins, or an official one is
    requested and can't run.
    """
    home = cloud.folder / HOME
    before = installed(home) if stacks_up(cloud) else ""
    if before and plugins not in {AUTO, before}:
        raise ToolError(
            f"{stack} is up on local cloud {cloud.name} with --plugins {before}, and the plugins can't be exchanged. "
            f"Delete it first: hpkit local down --stack {stack} --name {cloud.name}"
        )
    say(f"plugins: {install(home, before or plugins)}")


@contextmanager
def _to_end(
    cloud: LocalCloud, verb: str, *, say: Callable[[str], None], wait: bool, force: bool
) -> Iterator[list[bool]]:
    """Lock the local cloud; with force, stop it even while another command uses it."""
    ended: list[bool] = []

    def end_it() -> None:
        if force:
            ended.append(_clear(cloud))

    command = f"hpkit local {verb} --name {cloud.name}"
    with exclusive(cloud, command, wait=wait or force, say=say, meanwhile=end_it):
        yield ended


def environment(cloud: LocalCloud, *, tools: tuple[str, ...] = ("pulumi", "pulumi-language-python")) -> dict[str, str]:
    """Return the variables that point AWS, Kubernetes and Pulumi clients at the local cloud, and nowhere else.

    The command line of AWS and its SDKs read one variable of the region, boto3 the other
    (https://boto3.amazonaws.com/v1/documentation/api/latest/guide/configuration.html#using-environment-variables).
    """
    ports = cloud.ports()
    if not ports:
        raise ToolError(f"local cloud {cloud.name} was never started. Start it: hpkit local start --name {cloud.name}")
    backend = cloud.state_folder
    backend.mkdir(exist_ok=True)
    region = next((each.region for each in stacks_up(cloud) if each.region), _REGION)
    pulumi_home = cloud.folder / HOME
    install(pulumi_home)
    local_only = "local"
    factor = cloud.latency_factor()
    least = _LEAST_SETTLE_SECONDS if factor >= _LEAST_SETTLE_FACTOR else 0.0
    settle = max(_SETTLE_SECONDS * factor, least)
    return {
        "KUBECONFIG": str(cloud.kubeconfig),
        # The waiting times of the plugins `hyperpod` and `aws`, scaled like the endpoint's own times.
        "HYPERPOD_SETTLE_SECONDS": f"{settle:g}",
        "HPKIT_LATENCY_FACTOR": f"{factor:g}",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{ports['aws']}",
        "AWS_ACCESS_KEY_ID": local_only,
        "AWS_SECRET_ACCESS_KEY": local_only,
        "AWS_SESSION_TOKEN": "",
        "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "false",
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,
        "AWS_EC2_METADATA_DISABLED": "true",
        "PULUMI_HOME": str(pulumi_home),
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "PULUMI_BACKEND_URL": backend.as_uri(),
        "PULUMI_CONFIG_PASSPHRASE": local_only,
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PATH": os.pathsep.join([*shadowing(pulumi_home), search_path(*tools)]),
        **dict.fromkeys(service_endpoints(os.environ), ""),
    }


def service_endpoints(variables: Iterable[str]) -> list[str]:
    """Return which variables lead single services elsewhere: the SDKs pass over one that is empty."""
    return sorted(name for name in variables if name.startswith(_SERVICE_ENDPOINT))


def shell_environment(cloud: LocalCloud) -> dict[str, str]:
    """Return the variables for a shell: `environment`, with hpkit and its installed tools on PATH.

    HPKIT_STACK names the running stack, for the commands on one stack; it's empty without one.
    """
    here = tuple(tool.name for tool in TOOLS if tool.name in _FOR_SHELLS and locate(tool).path is not None)
    variables = environment(cloud, tools=here)
    own = str(Path(sys.executable).parent)
    variables["HPKIT_STACK"] = next((each.name for each in stacks_up(cloud)), "")
    return {**variables, "PATH": os.pathsep.join(dict.fromkeys([own, *variables["PATH"].split(os.pathsep)]))}


def _start(cloud: LocalCloud, say: Callable[[str], None]) -> State:
    """Start the supervisor; what cannot become ready is not left running."""
    child = _begin(cloud)
    try:
        return _await_ready(cloud, say, lambda: child.poll() is None)
    except ToolError:
        # Its logs contain the reason.
        _clear(cloud)
        raise


def _begin(cloud: LocalCloud) -> "subprocess.Popen[bytes]":
    """Start the supervisor; return when it has written down that it runs, and the ports."""
    _clear(cloud)
    cloud.make_folder()
    if problem := full_disk(cloud):
        raise ToolError(problem)
    package_root = Path(__file__).resolve().parents[2]
    child = spawn(
        [sys.executable, "-m", "hpkit_local.supervisor", str(cloud.folder)],
        log=cloud.log("supervisor"),
        environment=dict(os.environ),
        folder=package_root,
        bound=False,
    )
    # A supervisor outlives its starter on purpose; if it ends first, this thread leaves no zombie.
    threading.Thread(target=child.wait, daemon=True).start()
    while running(cloud) is None and child.poll() is None:
        time.sleep(_FIRST_POLL_SECONDS)
    return child


def _clear(cloud: LocalCloud, *, reset: bool = False) -> bool:
    state = cloud.state()
    if state is None:
        return False
    alive = [each for each in state.processes() if each.alive()]
    if reset:
        end(alive, seconds=_RESET_SECONDS)
    # The supervisor ends its services in order; only processes that it leaves are ended here.
    end([each for each in alive if each == state.supervisor], seconds=_STOP_SECONDS)
    latest = cloud.state() or state
    end([*state.processes(), *latest.processes()], seconds=_STOP_SECONDS)
    cloud.forget_state()
    return bool(alive)


def _supervised(cloud: LocalCloud) -> bool:
    """Return whether a supervisor holds the local cloud's lock, regardless of its record."""
    with (cloud.folder / "lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _await_ready(cloud: LocalCloud, say: Callable[[str], None], should_continue: Callable[[], bool]) -> State:
    since = last_message = time.monotonic()
    starting, healthy = Starting(cloud, say), 0
    while time.monotonic() - since < _PART_SECONDS:
        if not should_continue():
            raise ToolError(f"the supervisor ended: {_tail(cloud, 'supervisor')}")
        state = running(cloud)
        if problem := starting.problem():
            raise _PartError(problem)
        if len(starting.healthy) > healthy:
            healthy = len(starting.healthy)
            since = last_message = time.monotonic()
        if state is not None and state.ready:
            return state
        if time.monotonic() - last_message >= _SAY_SECONDS:
            last_message = time.monotonic()
            late = ", ".join(_late(state)) or "the supervisor"
            say(f"{late}: still starting, {last_message - since:.0f} s after the last one")
        time.sleep(_POLL_SECONDS)
    logs = "; ".join(f"{name}: {_tail(cloud, name)}" for name in _late(cloud.state()))
    raise ToolError(f"no part became healthy within {_PART_SECONDS:.0f} s. {logs}")


def _late(state: State | None) -> list[str]:
    return [name for name, part in (state.parts if state else {}).items() if part.state != "healthy"]


def _tail(cloud: LocalCloud, service: str) -> str:
    """Return why a service ended: a full disk, ports that another program has, or else the last lines of its log."""
    if problem := full_disk(cloud):
        return problem
    state = cloud.state()
    # A part that still runs has its ports itself.
    runs = state is not None and service in state.parts and state.parts[service].identity.alive()
    taken = [] if runs else [f"port {port} ({name})" for name, port in cloud.ports_of_others(service).items()]
    if taken:
        return f"another program uses {', '.join(taken)}"
    log = cloud.log(service)
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-_TAIL_LINES:]
    except OSError:
        lines = []
    return " | ".join([*lines, f"whole log: {log}"])


def full_disk(cloud: LocalCloud) -> str:
    """Return what to do if the disk has less space than a local cloud needs to start or to continue, or ""."""
    free = shutil.disk_usage(cloud.folder if cloud.folder.is_dir() else cloud.folder.parents[1]).free
    needed = _SEGMENT if any(cloud.folder.glob("etcd/member/wal/*.wal")) else _FIRST_START
    if free >= needed:
        return ""
    return (
        f"the disk of {cloud.folder} has {free // _MB:,} MB of free space, but the local cloud {cloud.name} needs "
        f"{needed // _MB:,} MB. Delete files there, or make {cloud.folder.parent} a link to a larger disk"
    )

"""The files of one local cloud, its records, and the lock of the command that uses it."""

import datetime
import fcntl
import json
import os
import re
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from io import TextIOWrapper
from itertools import pairwise
from pathlib import Path
from typing import Any

from hpkit.errors import ToolError
from hpkit_local.processes import Identity, hold_ports, write_private
from hpkit_local.toolchain import KUBERNETES_MINOR

__all__ = ["LATENCY_FACTOR", "PORTS", "LocalCloud", "ServiceState", "State", "exclusive", "holder_of"]

PORTS = (
    *("aws", "etcd", "etcd-peer", "etcd-metrics", "kube-apiserver", "kube-controller-manager", "kube-scheduler"),
    *("kwok", "kueue-webhook", "kueue-health", "kueue-metrics"),
)
# States still change in order, as on AWS, and users don't wait for them: an EKS cluster takes 0.14 seconds.
LATENCY_FACTOR = "0.0002"
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
_LONGEST_NAME = 40
_POLL_SECONDS = 0.1
# A holder writes its name right after it has the lock; one that was halted in between has none.
_NAME_POLLS = 20


@dataclass(frozen=True)
class ServiceState:
    """A service as the supervisor last saw it: state starting, healthy or waiting (to be restarted)."""

    state: str
    restarts: int = 0
    pid: int = 0
    started: str = ""
    problem: str = ""

    @property
    def identity(self) -> Identity:
        """The process that it was, if it had one."""
        return Identity(self.pid, self.started)


@dataclass(frozen=True)
class State:
    """The running supervisor and its services, which users know as the parts of a local cloud."""

    supervisor: Identity
    parts: dict[str, ServiceState] = field(default_factory=dict)

    @property
    def ready(self) -> bool:
        """Every service is healthy."""
        return bool(self.parts) and all(part.state == "healthy" for part in self.parts.values())

    def processes(self) -> list[Identity]:
        """Return all that were started, the supervisor first."""
        children = [part.identity for part in self.parts.values() if part.pid]
        return [self.supervisor, *children]


@dataclass(frozen=True)
class LocalCloud:
    """One local cloud: all of it is below its folder."""

    folder: Path

    @classmethod
    def named(cls, name: str, *, root: Path) -> "LocalCloud":
        """Return the local cloud of a name; its folder is .local/<name> of the repository."""
        if not cls.fits(name):
            raise ToolError(f"local cloud name {name!r}: use up to 40 lower-case letters, digits and inner hyphens")
        return cls((root / ".local" / name).absolute())

    @classmethod
    def of_stack(cls, stack: str, *, root: Path) -> "LocalCloud":
        """Return the local cloud that a stack has for itself, which is named after it."""
        plain = re.sub(r"[^a-z0-9]+", "-", stack.lower()).strip("-")[:_LONGEST_NAME].strip("-")
        return cls.named(plain, root=root)

    @staticmethod
    def fits(name: str) -> bool:
        """Return whether a local cloud can have that name."""
        return _NAME.fullmatch(name) is not None

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.folder.name

    @property
    def state_folder(self) -> Path:
        """The folder where Pulumi keeps the stacks on it."""
        return self.folder / "pulumi-state"

    @property
    def kubeconfig(self) -> Path:
        """The file for KUBECONFIG."""
        return self.folder / "kubeconfig"

    def log(self, service: str) -> Path:
        """Return the log file of a service."""
        return self.folder / "logs" / f"{service}.log"

    def state(self) -> State | None:
        """Return the last recorded running state; it might have died since."""
        saved = self._read("run.json")
        if saved is None:
            return None
        parts = {name: ServiceState(**record) for name, record in saved["parts"].items()}
        return State(Identity(**saved["supervisor"]), parts)

    def running(self) -> State | None:
        """Return the running state, if the supervisor runs."""
        state = self.state()
        return state if state is not None and state.supervisor.alive() else None

    def has_record(self) -> bool:
        """Return whether a running state is recorded: a stopped local cloud has none, a killed one has."""
        return (self.folder / "run.json").is_file()

    def write_state(self, state: State) -> None:
        """Write down what runs."""
        self._write("run.json", asdict(state))

    def forget_state(self) -> None:
        """Delete what was written down as running."""
        (self.folder / "run.json").unlink(missing_ok=True)

    def aws_arguments(self) -> list[str]:
        """Return the extra arguments of the AWS endpoint from the last `start`."""
        return list(self._settings().get("aws", []))

    def write_aws_arguments(self, arguments: list[str]) -> None:
        """Keep extra arguments of the AWS endpoint for this and later starts."""
        self._keep(aws=arguments)

    def latency_factor(self) -> float:
        """Return how long changes of the AWS endpoint take: 1 as on AWS, 0 no time."""
        given = [value for flag, value in pairwise(self.aws_arguments()) if flag == "--latency-factor"]
        return float(given[-1] if given else LATENCY_FACTOR)

    def account(self) -> str:
        """Return the AWS account that the local cloud has for its stack."""
        from hpkit.catalog import PLACEHOLDER_ACCOUNT

        return str(self._settings().get("account", PLACEHOLDER_ACCOUNT))

    def role(self) -> str | None:
        """Return the ARN of the IAM role that the local cloud's clients have, if they have one."""
        return self._settings().get("role")

    def write_caller(self, account: str, role: str | None = None) -> None:
        """Keep the AWS account and its clients' role for the next start."""
        self._keep(account=account, role=role)

    def kubernetes(self) -> str:
        """Return the Kubernetes version that the API server emulates."""
        return str(self._settings().get("kubernetes", KUBERNETES_MINOR))

    def write_kubernetes(self, version: str) -> None:
        """Keep the Kubernetes version to emulate for the next start."""
        self._keep(kubernetes=version)

    def _keep(self, **settings: Any) -> None:
        self._write("settings.json", {**self._settings(), **settings})

    def _settings(self) -> dict[str, Any]:
        return self._read("settings.json") or {}

    def ports(self) -> dict[str, int]:
        """Return the ports of the last start."""
        return {name: int(port) for name, port in (self._read("ports.json") or {}).items()}

    def claim_ports(self) -> ExitStack:
        """Record the same ports as at the last start if they are still free, else others; return what reserves them.

        Until it's closed, other programs don't get the ports of a service that died, or hasn't started yet.
        """
        with ExitStack() as held:
            ports = {name: held.enter_context(each) for name, each in hold_ports(PORTS, self.ports()).items()}
            self._write("ports.json", {name: each.getsockname()[1] for name, each in ports.items()})
            # On other systems, no program can listen on a port that another one reserves.
            return held.pop_all() if sys.platform == "linux" else ExitStack()

    def ports_of(self, part: str) -> dict[str, int]:
        """Return the ports of a part by name; etcd has etcd, etcd-peer and etcd-metrics."""
        return {name: port for name, port in self.ports().items() if f"{name}-".startswith(f"{part}-")}

    def ports_of_others(self, part: str = "") -> dict[str, int]:
        """Return its ports, or those of a part, that another program has; call it while none of them runs."""
        ports = self.ports_of(part) if part else self.ports()
        return {name: port for name, port in ports.items() if not _is_free(port)}

    def _read(self, name: str) -> dict[str, Any] | None:
        path = self.folder / name
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise ToolError(f"{path} is damaged ({error}). Delete it: hpkit local reset --name {self.name}") from None
        return dict(content)

    def make_folder(self) -> None:
        """Create the folder, which other users can't open: its states, keys and logs aren't theirs."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o700)

    def _write(self, name: str, content: dict[str, Any]) -> None:
        self.make_folder()
        write_private(self.folder / name, json.dumps(content, indent=2).encode())


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # Connections that end leave their port taken for a while; services listen on it all the same.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


class _Held(threading.local):
    """The locks of this thread, so that a command that calls another doesn't wait for itself."""

    def __init__(self) -> None:
        self.paths: set[Path] = set()


_HELD = _Held()


@dataclass(frozen=True)
class Holder:
    """The command that uses a local cloud."""

    command: str
    pid: int
    since: str

    def __str__(self) -> str:
        return f"`{self.command}` (process {self.pid}, since {self.since})"


@contextmanager
def exclusive(
    cloud: LocalCloud,
    command: str,
    *,
    wait: bool = True,
    say: Callable[[str], None] = lambda _: None,
    meanwhile: Callable[[], object] = lambda: None,
) -> Iterator[None]:
    """Let nothing else work on the local cloud; others see `command` as the reason.

    If another process works on it, report that process and wait, or raise ToolError with it. `meanwhile` is called at
    each check.
    """
    path = _path(cloud)
    if path in _HELD.paths:
        yield
        return
    with _locked(cloud, path, wait=wait, say=say, meanwhile=meanwhile) as lock:
        now = datetime.datetime.now(tz=datetime.UTC).astimezone()
        json.dump(asdict(Holder(command, os.getpid(), now.isoformat(sep=" ", timespec="seconds"))), lock)
        lock.flush()
        _HELD.paths.add(path)
        try:
            yield
        finally:
            _HELD.paths.discard(path)
            path.unlink(missing_ok=True)


def holder_of(cloud: LocalCloud) -> Holder | None:
    """Return the holder that is written in the lock; it might have died since."""
    try:
        return Holder(**json.loads(_path(cloud).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _path(cloud: LocalCloud) -> Path:
    """Return the lock next to the local cloud's folder, because a reset deletes the folder."""
    return cloud.folder.with_name(f"{cloud.name}.lock")


def _locked(
    cloud: LocalCloud, path: Path, *, wait: bool, say: Callable[[str], None], meanwhile: Callable[[], object]
) -> TextIOWrapper:
    path.parent.mkdir(parents=True, exist_ok=True)
    reported: Holder | None = None
    polls = 0
    while True:
        lock = path.open("a+", encoding="utf-8")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            polls += 1
            holder = holder_of(cloud)
            if not wait and (holder or polls > _NAME_POLLS):
                raise ToolError(
                    f"{holder or 'another command'} is using the local cloud {cloud.name}. Wait until it is "
                    "done, or omit --no-wait"
                ) from None
            if holder not in (None, reported):
                reported = holder
                say(f"waiting for {holder}, which is using the local cloud {cloud.name}")
            meanwhile()
            time.sleep(_POLL_SECONDS)
            continue
        if _is_there(path, lock):
            lock.truncate(0)
            return lock
        # The holder before deleted the file while this one opened it.
        lock.close()


def _is_there(path: Path, lock: TextIOWrapper) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(lock.fileno()))
    except FileNotFoundError:
        return False

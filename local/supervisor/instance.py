"""Where one instance of the local cloud keeps its things, and what it wrote down there."""

import json
import re
import socket
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hpkit.errors import ToolError
from local.processes.files import write_private
from local.processes.process import Identity

__all__ = ["PORTS", "Instance", "ServiceState", "State"]

PORTS = (
    *("aws", "etcd", "etcd-peer", "etcd-metrics", "kube-apiserver", "kube-controller-manager", "kube-scheduler"),
    *("kwok", "kueue-webhook", "kueue-health", "kueue-metrics"),
)
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")


@dataclass(frozen=True)
class ServiceState:
    """A service as the supervisor last saw it: state starting, healthy or waiting (to be restarted)."""

    state: str
    restarts: int = 0
    pid: int = 0
    started: str = ""
    problem: str = ""


@dataclass(frozen=True)
class State:
    """What runs: the supervisor and its services, which users know as the parts of an instance."""

    supervisor: Identity
    parts: dict[str, ServiceState] = field(default_factory=dict)

    @property
    def ready(self) -> bool:
        """Every service is healthy."""
        return bool(self.parts) and all(part.state == "healthy" for part in self.parts.values())

    def processes(self) -> list[Identity]:
        """Return all that were started, the supervisor first."""
        children = [Identity(part.pid, part.started) for part in self.parts.values() if part.pid]
        return [self.supervisor, *children]


@dataclass(frozen=True)
class Instance:
    """One instance: all of it is below its folder."""

    folder: Path

    @classmethod
    def named(cls, name: str, *, root: Path) -> "Instance":
        """Return the instance of a name; its folder is .local/<name> of the repository."""
        if not _NAME.fullmatch(name):
            raise ToolError(f"instance name {name!r}: use up to 40 lower-case letters, digits and inner hyphens")
        return cls((root / ".local" / name).absolute())

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.folder.name

    @property
    def kubeconfig(self) -> Path:
        """The file for KUBECONFIG."""
        return self.folder / "kubeconfig"

    def log(self, service: str) -> Path:
        """Return the log file of a service."""
        return self.folder / "logs" / f"{service}.log"

    def state(self) -> State | None:
        """Return what was last written down as running; it may have died since."""
        found = self._read("run.json")
        if found is None:
            return None
        parts = {name: ServiceState(**record) for name, record in found["parts"].items()}
        return State(Identity(**found["supervisor"]), parts)

    def write_state(self, state: State) -> None:
        """Write down what runs."""
        self._write("run.json", asdict(state))

    def forget_state(self) -> None:
        """Delete what was written down as running."""
        (self.folder / "run.json").unlink(missing_ok=True)

    def aws_arguments(self) -> list[str]:
        """Return the extra arguments of the AWS endpoint that `start` was given last."""
        return list((self._read("settings.json") or {}).get("aws", []))

    def write_aws_arguments(self, arguments: list[str]) -> None:
        """Keep extra arguments of the AWS endpoint for this and later starts."""
        self._write("settings.json", {"aws": arguments})

    def ports(self) -> dict[str, int]:
        """Return the ports of the last start."""
        return {name: int(port) for name, port in (self._read("ports.json") or {}).items()}

    def claim_ports(self) -> dict[str, int]:
        """Return the same ports as at the last start, where still free, else others; and write them down."""
        before = self.ports()
        sockets = [_listen(before.get(name, 0)) for name in PORTS]
        ports = {name: int(each.getsockname()[1]) for name, each in zip(PORTS, sockets, strict=True)}
        for each in sockets:
            each.close()
        self._write("ports.json", ports)
        return ports

    def _read(self, name: str) -> dict[str, Any] | None:
        path = self.folder / name
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise ToolError(f"{path} is damaged ({error}). Begin anew: hpkit local reset --name {self.name}") from None
        return dict(found)

    def _write(self, name: str, content: dict[str, Any]) -> None:
        write_private(self.folder / name, json.dumps(content, indent=2).encode())


def _listen(port: int) -> socket.socket:
    """Hold a free port, this one if possible; all are held at once, so that no two services get the same."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        held.bind(("127.0.0.1", port))
    except OSError:
        held.bind(("127.0.0.1", 0))
    return held

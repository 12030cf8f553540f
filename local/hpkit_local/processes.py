"""Child processes of the local cloud: starting, identifying, probing and ending them, their ports and private files.

Free ports on loopback for services and processes. They are below the ports that the kernel gives to outgoing
connections, which can take any of these at any moment.
"""

import ctypes
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import psutil

__all__ = [
    "Identity",
    "Service",
    "bound_to_parent",
    "end",
    "hold_ports",
    "http_status",
    "identify",
    "spawn",
    "write_private",
]


def write_private(path: Path, content: bytes) -> None:
    """Replace a file in one step; mode 0600 from its first byte on."""
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f".{path.name}.{os.getpid()}")
    half.unlink(missing_ok=True)
    with os.fdopen(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
    half.replace(path)


_SECONDS = 2.0


def http_status(
    port: int,
    path: str,
    *,
    authority: Path | None = None,
    client: tuple[Path, Path] | None = None,
    posts: Mapping[str, Any] | None = None,
) -> int:
    """Return the status of an endpoint on loopback. Raises ConnectionError if it doesn't respond.

    With the certificate of an authority, it's called with TLS; client: the caller's certificate and key; posts: a
    document to send.
    """
    import urllib3

    method = "GET" if posts is None else "POST"
    certificate, key = map(str, client) if client else (None, None)
    url = f"{'https' if authority else 'http'}://127.0.0.1:{port}{path}"
    try:
        with urllib3.PoolManager(
            ca_certs=str(authority) if authority else None, cert_file=certificate, key_file=key
        ) as pool:
            return pool.request(method, url, json=posts, timeout=_SECONDS, retries=False).status
    except urllib3.exceptions.HTTPError as error:
        reason = getattr(error, "reason", error)
        raise ConnectionError(f"port {port} doesn't respond to {method} {path} ({type(reason).__name__})") from error


_NONE: Mapping[str, int] = MappingProxyType({})
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_FIRST = 10_000
# Linux's own default, and below that of other systems.
_FIRST_OF_KERNEL = 32_768
_FEWEST = 1_000
_TRIES = 100


def hold_ports(names: Iterable[str], before: Mapping[str, int] = _NONE) -> dict[str, socket.socket]:
    """Return a socket per name that reserves a free port, the same as before if it's still free.

    On Linux, a program can listen on a port that is reserved in this way, and the kernel gives it to no other program.
    """
    return {name: _held(before.get(name)) for name in names}


def _held(before: int | None) -> socket.socket:
    """Reserve this port if it's free, otherwise another."""
    # Closed connections keep a port busy for a while, but a service can still listen on it.
    reserved = None if before is None else _bound(before)
    ports = _below_those_of_the_kernel()
    for port in random.SystemRandom().sample(ports, min(_TRIES, len(ports))):
        if reserved is None and _is_untouched(port):
            reserved = _bound(port)
    if reserved is None:
        raise OSError("no loopback port is free")
    return reserved


def _bound(port: int) -> socket.socket | None:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
    except OSError:
        listener.close()
        return None
    return listener


def _is_untouched(port: int) -> bool:
    """Return whether no process has or reserves a port: processes that only reserve it don't exclude each other."""
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _below_those_of_the_kernel() -> range:
    try:
        first = int(_RANGE.read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        first = _FIRST_OF_KERNEL
    # Some systems give out nearly all ports: then these are as good as any.
    return range(_FIRST, first if first >= _FIRST + _FEWEST else _FIRST_OF_KERNEL)


_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
_POLL_SECONDS = 0.05


@dataclass(frozen=True)
class Identity:
    """A process; `started` is its start time, with the boot it belongs to."""

    pid: int
    started: str

    def alive(self) -> bool:
        """Return whether exactly this process still runs (a zombie doesn't)."""
        return identify(self.pid) == self


def identify(pid: int) -> Identity | None:
    """Return the process that has that number now, or None."""
    try:
        process = psutil.Process(pid)
        if process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
            return None
        # Since boot, so that setting the clock changes nothing.
        ticks = round((process.create_time() - psutil.boot_time()) * os.sysconf("SC_CLK_TCK"))
    except psutil.Error:
        return None
    return Identity(pid, f"{_boot_id()}/{ticks}")


@cache
def _boot_id() -> str:
    """Return an identifier of this boot, if the system has one."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def spawn(
    command: Sequence[str], *, log: Path, environment: Mapping[str, str], folder: Path | None, bound: bool
) -> subprocess.Popen[bytes]:
    """Start a process in a new session, output to a log; if `bound`, it dies with its parent (Linux)."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as out:
        return subprocess.Popen(  # noqa: S603 - commands are hpkit's own
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=environment,
            cwd=folder,
            start_new_session=True,
            preexec_fn=bound_to_parent(signal.SIGKILL) if bound else None,  # noqa: PLW1509 - the supervisor has one thread
        )


def bound_to_parent(number: signal.Signals) -> Callable[[], None]:
    """Return what a new process runs before its command: it then gets this signal when its parent dies (Linux)."""
    parent = os.getpid()

    def bind() -> None:
        if _LIBC is not None:
            _LIBC.prctl(_PR_SET_PDEATHSIG, number)
            if os.getppid() != parent:
                os._exit(1)

    return bind


def end(processes: Sequence[Identity], *, seconds: float) -> None:
    """Ask the processes' groups to end; kill what still runs after that time. Returns when all are gone."""
    for number, patience in ((signal.SIGTERM, seconds), (signal.SIGKILL, seconds)):
        for each in processes:
            if each.alive():
                _signal_group(each.pid, number)
        deadline = time.monotonic() + patience
        while any(each.alive() for each in processes) and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)


def _signal_group(pid: int, number: signal.Signals) -> None:
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        return


def _nothing() -> None:
    return None


@dataclass(frozen=True)
class Service:
    """One child process: it starts when all services that it `needs` are healthy.

    `prepare` runs before every start. It can raise OSError if something that it needs has disappeared. `healthy`
    returns within a second or two, and raises OSError while the service can't be reached.
    """

    name: str
    command: tuple[str, ...]
    healthy: Callable[[], bool]
    needs: tuple[str, ...] = ()
    prepare: Callable[[], None] = _nothing
    environment: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None

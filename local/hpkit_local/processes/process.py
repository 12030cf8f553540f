"""Processes identified by number and start time, so that a reused number is never mistaken."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import psutil

__all__ = ["Identity", "bound_to_parent", "end", "identify", "spawn"]

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

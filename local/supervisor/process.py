"""Processes by identity: a number together with its start time, so that a number used again is never mistaken."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Identity", "end", "identify", "spawn"]

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
_POLL_SECONDS = 0.05


@dataclass(frozen=True)
class Identity:
    """A process; `started` is its start time, with the boot it belongs to."""

    pid: int
    started: str

    def alive(self) -> bool:
        """Say whether this very process still runs (a zombie does not)."""
        return identify(self.pid) == self


def identify(pid: int) -> Identity | None:
    """Return who has that process number now; None if nobody has."""
    if sys.platform != "linux":
        answer = subprocess.run(  # noqa: S603 - a number is its only argument
            ["/bin/ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
        )
        return Identity(pid, answer.stdout.strip()) if answer.stdout.strip() else None
    try:
        # The name may hold spaces and brackets; what follows its last bracket is fields 3 and on, see proc(5).
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None
    return None if fields[0] in {"Z", "X"} else Identity(pid, f"{boot}/{fields[19]}")


def spawn(
    command: Sequence[str], *, log: Path, environment: Mapping[str, str], folder: Path | None, bound: bool
) -> subprocess.Popen[bytes]:
    """Start a process in a session of its own, output to a log; if `bound`, it dies with its parent (Linux)."""
    parent = os.getpid()

    def die_with_parent() -> None:
        if _LIBC is not None:
            _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(1)

    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as out:
        return subprocess.Popen(  # noqa: S603 - commands are the kit's own
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=environment,
            cwd=folder,
            start_new_session=True,
            preexec_fn=die_with_parent if bound else None,  # noqa: PLW1509 - the supervisor has one thread
        )


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

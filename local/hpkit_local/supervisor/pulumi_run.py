"""One run of Pulumi as a child process: interrupted in its own way, and ended when what it works on is gone."""

import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from hpkit_local.processes.process import bound_to_parent

__all__ = ["Ended", "run"]

_WATCH_SECONDS = 0.2
# What Pulumi may take to write down what it knows, once told, and once told again.
_END_SECONDS = (5.0, 3.0)


@dataclass(frozen=True)
class Ended:
    """How a run ended: its exit code, whether a user interrupted it, and why it was ended from here, or ""."""

    code: int
    interrupted: bool
    gone: str


def run(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    *,
    stop_reason: Callable[[], str],
    log: Path | None = None,
    watch: Callable[[bool], None] = lambda _interrupted: None,
) -> Ended:
    """Run a command that hears of interruptions from here alone; `stop_reason` returns why it cannot continue, or "".

    log: where its output goes; None leaves it where that of this process goes. `watch` is called several times a
    second, with whether the user has interrupted the run.
    A terminal would interrupt its plugins too, and what they make at that moment would be lost.
    """
    interrupted = False
    process: subprocess.Popen[bytes] | None = None

    def pass_on(number: int, frame: object) -> None:
        del number, frame
        nonlocal interrupted
        interrupted = True
        if process is not None:
            process.send_signal(signal.SIGINT)

    before = {number: signal.signal(number, pass_on) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    output = None if log is None else log.open("wb")
    try:
        process = subprocess.Popen(  # noqa: S603 - commands are hpkit's own
            command,
            cwd=folder,
            env=environment,
            stdout=output,
            stderr=output,
            start_new_session=True,
            # A killed command must not go on behind the back of the next one.
            preexec_fn=bound_to_parent(signal.SIGINT),  # noqa: PLW1509 - the other thread only waits for a child
        )
        if interrupted:
            process.send_signal(signal.SIGINT)
        return _watched(process, stop_reason, lambda: interrupted, watch)
    finally:
        if output is not None:
            output.close()
        for number, handler in before.items():
            signal.signal(number, handler)


def _watched(
    process: subprocess.Popen[bytes],
    stop_reason: Callable[[], str],
    interrupted: Callable[[], bool],
    watch: Callable[[bool], None],
) -> Ended:
    while True:
        watch(interrupted())
        try:
            return Ended(process.wait(_WATCH_SECONDS), interrupted(), "")
        except subprocess.TimeoutExpired:
            reason = stop_reason()
        if reason:
            _end(process)
            return Ended(process.returncode, interrupted(), reason)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Let Pulumi write down what it has, by its own ^C, and the second one that is for haste; then leave nothing."""
    for seconds in _END_SECONDS:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(seconds)
            break
        except subprocess.TimeoutExpired:
            continue
    process.kill()
    process.wait()
    # Language host and plugins have their own process groups, in the session of the engine.
    while members := _members(process.pid):
        for each in members:
            each.kill()
        psutil.wait_procs(members, timeout=_WATCH_SECONDS)


def _members(session: int) -> list[psutil.Process]:
    members = []
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                members.append(process)
        except (ProcessLookupError, psutil.Error):
            continue
    return members

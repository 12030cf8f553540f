"""One run of Pulumi as a child process: interrupted in its own way, and ended if its instance stops."""

import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from hpkit_local.processes import bound_to_parent

__all__ = ["Ended", "run"]

_WATCH_SECONDS = 0.2
# How long Pulumi can take to write its state after the first and after the second interrupt.
_END_SECONDS = (5.0, 3.0)


@dataclass(frozen=True)
class Ended:
    """The result of a run: its exit code, whether a user interrupted it, and why it was ended from here, or ""."""

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
    """Run a command that is interrupted only from here; `stop_reason` returns why it can't continue, or "".

    log: the target of its output; None: to this process's output. `watch` is called several times a
    second, with whether the user has interrupted the run. A terminal would interrupt its plugins too, and the resources
    that they are creating would be lost.
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
            # A killed command must not continue in the background of the next one.
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
    """Let Pulumi write its state, with its own ^C and the second one for haste; then end everything."""
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

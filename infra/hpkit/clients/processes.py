"""Runs commands as child processes that end in their own time after an interruption.

A terminal's Ctrl-C would also reach Pulumi's plugins, and a resource that one of them is creating would be lost.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

__all__ = ["Interrupts", "run", "run_attended"]

_PAUSE_SECONDS: Final = 0.2
# Pulumi waits for the operations that its plugins have begun; a HyperPod cluster can take this long.
_GRACE_SECONDS: Final = 2400.0


class Interrupts:
    """Counts the signals that ask this process to end: SIGINT, SIGTERM and SIGHUP."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self.count = 0
        # What one more signal does, for the message.
        self.meaning = ""

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count signals instead of raising KeyboardInterrupt."""
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        before = {number: signal.signal(number, self._take) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _take(self, number: int, frame: object) -> None:
        del number, frame
        self.count += 1
        self._say(self.meaning)


def run(
    command: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    log: Path,
    held: int,
    stop_reason: Callable[[], str],
) -> tuple[int, str]:
    """Run a command, append its output to log, and return its exit code and the reason for which it was ended, or "".

    held: a file descriptor that the child keeps open, so that its lock lasts as long as the child. stop_reason: returns
    why the command must end now, or "". The command is interrupted then, and killed if that takes too long.
    """
    with log.open("ab") as output:
        output.write(f"$ {' '.join(command)}\n".encode())
        output.flush()
        process = subprocess.Popen(  # noqa: S603 - commands are hpkit's own
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            pass_fds=(held,),
        )
        reason, until = "", 0.0
        while True:
            try:
                return process.wait(_PAUSE_SECONDS), reason
            except subprocess.TimeoutExpired:
                pass
            if not reason and (reason := stop_reason()):
                process.send_signal(signal.SIGINT)
                until = time.monotonic() + _GRACE_SECONDS
            elif reason and time.monotonic() > until:
                # `hpkit aws destroy` has Pulumi as its own child.
                os.killpg(process.pid, signal.SIGKILL)


def run_attended(command: Sequence[str], *, folder: Path, environment: Mapping[str, str]) -> int:
    """Run a command with this process's input and output, and return its exit code.

    After SIGINT or SIGTERM, it can end by itself: Pulumi finishes the running operations, which a kill would lose. A
    terminal sends its Ctrl-C to the command too.
    """
    process: subprocess.Popen[bytes] | None = None

    def pass_on(number: int, frame: object) -> None:
        del frame
        if process is not None and not (number == signal.SIGINT and sys.stdin.isatty()):
            process.send_signal(signal.SIGINT)

    before = {number: signal.signal(number, pass_on) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        process = subprocess.Popen(command, cwd=folder, env=environment)  # noqa: S603 - commands are hpkit's own
        return process.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

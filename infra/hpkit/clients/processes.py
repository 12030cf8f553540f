"""Runs commands as child processes that end in their own time after an interruption."""

import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["run_attended"]


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

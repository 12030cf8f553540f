"""Runs the steps of a bootstrap: reports their progress, and keeps the log of a failed one."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hpkit.cache import cache_root
from hpkit.errors import ToolError
from hpkit_local.toolchain.cache import Say

__all__ = ["EVERY_SECONDS", "Steps", "spoken", "stop"]

EVERY_SECONDS = 15.0
_BOUND = Path(__file__).with_name("bound.py")
_SHOWN_LINES = 8
_running: set[subprocess.Popen[bytes]] = set()

# Texts in the log that show the cause → the fix.
_REMEDIES = (
    ("no space left on device", "Free some space, or set HPKIT_CACHE, GOCACHE and GOMODCACHE to a larger disk"),
    ("signal: killed", "The build ran out of memory. Close other programs, and run the command again"),
    ("checksum mismatch", "The download doesn't match its pinned hash. Check the module proxy in GOPROXY"),
    ("do not match the hashes", "The download doesn't match its pinned hash. Check the package index in PIP_INDEX_URL"),
    ("no such host", "The package registry can't be reached. Set GOPROXY or PIP_INDEX_URL to a reachable one"),
    ("connection refused", "The package registry can't be reached. Set GOPROXY or PIP_INDEX_URL to a reachable one"),
    ("no matching distribution found", "The registry has no such package for this platform"),
    ("no module named pip", "Install pip into the virtual environment: python -m ensurepip"),
)


@dataclass
class Steps:
    """The steps of one tool, all in one log; `every` is how often a running step reports."""

    tool: str
    say: Say
    every: float = EVERY_SECONDS
    log: Path = field(init=False)

    def __post_init__(self) -> None:
        self.log = cache_root() / "logs" / f"{self.tool}.log"
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.log.write_bytes(b"")

    def run(
        self,
        command: list[str],
        *,
        doing: str,
        cwd: Path,
        env: Mapping[str, str],
        usual_seconds: int,
        done: Callable[[str], str] = lambda _log: "",
        fine: Callable[[str], bool] = lambda _output: False,
    ) -> str:
        """Run a command and return its output; `done` converts the log so far to a progress text.

        `fine` returns whether the output of a failed command is good enough.
        """
        self.say(f"{self.tool}: {doing} (usually {spoken(usual_seconds)})")
        started = time.monotonic()
        with self.log.open("ab") as log:
            log.write(f"$ {' '.join(command)}\n".encode())
            log.flush()
            process = subprocess.Popen(  # noqa: S603 - commands are built from the table of tools
                [sys.executable, "-I", str(_BOUND), str(os.getpid()), *command],
                cwd=cwd,
                env=dict(env),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
            )
            _running.add(process)
            try:
                while True:
                    try:
                        output, _ = process.communicate(timeout=self.every)
                        break
                    except subprocess.TimeoutExpired:
                        self._report(doing, time.monotonic() - started, usual_seconds, done)
            except BaseException:
                process.kill()
                process.communicate()
                raise
            finally:
                _running.discard(process)
            log.write(output)
        printed = output.decode(errors="replace")
        if process.returncode != 0 and not fine(printed):
            raise ToolError(self._failure(doing, process.returncode))
        return printed

    def finish(self) -> None:
        """Delete the log: all steps went well."""
        self.log.unlink(missing_ok=True)

    def _report(self, doing: str, seconds: float, usual: int, done: Callable[[str], str]) -> None:
        so_far = done(self.log.read_text(encoding="utf-8", errors="replace"))
        far = f"{so_far}, " if so_far else ""
        self.say(f"{self.tool}: {doing}: {far}{spoken(round(seconds))} of usually {spoken(usual)}")

    def _failure(self, doing: str, code: int) -> str:
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        ended = f"was killed by signal {-code}" if code < 0 else f"failed with exit code {code}"
        text = "\n".join(lines).lower()
        remedy = next((f"{remedy}. " for sign, remedy in _REMEDIES if sign in text), "")
        shown = "\n".join(f"    {line[:200]}" for line in lines[-_SHOWN_LINES:])
        return f"{self.tool}: {doing} {ended}. {remedy}Whole log: {self.log}\n{shown}"


def stop() -> None:
    """End the steps in other threads, which don't get a Ctrl-C."""
    for process in tuple(_running):
        process.kill()


def spoken(seconds: int) -> str:
    """Return seconds as text for people."""
    return f"{seconds} s" if seconds < 120 else f"{seconds // 60} min {seconds % 60:02} s"

"""The cache of tools, and the steps that fill it: with progress, and with the log of a failed one."""

import fcntl
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from hpkit.cache import cache_root
from hpkit.errors import ToolError
from hpkit_local.toolchain.model import Tool

__all__ = ["EVERY_SECONDS", "Say", "Steps", "installed", "locked", "staging", "stop", "tool_folder"]

Say = Callable[[str], None]

_LOCK_POLL_SECONDS = 0.2
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


def tool_folder(tool: Tool) -> Path:
    """Return where this version of a tool is, or would be."""
    return cache_root() / "tools" / tool.name / tool.version


def installed(tool: Tool) -> Path | None:
    """Return the tool's executable in the cache (for files alone, their folder), if it's complete."""
    folder = tool_folder(tool) / tool.folder
    if not tool.executables:
        return folder if folder.is_dir() else None
    if all(os.access(folder / name, os.X_OK) for name in tool.executables):
        return folder / tool.executables[0]
    return None


@contextmanager
def staging(tool: Tool) -> Iterator[Path]:
    """Yield a folder to fill; it's renamed to its place if the block succeeds, and deleted otherwise.

    The caller holds the tool's lock, so files of an earlier, killed run are deleted.
    """
    final = tool_folder(tool)
    final.parent.mkdir(parents=True, exist_ok=True)
    for left_over in final.parent.glob(".staging-*"):
        shutil.rmtree(left_over)
    stage = final.parent / f".staging-{tool.version}-{os.getpid()}"
    (stage / tool.folder).mkdir(parents=True)
    try:
        yield stage
        if final.exists():
            shutil.rmtree(final)
        stage.rename(final)
    finally:
        shutil.rmtree(stage, ignore_errors=True)


@contextmanager
def locked(name: str, say: Say) -> Iterator[None]:
    """Hold the lock of a name; while another process holds it, report that and wait. It ends with its holder."""
    path = cache_root() / "locks" / name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+", encoding="utf-8")
    except OSError as error:
        raise ToolError(
            f"the tool cache can't be written: {error.filename or path}: {error.strerror}. "
            "Set HPKIT_CACHE to a writable folder"
        ) from None
    with file:
        has_reported = False
        while not _try_lock(file.fileno()):
            file.seek(0)
            # A new holder writes its name into the lock a moment later.
            if not has_reported and (holder := file.read().strip()):
                has_reported = True
                who = "this bootstrap" if holder == str(os.getpid()) else f"another bootstrap (process {holder})"
                say(f"{name}: {who} is installing it; waiting for it")
            time.sleep(_LOCK_POLL_SECONDS)
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        try:
            yield
        finally:
            # The next one's name is not this one's.
            file.truncate(0)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


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

"""The user's cache of tools: one folder per tool and version, written whole or not at all, one writer at a time."""

import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hpkit.cache import cache_root
from hpkit.errors import ToolError
from hpkit_local.toolchain.model import Tool

__all__ = ["Say", "installed", "locked", "staging", "tool_folder"]

Say = Callable[[str], None]

_LOCK_POLL_SECONDS = 0.2


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

"""One command at a time on an instance: the lock contains its holder, and ends with it."""

import datetime
import fcntl
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from io import TextIOWrapper
from pathlib import Path

from hpkit.errors import ToolError
from hpkit_local.supervisor.instance import Instance

__all__ = ["Holder", "exclusive", "holder_of"]

_POLL_SECONDS = 0.1
# A holder writes its name right after it has the lock; one that was halted in between has none.
_NAME_POLLS = 20


class _Held(threading.local):
    """The locks of this thread, so that a command that calls another doesn't wait for itself."""

    def __init__(self) -> None:
        self.paths: set[Path] = set()


_HELD = _Held()


@dataclass(frozen=True)
class Holder:
    """The command that uses an instance."""

    command: str
    pid: int
    since: str

    def __str__(self) -> str:
        return f"`{self.command}` (process {self.pid}, since {self.since})"


@contextmanager
def exclusive(
    instance: Instance,
    command: str,
    *,
    wait: bool = True,
    say: Callable[[str], None] = lambda _: None,
    meanwhile: Callable[[], object] = lambda: None,
) -> Iterator[None]:
    """Let nothing else work on the instance; others see `command` as the reason.

    If another process works on it, report that process and wait, or raise ToolError with it. `meanwhile` is called at
    each check.
    """
    path = _path(instance)
    if path in _HELD.paths:
        yield
        return
    with _locked(instance, path, wait=wait, say=say, meanwhile=meanwhile) as lock:
        now = datetime.datetime.now(tz=datetime.UTC).astimezone()
        json.dump(asdict(Holder(command, os.getpid(), now.isoformat(sep=" ", timespec="seconds"))), lock)
        lock.flush()
        _HELD.paths.add(path)
        try:
            yield
        finally:
            _HELD.paths.discard(path)
            path.unlink(missing_ok=True)


def holder_of(instance: Instance) -> Holder | None:
    """Return the holder that is written in the lock; it might have died since."""
    try:
        return Holder(**json.loads(_path(instance).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _path(instance: Instance) -> Path:
    """Return the lock next to the instance's folder, because a reset deletes the folder."""
    return instance.folder.with_name(f"{instance.name}.lock")


def _locked(
    instance: Instance, path: Path, *, wait: bool, say: Callable[[str], None], meanwhile: Callable[[], object]
) -> TextIOWrapper:
    path.parent.mkdir(parents=True, exist_ok=True)
    reported: Holder | None = None
    polls = 0
    while True:
        lock = path.open("a+", encoding="utf-8")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            polls += 1
            holder = holder_of(instance)
            if not wait and (holder or polls > _NAME_POLLS):
                raise ToolError(
                    f"{holder or 'another command'} is using the local cloud {instance.name}. Wait until it is "
                    "done, or omit --no-wait"
                ) from None
            if holder not in (None, reported):
                reported = holder
                say(f"waiting for {holder}, which is using the local cloud {instance.name}")
            meanwhile()
            time.sleep(_POLL_SECONDS)
            continue
        if _is_there(path, lock):
            lock.truncate(0)
            return lock
        # The holder before deleted the file while this one opened it.
        lock.close()


def _is_there(path: Path, lock: TextIOWrapper) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(lock.fileno()))
    except FileNotFoundError:
        return False

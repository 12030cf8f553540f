"""The folder that an organization file and its other files are in: on disk, at a commit, or with changed texts.

It doesn't follow symbolic links. It doesn't check names either: callers reject names that lead out of the folder.
"""

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from hpkit.config.reading.load import MAX_BYTES, read_file
from hpkit.errors import InputError, ToolError

if TYPE_CHECKING:
    import subprocess

__all__ = ["DiskFolder", "Entry", "Folder", "GitFolder", "run_git"]

Entry = Literal["file", "folder", "link", "other"]
_GIT_MODES: Mapping[str, Entry] = {"100644": "file", "100755": "file", "040000": "folder", "120000": "link"}
_SECONDS = 60


class Folder(Protocol):
    """A folder whose files can be listed and read, by their names relative to it."""

    def entries(self, under: str) -> Mapping[str, Entry]:
        """Return the direct contents of a folder within this one; "" for this one."""

    def contents(self, names: Sequence[str]) -> Iterator[bytes]:
        """Yield the contents of each file. Raises InputError if a file can't be read."""


@dataclass(frozen=True, slots=True)
class DiskFolder:
    """A folder of the file system."""

    path: Path

    def entries(self, under: str) -> Mapping[str, Entry]:
        """Return the direct contents of a folder within this one."""
        try:
            with os.scandir(self.path / under) as found:
                return {each.name: _entry(each.stat(follow_symlinks=False).st_mode) for each in found}
        except OSError:
            return {}

    def contents(self, names: Sequence[str]) -> Iterator[bytes]:
        """Yield the contents of each file."""
        for name in names:
            yield read_file(self.path / name)


def _entry(mode: int) -> Entry:
    if stat.S_ISLNK(mode):
        return "link"
    return "file" if stat.S_ISREG(mode) else "folder" if stat.S_ISDIR(mode) else "other"


@dataclass(frozen=True, slots=True)
class GitFolder:
    """A folder as a commit has it. root: a folder of the work tree; under: the folder, relative to root."""

    root: Path
    commit: str
    under: str

    def entries(self, under: str) -> Mapping[str, Entry]:
        """Return the direct contents of a folder within this one."""
        path = f"{self.under}/{under}".rstrip("/")
        listed = run_git(self.root, "ls-tree", "-z", "--end-of-options", self.commit, f"{path}/")
        lines = listed.stdout.decode("utf-8", "surrogateescape").split("\0") if listed.returncode == 0 else []
        found = [line.partition("\t") for line in lines if line]
        return {name.rpartition("/")[2]: _GIT_MODES.get(about[:6], "other") for about, _, name in found}

    def contents(self, names: Sequence[str]) -> Iterator[bytes]:
        """Yield the contents of each file, using a single process."""
        if any("\n" in name for name in names):
            raise InputError(f"the names of files in {self.under} contain line breaks")
        wanted = "".join(f"{self.commit}:./{self.under}/{name}\n" for name in names)
        answer = run_git(self.root, "cat-file", "--batch", text=wanted).stdout
        position = 0
        for name in names:
            end = answer.find(b"\n", position)
            about = answer[position:end].split(b" ")
            if end < 0 or len(about) < 3 or about[-2] != b"blob":
                raise InputError(f"{self.under}/{name} can't be read at {self.commit}")
            size = int(about[-1])
            yield answer[end + 1 : end + 1 + min(size, MAX_BYTES + 1)]
            position = end + 1 + size + 1


def run_git(folder: Path, *arguments: str, text: str | None = None) -> "subprocess.CompletedProcess[bytes]":
    """Return git's output in a folder, with a text as input. Raises ToolError if it can't run or takes too long.

    Callers change nothing, and run no external diff or text conversion programs.
    """
    import subprocess  # imported here, because only reviews need it and every command loads this module

    # Locking the index would disturb others who work in the same tree.
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    try:
        return subprocess.run(  # noqa: S603 - fixed program, arguments in a list, references behind --end-of-options
            ["git", "-c", "core.quotePath=false", *arguments],  # noqa: S607 - the user's own git
            cwd=folder,
            env=environment,
            input=None if text is None else text.encode("utf-8", "surrogateescape"),
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        raise ToolError("git isn't installed; install it, because hpkit reads files at other commits with it") from None
    except subprocess.TimeoutExpired:
        raise ToolError(f"git {arguments[0]} took longer than {_SECONDS} seconds") from None

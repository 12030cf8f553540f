"""Git's data about a change: the base commit, changed files, and their previous contents.

It doesn't change the repository or the index; external diff and text conversion programs are never run.
"""

import subprocess
from dataclasses import dataclass
from pathlib import Path

import click

from hpkit.config.reading.folder import run_git
from hpkit.errors import ToolError

__all__ = ["Base", "changed_files", "content_at", "files_at", "find_base"]

_DEFAULTS = ("origin/main", "main", "origin/HEAD")


@dataclass(frozen=True, slots=True)
class Base:
    """The commit that a change is compared with: ref: what the user named; commit: the merge base."""

    ref: str
    commit: str


def find_base(folder: Path, ref: str | None) -> Base:
    """Return where HEAD left the reference (default: origin/main or main).

    Raises click.UsageError for a reference that is not there, ToolError where git cannot say.
    """
    inside = run_git(folder, "rev-parse", "--git-dir")
    if inside.returncode != 0:
        raise ToolError(
            f"{folder} isn't in a git repository, so there is nothing to compare with: {_last_words(inside)}"
        )
    wanted = (ref,) if ref is not None else _DEFAULTS
    for name in wanted:
        commit = _git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        if commit is None:
            continue
        merge_base = _git(folder, "merge-base", "--end-of-options", commit.strip(), "HEAD")
        if merge_base is None:
            raise ToolError(
                f"{name} and HEAD have no commit in common; in CI, check out the full history (fetch-depth: 0)"
            )
        return Base(name, merge_base.strip())
    if ref is None:
        raise click.UsageError(f"none of {', '.join(_DEFAULTS)} exists here; name the base with --base, or fetch it")
    raise click.UsageError(f"git has no commit `{ref}`; fetch it, or name another with --base")


def changed_files(folder: Path, base: Base) -> list[str]:
    """Return files that differ between base and the working tree, untracked ones included, relative to folder."""
    differing = _need(
        folder,
        "diff",
        "--no-ext-diff",
        "--no-textconv",
        "--no-renames",
        "--relative",
        "--name-only",
        "-z",
        base.commit,
        "--",
    )
    untracked = _need(folder, "ls-files", "--others", "--exclude-standard", "-z")
    return sorted({name for text in (differing, untracked) for name in text.split("\0") if name})


def files_at(folder: Path, base: Base, under: str) -> list[str]:
    """Return the names of the files directly in a folder, as the base has them, relative to folder."""
    listed = _need(folder, "ls-tree", "--name-only", "-z", "--end-of-options", base.commit, f"{under}/")
    return sorted(name for name in listed.split("\0") if name)


def content_at(folder: Path, base: Base, name: str) -> bytes | None:
    """Return a file's contents at the base; None if it didn't exist."""
    result = run_git(folder, "cat-file", "blob", f"{base.commit}:./{name}")
    return result.stdout if result.returncode == 0 else None


def _git(folder: Path, *arguments: str) -> str | None:
    result = run_git(folder, *arguments)
    return result.stdout.decode("utf-8", "surrogateescape") if result.returncode == 0 else None


def _need(folder: Path, *arguments: str) -> str:
    result = run_git(folder, *arguments)
    if result.returncode != 0:
        raise ToolError(f"git {arguments[0]} failed: {_last_words(result)}")
    return result.stdout.decode("utf-8", "surrogateescape")


def _last_words(result: subprocess.CompletedProcess[bytes]) -> str:
    said = result.stderr.decode("utf-8", "replace").strip().splitlines()
    return said[0].removeprefix("fatal: ") if said else "no output"

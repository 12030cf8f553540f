"""Hashes a chart in the repository, and compares it with the hash in an organization file.

It doesn't read the chart's contents. Apart from `load`, this is the only module in this package that opens files.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from hpkit.config.models.cluster import Dependencies
from hpkit.config.models.organization import Organization
from hpkit.config.reading.document import Path as ValuePath
from hpkit.config.reading.document import Problem
from hpkit.errors import InputError

__all__ = ["chart_hash", "chart_problems", "contents_hash"]

_GIT = ".git"
# sha256sum writes these in another form, and a line break could make one name look like two.
_REJECTED_IN_NAMES = ("\\", "\n", "\r")


def chart_hash(chart: str | os.PathLike[str]) -> str:
    """Return the sha256 of a chart, in hexadecimal.

    For a packed chart (.tgz), it is the hash of its bytes. For a folder, it is the hash of the list that `sha256sum`
    writes for all its files, sorted by path, without .git at its top. Modes, times and empty folders don't matter:

        find -L . -path ./.git -prune -o -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum

    Raises InputError for missing or unreadable files, and for links that leave the folder or lead to one.
    """
    path = Path(chart)
    try:
        if path.is_dir():
            return _listing_hash((name, _file_hash(file)) for name, file in _files(path))
        if path.is_file():
            return _file_hash(path)
    except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: a link to itself, before Python 3.13
        raise InputError(f"{chart}: {error}") from None
    raise InputError(f"{chart}: neither a folder nor a file; name the chart's folder, or its .tgz")


def contents_hash(files: Mapping[str, bytes]) -> str:
    """Return the `chart_hash` of a folder with these files, by path."""
    return _listing_hash((os.fsencode(name), hashlib.sha256(content).hexdigest()) for name, content in files.items())


def chart_problems(root: Path, organization: Organization) -> tuple[Problem, ...]:
    """Return the problems of an organization's charts in the repository at root (CLU011)."""
    return tuple(
        problem
        for name, environment in sorted(organization.environments.items())
        for problem in _problems_of(
            root, environment.cluster.dependencies, ("environments", name, "cluster", "dependencies")
        )
    )


def _problems_of(root: Path, dependencies: Dependencies, path: ValuePath) -> Iterator[Problem]:
    """Yield the problems of one chart, whose `dependencies` are at path; nothing for a chart in a registry."""
    if dependencies.chart is None or not dependencies.is_in_repository:
        return
    place = (*path, "chart")
    try:
        # Resolved: a link that leads out of the repository is outside of it.
        chart = (root / dependencies.chart).resolve()
        inside = not Path(dependencies.chart).is_absolute() and chart.is_relative_to(root.resolve())
        is_chart = chart.is_file() or (chart / "Chart.yaml").is_file()
    except (OSError, ValueError, RuntimeError) as error:
        yield Problem("CLU011", place, f"the chart {dependencies.chart!r} can't be read: {error}", "Fix the path.")
        return
    if not inside:
        yield Problem(
            "CLU011",
            place,
            f"the chart {dependencies.chart} isn't in the repository",
            "Copy it into the repository, and use its path relative to Pulumi.yaml. Or use an `oci://` reference.",
        )
        return
    if not is_chart:
        why = ": the folder has no Chart.yaml" if chart.is_dir() else ""
        yield Problem(
            "CLU011",
            place,
            f"the chart {dependencies.chart} doesn't exist{why}",
            "Use the path of a chart's folder or .tgz, relative to Pulumi.yaml, or an `oci://` reference.",
        )
        return
    try:
        actual_sha256 = chart_hash(chart)
    except InputError as error:
        yield Problem("CLU011", place, f"the chart {dependencies.chart} can't be hashed: {error}", "Fix the chart.")
        return
    if dependencies.sha256 is not None and actual_sha256 != dependencies.sha256:
        yield Problem(
            "CLU011",
            (*path, "sha256"),
            f"the chart {dependencies.chart} has the sha256 {actual_sha256}, but the file sets {dependencies.sha256}",
            f"Review the changes to the chart, then set `sha256: {actual_sha256}`.",
        )


def _listing_hash(listed: Iterable[tuple[bytes, str]]) -> str:
    whole = hashlib.sha256()
    for name, sha256 in sorted(listed):
        whole.update(f"{sha256}  ./".encode() + name + b"\n")
    return whole.hexdigest()


def _files(folder: Path) -> Iterator[tuple[bytes, Path]]:
    """Yield every file with its path inside the folder, as the bytes that the file system has."""
    root = folder.resolve()
    todo = [folder]
    while todo:
        for entry in todo.pop().iterdir():
            inside = entry.relative_to(folder)
            if inside == Path(_GIT):
                continue
            if any(character in entry.name for character in _REJECTED_IN_NAMES):
                raise InputError(f"{os.fspath(inside)!r}: a backslash or line break in a name; rename the file")
            if entry.is_symlink():
                _check_link(entry, inside, root)
            if entry.is_dir():
                todo.append(entry)
            elif entry.is_file():
                yield os.fsencode(inside.as_posix()), entry
            else:
                raise InputError(f"{inside}: neither a file nor a folder; remove it from the chart")


def _check_link(link: Path, inside: Path, root: Path) -> None:
    target = link.resolve()
    if not target.is_relative_to(root) or target.is_relative_to(root / _GIT):
        raise InputError(
            f"{inside}: a link that leads out of the chart ({link.readlink()}); put a copy of the file there"
        )
    if target.is_dir():
        raise InputError(f"{inside}: a link to a folder ({link.readlink()}); put a copy of the folder there")


def _file_hash(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()

"""The local clouds of a repository, and the ones that a command without a name can use."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from hpkit.errors import SelectionError, ToolError
from hpkit.program.teardown import resources_in
from hpkit_local.processes import Identity
from hpkit_local.supervisor.local_cloud import LocalCloud, State

__all__ = [
    "Overview",
    "StackThere",
    "Usage",
    "candidates",
    "local_clouds",
    "overviews",
    "reads_of",
    "resources_of",
    "stacks_of",
    "stacks_up",
    "the_only",
    "usage_of",
]

_UNREADABLE = (OSError, ValueError, KeyError, TypeError, AttributeError)


@dataclass(frozen=True)
class StackThere:
    """A stack that Pulumi knows on a local cloud.

    resources: how many it has. region: "" if it isn't known. unfinished: how many a killed run began to create.
    """

    name: str
    resources: int
    region: str
    unfinished: int = 0


def stacks_of(cloud: LocalCloud) -> list[StackThere]:
    """Return the stacks that Pulumi knows there, including empty ones.

    The files are those of Pulumi's own backend for folders: `.pulumi/stacks/<project>/<stack>.json`
    (https://www.pulumi.com/docs/iac/concepts/state-and-backends/#local-filesystem).
    """
    folder = cloud.state_folder / ".pulumi" / "stacks"
    found = (_read(file) for file in sorted(folder.glob("*/*.json")))
    return [each for each in found if each is not None]


def stacks_up(cloud: LocalCloud) -> list[StackThere]:
    """Return the stacks that have something there."""
    return [each for each in stacks_of(cloud) if each.resources]


def reads_of(cloud: LocalCloud, stack: str) -> frozenset[str]:
    """Return the URNs of what the stack's program only reads, as of the last change of the stack."""
    return frozenset(str(each["urn"]) for each in resources_of(cloud, stack) if each.get("external"))


def resources_of(cloud: LocalCloud, stack: str) -> list[dict[str, Any]]:
    """Return the resources in a stack's state; none if it can't be read."""
    for file in (cloud.state_folder / ".pulumi" / "stacks").glob(f"*/{stack}.json"):
        with suppress(*_UNREADABLE):
            return _latest(file).get("resources") or []
    return []


def _latest(file: Path) -> dict[str, Any]:
    checkpoint = json.loads(file.read_text(encoding="utf-8"))["checkpoint"]
    # `pulumi stack import` writes it in capitals (Pulumi 3.200), because Go's decoder ignores case.
    return checkpoint.get("latest") or checkpoint.get("Latest") or {}


def _read(file: Path) -> StackThere | None:
    try:
        latest = _latest(file)
        resources = latest.get("resources") or []
        pending = [each for each in latest.get("pending_operations") or () if each["type"] == "creating"]
        providers = [each for each in resources if each.get("type") == "pulumi:providers:aws"]
        regions = [each.get("inputs", {}).get("region") for each in providers]
        region = next((str(each) for each in regions if each), "")
        return StackThere(file.stem, len(resources_in(resources)), region, len(pending))
    except _UNREADABLE:
        # Another version of Pulumi might write another format; Pulumi itself is called before any change.
        return None


DEFAULT = "default"


@dataclass(frozen=True)
class Overview:
    """A local cloud's state: `problem` is why its record can't be read; state is None if it doesn't run."""

    cloud: LocalCloud
    state: State | None
    stacks: list[StackThere]
    problem: str = ""

    @property
    def may_run(self) -> bool:
        """Return whether it runs, or that isn't known."""
        return self.state is not None or bool(self.problem)


def local_clouds(root: Path) -> list[LocalCloud]:
    """Return all local clouds of the repository, by name."""
    folders = sorted(each for each in (root / ".local").glob("*") if each.is_dir() and LocalCloud.fits(each.name))
    return [LocalCloud.named(each.name, root=root) for each in folders]


def overviews(root: Path) -> list[Overview]:
    """Return the state of each local cloud in the repository."""
    return [_overview(each) for each in local_clouds(root)]


def candidates(root: Path) -> list[Overview]:
    """Return the local clouds that a command without --name could use: those that run, else all."""
    found = overviews(root)
    return [each for each in found if each.may_run] or found


def the_only(root: Path, *, command: str) -> LocalCloud:
    """Return the only running local cloud, else the only existing one, else `default`, which doesn't exist yet.

    Raises SelectionError with the commands to choose from when several fit.
    """
    fitting = candidates(root)
    if not fitting:
        return LocalCloud.named(DEFAULT, root=root)
    if len(fitting) == 1:
        return fitting[0].cloud
    lines = [_line(command, each) for each in fitting]
    what = "local clouds run here" if fitting[0].may_run else "local clouds exist, but none is running"
    raise SelectionError("\n  ".join([f"{len(lines)} {what}; choose one:", *lines]))


def _line(command: str, overview: Overview) -> str:
    stacks = ", ".join(each.name for each in overview.stacks)
    return f"{command} --name {overview.cloud.name}    # {f'stack {stacks}' if stacks else 'no stack'}"


def _overview(cloud: LocalCloud) -> Overview:
    try:
        return Overview(cloud, cloud.running(), stacks_up(cloud))
    except ToolError as error:
        return Overview(cloud, None, stacks_up(cloud), problem=str(error))


@dataclass(frozen=True)
class Usage:
    """Memory in bytes, and processor time in seconds since the start.

    On Linux, memory is the PSS: each process gets its part of a shared page. The sum over processes is then what they
    use together. On other systems, memory is the resident size.
    """

    memory: int = 0
    cpu_seconds: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.memory + other.memory, self.cpu_seconds + other.cpu_seconds)


def usage_of(identity: Identity, *, family: bool = True) -> Usage:
    """Return a process's usage, with its children unless `family` is false; nothing if it has ended."""
    if not identity.alive():
        return Usage()
    try:
        process = psutil.Process(identity.pid)
        members = [process, *(process.children(recursive=True) if family else [])]
    except psutil.Error:
        return Usage()
    return sum((_process_usage(each) for each in members), Usage())


def _process_usage(process: psutil.Process) -> Usage:
    try:
        with process.oneshot():
            return Usage(_memory(process), sum(process.cpu_times()[:2]))
    except psutil.Error:
        return Usage()


def _memory(process: psutil.Process) -> int:
    try:
        whole = process.memory_full_info()
    except psutil.AccessDenied:  # A hardened Linux shows a process's pages to its own kind only.
        return process.memory_info().rss
    return getattr(whole, "pss", whole.rss)

"""Loads what optional packages add to hpkit, by their entry points.

hpkit never imports `hpkit_local` or `hpkit_whatif`. Each declares in its metadata what it adds: commands, and the
functions below. If a feature requires a package that isn't installed, the error explains how to install it.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from hpkit.errors import ToolError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["extension", "is_installed", "need", "optional_command"]

_REQUIREMENT: Final = re.compile(r"""(?P<name>[\w.-]+).*;.*\bextra\s*==\s*["'](?P<extra>[\w.-]+)["']""")
# Entry points of the group "hpkit.extensions" → the extra that provides them.
_EXTRAS: Final = {
    "simulator": "whatif",  # (model, workloads, now=) → the simulator of Kueue's admission
    "scenario-changes": "whatif",  # (stacks, file) → the effect of a change on a scenario's tasks
    "scenario-schema": "whatif",  # () → the JSON Schema of scenario files
    "stack-environment": "local",  # (repository, stack, environment) → the environment of the local cloud that runs it
    "local-clouds": "local",  # (repository) → the local clouds that a command can use, with their stacks
    "search-path": "local",  # (*tools) → a PATH that begins with their folders
    "tool-path": "local",  # (tool) → its executable; ToolError if it's missing
}


def is_installed(name: str) -> bool:
    """Return whether the package that provides an entry point is installed."""
    return _find("hpkit.extensions", name) is not None


def extension(name: str) -> Any:
    """Return what an optional package adds. Raises ToolError, with how to install it, if it's missing."""
    entry_point = _find("hpkit.extensions", name)
    if entry_point is None:
        raise ToolError(_missing(_EXTRAS[name]))
    return entry_point.load()


def optional_command(name: str, extra: str) -> Any:
    """Return the command that an extra's package adds. Raises ToolError, with how to install it, if it's missing."""
    entry_point = _find("hpkit.commands", name)
    if entry_point is None:
        raise ToolError(f"`hpkit {name}`: {_missing(extra)}")
    return entry_point.load()


@cache
def _find(group: str, name: str) -> EntryPoint | None:
    from importlib.metadata import entry_points  # takes longer to load than everything else that --help requires

    return next(iter(entry_points(group=group, name=name)), None)


def _missing(extra: str) -> str:
    return f"this command requires a package that isn't installed. Install it: pip install 'hpkit[{extra}]'"


def need(extra: str, *, feature: str) -> None:
    """Raise ToolError, with how to install it, if a package of an extra is missing; `feature` requires it."""
    lacking = [name for name in _packages(extra) if not _here(name)]
    if lacking:
        raise ToolError(
            f"{feature} requires packages that aren't installed: {', '.join(lacking)}. "
            f"Install them: pip install 'hpkit[{extra}]'"
        )


def _packages(extra: str) -> list[str]:
    """Return what the package's metadata lists for an extra; nothing if the package runs without being installed."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        requires = distribution("hpkit").requires or ()
    except PackageNotFoundError:
        return []
    found = (_REQUIREMENT.match(line) for line in requires)
    return [each["name"] for each in found if each is not None and each["extra"] == extra]


def _here(name: str) -> bool:
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True

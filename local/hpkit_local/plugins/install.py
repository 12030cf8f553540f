"""Puts the fake plugins where the Pulumi engine looks for installed ones: the PULUMI_HOME of a local cloud.

Does not: touch PATH or any other PULUMI_HOME. A stack that targets AWS never meets a fake plugin.
"""

import os
import shlex
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import hpkit
import hpkit_local
from hpkit.errors import ToolError

__all__ = ["PACKAGES", "install"]

PACKAGES = ("aws", "kubernetes")
_MODE = 0o755


def install(pulumi_home: Path) -> None:
    """Write a launcher for each package, of the version that the installed SDK asks the engine for."""
    for package in PACKAGES:
        folder = pulumi_home / "plugins" / f"resource-{package}-v{_sdk_version(package)}"
        _write(folder / f"pulumi-resource-{package}", _launcher(package))


def _sdk_version(package: str) -> str:
    try:
        return version(f"pulumi_{package}")
    except PackageNotFoundError:
        raise ToolError(f"the Python package pulumi-{package} isn't installed. Install it: make install") from None


def _launcher(package: str) -> str:
    """Return the script: this Python, and this repository's modules before any others (-P: not the program's)."""
    folders = os.pathsep.join(
        dict.fromkeys(str(Path(file).parents[1]) for file in (hpkit_local.__file__, hpkit.__file__))
    )
    return (
        "#!/bin/sh\n"
        f"# The local cloud's fake of the resource plugin `{package}`.\n"
        f"PYTHONPATH={shlex.quote(folders)} exec {shlex.quote(sys.executable)} "
        f'-P -m hpkit_local.plugins.{package} "$@"\n'
    )


def _write(path: Path, text: str) -> None:
    """Replace the file in one step when it says something else, so that a start under way never meets half of it."""
    if path.is_file() and path.read_text(encoding="utf-8") == text and os.access(path, os.X_OK):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f".{path.name}.{os.getpid()}")
    half.write_text(text, encoding="utf-8")
    half.chmod(_MODE)
    half.replace(path)

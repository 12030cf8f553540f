"""Finds each tool: on PATH if its version fits, otherwise in the cache."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hpkit.errors import ToolError
from hpkit_local.toolchain.model import Tool, Version, parse
from hpkit_local.toolchain.steps import installed, tool_folder
from hpkit_local.toolchain.table import tool_named

__all__ = ["Found", "ask_version", "expected_path", "locate", "search_path", "tool_path"]

_ASK_SECONDS = 20


@dataclass(frozen=True)
class Found:
    """A tool's path; `passed_over` is why one on PATH isn't used."""

    tool: Tool
    source: Literal["PATH", "cache", "missing"]
    path: Path | None = None
    version: str = ""
    passed_over: str = ""


def locate(tool: Tool) -> Found:
    """Return where a tool is; a version on PATH that does not fit is passed over, not an error."""
    passed_over = ""
    on_path = shutil.which(tool.executables[0]) if tool.ask else None
    if on_path is not None:
        folder = Path(on_path).parent
        version = ask_version(folder / (tool.ask_of or tool.executables[0]), tool.ask)
        lacking = [name for name in tool.executables if not os.access(folder / name, os.X_OK)]
        if version is None:
            passed_over = f"{on_path} doesn't print its version"
        elif tool.fits and version not in tool.fits:
            passed_over = f"{on_path} is {version}, wanted {tool.fits}"
        elif lacking:
            passed_over = f"{on_path} has no {lacking[0]} next to it"
        else:
            return Found(tool, "PATH", path=Path(on_path), version=str(version))
    cached = installed(tool)
    if cached is not None:
        return Found(tool, "cache", path=cached, version=tool.version, passed_over=passed_over)
    return Found(tool, "missing", passed_over=passed_over)


def tool_path(name: str) -> Path:
    """Return the executable of a tool, or the folder of its files; ToolError with the remedy if it is not here."""
    located = locate(tool_named(name))
    if located.path is None:
        because = f" ({located.passed_over})" if located.passed_over else ""
        raise ToolError(
            f"{name} {located.tool.version} isn't installed{because}. To install it: hpkit local doctor --fix"
        )
    return located.path


def expected_path(name: str) -> Path:
    """Return where a named tool is in the cache, or will be once it is there."""
    tool = tool_named(name)
    return tool_folder(tool) / tool.folder / tool.executables[0]


def search_path(*names: str) -> str:
    """Return a PATH on which the named tools come first, for processes that look for them by name."""
    folders = [str(tool_path(name).parent) for name in names]
    return os.pathsep.join([*dict.fromkeys(folders), os.environ.get("PATH", os.defpath)])


def ask_version(executable: Path, arguments: tuple[str, ...]) -> Version | None:
    """Run an executable for its version; None if it does not start, fails or names none."""
    try:
        answer = subprocess.run(  # noqa: S603 - the user's tool on PATH, to get its version
            [executable, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_ASK_SECONDS,
            check=False,
            # Getting the version must not use the network or switch to another toolchain.
            env={**os.environ, "PULUMI_SKIP_UPDATE_CHECK": "true", "GOTOOLCHAIN": "local"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse(answer.stdout or answer.stderr) if answer.returncode == 0 else None

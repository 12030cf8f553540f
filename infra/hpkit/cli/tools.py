"""The outside tools of a command: those that `hpkit local doctor` shows, wherever they are; else those of PATH."""

import os
import sys
from pathlib import Path

from hpkit.extensions import extension, is_installed

__all__ = ["pulumi_environment"]


def pulumi_environment() -> dict[str, str]:
    """Return the environment in which `pulumi` and its language host are those that `hpkit local doctor` shows.

    Without the local cloud's package they are those of PATH. The engine finds its `hyperpod` plugin there too, next to
    this Python. Raises ToolError, with how to get it, for a tool that is missing.
    """
    found = is_installed("search-path")
    path = extension("search-path")("pulumi", "pulumi-language-python") if found else os.environ.get("PATH", "")
    return {**os.environ, "PATH": os.pathsep.join([str(Path(sys.executable).parent), path])}

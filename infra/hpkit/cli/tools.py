"""A command's external tools: those that `hpkit local doctor` shows, otherwise those on PATH."""

import os
import sys
from pathlib import Path

from hpkit.extensions import extension, is_installed

__all__ = ["pulumi_environment"]


def pulumi_environment() -> dict[str, str]:
    """Return an environment whose `pulumi` and language host are those that `hpkit local doctor` shows.

    Without the local cloud's package, they are those on PATH. The engine also finds its `hyperpod` plugin there, next
    to this Python. Raises ToolError, with how to install it, for a missing tool.
    """
    found = is_installed("search-path")
    path = extension("search-path")("pulumi", "pulumi-language-python") if found else os.environ.get("PATH", "")
    return {**os.environ, "PATH": os.pathsep.join([str(Path(sys.executable).parent), path])}

"""A command's external tools: those that `hpkit local doctor` shows, otherwise those on PATH."""

import os
import shutil
import sys
from pathlib import Path

from hpkit.errors import ToolError
from hpkit.extensions import extension, is_installed

__all__ = ["pulumi_environment"]


def pulumi_environment() -> dict[str, str]:
    """Return an environment whose `pulumi` and language host are those that `hpkit local doctor` shows.

    Without the local cloud's package, they are those on PATH. The engine also finds its `hyperpod` plugin there, next
    to this Python. Raises ToolError, with how to install it, for a missing tool.
    """
    found = is_installed("search-path")
    path = extension("search-path")("pulumi", "pulumi-language-python") if found else os.environ.get("PATH", "")
    path = os.pathsep.join([str(Path(sys.executable).parent), path])
    if shutil.which("pulumi", path=path) is None:
        raise ToolError("Pulumi isn't on PATH. Install it: https://www.pulumi.com/docs/install/")
    return {**os.environ, "PATH": path}

"""The outside tools of a command: those that `hpkit local doctor` shows, wherever they are; else those of PATH."""

import os

from hpkit.extensions import extension, is_installed

__all__ = ["pulumi_environment"]


def pulumi_environment() -> dict[str, str]:
    """Return the environment in which `pulumi` and its language host are those that `hpkit local doctor` shows.

    Without the local cloud's package they are those of PATH. Raises ToolError, with how to get it, for a tool that is
    missing.
    """
    if not is_installed("search-path"):
        return dict(os.environ)
    return {**os.environ, "PATH": extension("search-path")("pulumi", "pulumi-language-python")}

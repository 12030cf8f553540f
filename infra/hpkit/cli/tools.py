"""The outside tools of a command: those that `hpkit doctor` shows, wherever they are."""

import os

__all__ = ["pulumi_environment"]


def pulumi_environment() -> dict[str, str]:
    """Return the environment in which `pulumi` and its language host are those that `hpkit doctor` shows.

    Raises ToolError, with how to get it, for a tool that is missing.
    """
    from hpkit_local.cloud import search_path

    return {**os.environ, "PATH": search_path("pulumi", "pulumi-language-python")}

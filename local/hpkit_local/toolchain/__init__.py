"""Outside tools of the local cloud: where they are, and how they get here.

Kept by version in the user's cache, so that a fresh clone of the repository builds nothing twice.
"""

from hpkit_local.toolchain.bootstrap import get, get_all
from hpkit_local.toolchain.locate import Found, expected_path, locate, search_path, tool_path
from hpkit_local.toolchain.table import GO, KUBERNETES_MINOR, TOOL_NAMES, TOOLS

__all__ = [
    "GO",
    "KUBERNETES_MINOR",
    "TOOLS",
    "TOOL_NAMES",
    "Found",
    "expected_path",
    "get",
    "get_all",
    "locate",
    "search_path",
    "tool_path",
]

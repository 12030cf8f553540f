"""External tools of the local cloud: finding and installing them.

They are kept by version in the user's cache, so that a new clone of the repository builds nothing again.
"""

from hpkit_local.toolchain.bootstrap import get, get_all
from hpkit_local.toolchain.locate import Found, expected_path, locate, search_path, tool_path
from hpkit_local.toolchain.table import GO, KUBERNETES_MINOR, TOOL_NAMES, TOOLS, emulated_version

__all__ = [
    "GO",
    "KUBERNETES_MINOR",
    "TOOLS",
    "TOOL_NAMES",
    "Found",
    "emulated_version",
    "expected_path",
    "get",
    "get_all",
    "locate",
    "search_path",
    "tool_path",
]

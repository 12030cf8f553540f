"""The local cloud's functions for commands: the only module of this package that others import.

Each name is imported on first use: `hpkit local doctor` needs only the tools, and none of the packages that a
supervisor needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hpkit_local.rehearsal.jobs import team_objects
    from hpkit_local.rehearsal.session import rehearsal
    from hpkit_local.supervisor import control
    from hpkit_local.supervisor.control import VARIABLES
    from hpkit_local.supervisor.existing import create_existing
    from hpkit_local.supervisor.local_cloud import LocalCloud, exclusive
    from hpkit_local.supervisor.local_clouds import (
        Overview,
        Usage,
        candidates,
        local_clouds,
        overviews,
        resources_of,
        stacks_of,
        stacks_up,
        the_only,
        usage_of,
    )
    from hpkit_local.supervisor.pulumi_run import EngineEvents, ResourceChange, Work
    from hpkit_local.supervisor.pulumi_stack import Stack
    from hpkit_local.toolchain import GO, TOOL_NAMES, TOOLS, get_all, locate

__all__ = [
    "GO",
    "TOOLS",
    "TOOL_NAMES",
    "VARIABLES",
    "EngineEvents",
    "LocalCloud",
    "Overview",
    "ResourceChange",
    "Stack",
    "Usage",
    "Work",
    "candidates",
    "control",
    "create_existing",
    "exclusive",
    "get_all",
    "local_clouds",
    "locate",
    "overviews",
    "rehearsal",
    "resources_of",
    "stacks_of",
    "stacks_up",
    "team_objects",
    "the_only",
    "usage_of",
]

_MODULES = {
    "rehearsal.jobs": ("team_objects",),
    "rehearsal.session": ("rehearsal",),
    "supervisor.control": ("VARIABLES",),
    "supervisor.existing": ("create_existing",),
    "supervisor.local_cloud": ("LocalCloud", "exclusive"),
    "supervisor.local_clouds": (
        *("Overview", "Usage", "candidates", "local_clouds", "overviews", "stacks_of", "stacks_up", "the_only"),
        *("resources_of", "usage_of"),
    ),
    "supervisor.pulumi_run": ("EngineEvents", "ResourceChange", "Work"),
    "supervisor.pulumi_stack": ("Stack",),
    "toolchain": ("GO", "TOOLS", "TOOL_NAMES", "get_all", "locate"),
}


def __getattr__(name: str) -> Any:
    if name == "control":
        return import_module("hpkit_local.supervisor.control")
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"hpkit_local.{module}"), name)
    raise AttributeError(f"module {__name__} has no attribute {name}")

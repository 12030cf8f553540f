"""The local cloud's functions for commands: the only module of this package that others import.

Each name is imported on first use: `hpkit local doctor` needs only the tools, and none of the packages that a
supervisor needs.
"""

from pkgutil import resolve_name
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
    "stacks_of",
    "stacks_up",
    "team_objects",
    "the_only",
    "usage_of",
]

_SOURCES = {
    "GO": "hpkit_local.toolchain:GO",
    "TOOLS": "hpkit_local.toolchain:TOOLS",
    "TOOL_NAMES": "hpkit_local.toolchain:TOOL_NAMES",
    "VARIABLES": "hpkit_local.supervisor.control:VARIABLES",
    "EngineEvents": "hpkit_local.supervisor.pulumi_run:EngineEvents",
    "ResourceChange": "hpkit_local.supervisor.pulumi_run:ResourceChange",
    "Work": "hpkit_local.supervisor.pulumi_run:Work",
    "LocalCloud": "hpkit_local.supervisor.local_cloud:LocalCloud",
    "Overview": "hpkit_local.supervisor.local_clouds:Overview",
    "Stack": "hpkit_local.supervisor.pulumi_stack:Stack",
    "Usage": "hpkit_local.supervisor.local_clouds:Usage",
    "control": "hpkit_local.supervisor.control",
    "create_existing": "hpkit_local.supervisor.existing:create_existing",
    "exclusive": "hpkit_local.supervisor.local_cloud:exclusive",
    "get_all": "hpkit_local.toolchain:get_all",
    "local_clouds": "hpkit_local.supervisor.local_clouds:local_clouds",
    "locate": "hpkit_local.toolchain:locate",
    "overviews": "hpkit_local.supervisor.local_clouds:overviews",
    "rehearsal": "hpkit_local.rehearsal.session:rehearsal",
    "stacks_of": "hpkit_local.supervisor.local_clouds:stacks_of",
    "stacks_up": "hpkit_local.supervisor.local_clouds:stacks_up",
    "team_objects": "hpkit_local.rehearsal.jobs:team_objects",
    "candidates": "hpkit_local.supervisor.local_clouds:candidates",
    "the_only": "hpkit_local.supervisor.local_clouds:the_only",
    "usage_of": "hpkit_local.supervisor.local_clouds:usage_of",
}


def __getattr__(name: str) -> Any:
    if name not in _SOURCES:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return resolve_name(_SOURCES[name])

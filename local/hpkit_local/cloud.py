"""The local cloud as the command line sees it: the only module that hpkit imports of this package.

Each name is imported when it is first used: `hpkit doctor` needs the tools alone, and none of the packages that a
supervisor needs.
"""

from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hpkit_local.plugins.aws.resource_type import Prop, ResourceType
    from hpkit_local.plugins.aws.table import RESOURCE_TYPES
    from hpkit_local.plugins.kubernetes.diff import CONTENT, IMMUTABLE
    from hpkit_local.plugins.kubernetes.release import REPLACES, TOKEN
    from hpkit_local.rehearsal.objects import team_objects
    from hpkit_local.rehearsal.session import rehearsal
    from hpkit_local.supervisor import control
    from hpkit_local.supervisor.control import VARIABLES
    from hpkit_local.supervisor.engine_events import EngineEvents, ResourceChange, Work
    from hpkit_local.supervisor.instance import DEFAULT_ACCOUNT, Instance
    from hpkit_local.supervisor.instances import Overview, instances, overviews, the_only
    from hpkit_local.supervisor.lock import exclusive
    from hpkit_local.supervisor.pulumi_stack import Stack
    from hpkit_local.supervisor.stacks import stacks_of, stacks_up
    from hpkit_local.supervisor.usage import Usage, usage_of
    from hpkit_local.toolchain import GO, TOOL_NAMES, TOOLS, get_all, locate, search_path

__all__ = [
    "CONTENT",
    "DEFAULT_ACCOUNT",
    "GO",
    "IMMUTABLE",
    "REPLACES",
    "RESOURCE_TYPES",
    "TOKEN",
    "TOOLS",
    "TOOL_NAMES",
    "VARIABLES",
    "EngineEvents",
    "Instance",
    "Overview",
    "Prop",
    "ResourceChange",
    "ResourceType",
    "Stack",
    "Usage",
    "Work",
    "control",
    "exclusive",
    "get_all",
    "instances",
    "locate",
    "overviews",
    "rehearsal",
    "search_path",
    "stacks_of",
    "stacks_up",
    "team_objects",
    "the_only",
    "usage_of",
]

_SOURCES = {
    "CONTENT": "hpkit_local.plugins.kubernetes.diff:CONTENT",
    "DEFAULT_ACCOUNT": "hpkit_local.supervisor.instance:DEFAULT_ACCOUNT",
    "GO": "hpkit_local.toolchain:GO",
    "IMMUTABLE": "hpkit_local.plugins.kubernetes.diff:IMMUTABLE",
    "REPLACES": "hpkit_local.plugins.kubernetes.release:REPLACES",
    "RESOURCE_TYPES": "hpkit_local.plugins.aws.table:RESOURCE_TYPES",
    "TOKEN": "hpkit_local.plugins.kubernetes.release:TOKEN",
    "TOOLS": "hpkit_local.toolchain:TOOLS",
    "TOOL_NAMES": "hpkit_local.toolchain:TOOL_NAMES",
    "VARIABLES": "hpkit_local.supervisor.control:VARIABLES",
    "EngineEvents": "hpkit_local.supervisor.engine_events:EngineEvents",
    "ResourceChange": "hpkit_local.supervisor.engine_events:ResourceChange",
    "Work": "hpkit_local.supervisor.engine_events:Work",
    "Instance": "hpkit_local.supervisor.instance:Instance",
    "Overview": "hpkit_local.supervisor.instances:Overview",
    "Prop": "hpkit_local.plugins.aws.resource_type:Prop",
    "ResourceType": "hpkit_local.plugins.aws.resource_type:ResourceType",
    "Stack": "hpkit_local.supervisor.pulumi_stack:Stack",
    "Usage": "hpkit_local.supervisor.usage:Usage",
    "control": "hpkit_local.supervisor.control",
    "exclusive": "hpkit_local.supervisor.lock:exclusive",
    "get_all": "hpkit_local.toolchain:get_all",
    "instances": "hpkit_local.supervisor.instances:instances",
    "locate": "hpkit_local.toolchain:locate",
    "overviews": "hpkit_local.supervisor.instances:overviews",
    "rehearsal": "hpkit_local.rehearsal.session:rehearsal",
    "search_path": "hpkit_local.toolchain:search_path",
    "stacks_of": "hpkit_local.supervisor.stacks:stacks_of",
    "stacks_up": "hpkit_local.supervisor.stacks:stacks_up",
    "team_objects": "hpkit_local.rehearsal.objects:team_objects",
    "the_only": "hpkit_local.supervisor.instances:the_only",
    "usage_of": "hpkit_local.supervisor.usage:usage_of",
}


def __getattr__(name: str) -> Any:
    if name not in _SOURCES:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return resolve_name(_SOURCES[name])

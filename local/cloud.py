"""The local cloud as the command line sees it: the only module that hpkit imports of this package.

Each name is imported when it is first used: `hpkit doctor` needs the tools alone, and none of the packages that a
supervisor needs.
"""

from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from local.plugins.aws.resource_type import Prop, ResourceType
    from local.plugins.aws.table import RESOURCE_TYPES
    from local.plugins.kubernetes.diff import CONTENT, IMMUTABLE
    from local.plugins.kubernetes.release import REPLACES, TOKEN
    from local.rehearsal.objects import team_objects
    from local.rehearsal.session import rehearsal
    from local.supervisor import control
    from local.supervisor.control import VARIABLES
    from local.supervisor.engine_events import EngineEvents
    from local.supervisor.instance import DEFAULT_ACCOUNT, Instance
    from local.supervisor.instances import Overview, instances, overviews, the_only
    from local.supervisor.lock import exclusive
    from local.supervisor.pulumi_stack import Stack
    from local.supervisor.stacks import stacks_of, stacks_up
    from local.supervisor.usage import Usage, usage_of
    from local.toolchain import GO, TOOL_NAMES, TOOLS, get_all, locate, search_path

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
    "ResourceType",
    "Stack",
    "Usage",
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
    "CONTENT": "local.plugins.kubernetes.diff:CONTENT",
    "DEFAULT_ACCOUNT": "local.supervisor.instance:DEFAULT_ACCOUNT",
    "GO": "local.toolchain:GO",
    "IMMUTABLE": "local.plugins.kubernetes.diff:IMMUTABLE",
    "REPLACES": "local.plugins.kubernetes.release:REPLACES",
    "RESOURCE_TYPES": "local.plugins.aws.table:RESOURCE_TYPES",
    "TOKEN": "local.plugins.kubernetes.release:TOKEN",
    "TOOLS": "local.toolchain:TOOLS",
    "TOOL_NAMES": "local.toolchain:TOOL_NAMES",
    "VARIABLES": "local.supervisor.control:VARIABLES",
    "EngineEvents": "local.supervisor.engine_events:EngineEvents",
    "Instance": "local.supervisor.instance:Instance",
    "Overview": "local.supervisor.instances:Overview",
    "Prop": "local.plugins.aws.resource_type:Prop",
    "ResourceType": "local.plugins.aws.resource_type:ResourceType",
    "Stack": "local.supervisor.pulumi_stack:Stack",
    "Usage": "local.supervisor.usage:Usage",
    "control": "local.supervisor.control",
    "exclusive": "local.supervisor.lock:exclusive",
    "get_all": "local.toolchain:get_all",
    "instances": "local.supervisor.instances:instances",
    "locate": "local.toolchain:locate",
    "overviews": "local.supervisor.instances:overviews",
    "rehearsal": "local.rehearsal.session:rehearsal",
    "search_path": "local.toolchain:search_path",
    "stacks_of": "local.supervisor.stacks:stacks_of",
    "stacks_up": "local.supervisor.stacks:stacks_up",
    "team_objects": "local.rehearsal.objects:team_objects",
    "the_only": "local.supervisor.instances:the_only",
    "usage_of": "local.supervisor.usage:usage_of",
}


def __getattr__(name: str) -> Any:
    if name not in _SOURCES:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return resolve_name(_SOURCES[name])

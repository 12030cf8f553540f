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
    from local.supervisor import control
    from local.supervisor.instance import Instance
    from local.supervisor.pulumi_stack import Stack
    from local.toolchain import GO, TOOL_NAMES, TOOLS, get_all, locate
    from local.toolchain.cache import cache_root

__all__ = [
    "CONTENT",
    "GO",
    "IMMUTABLE",
    "REPLACES",
    "RESOURCE_TYPES",
    "TOKEN",
    "TOOLS",
    "TOOL_NAMES",
    "Instance",
    "Prop",
    "ResourceType",
    "Stack",
    "cache_root",
    "control",
    "get_all",
    "locate",
]

_SOURCES = {
    "CONTENT": "local.plugins.kubernetes.diff:CONTENT",
    "GO": "local.toolchain:GO",
    "IMMUTABLE": "local.plugins.kubernetes.diff:IMMUTABLE",
    "REPLACES": "local.plugins.kubernetes.release:REPLACES",
    "RESOURCE_TYPES": "local.plugins.aws.table:RESOURCE_TYPES",
    "TOKEN": "local.plugins.kubernetes.release:TOKEN",
    "TOOLS": "local.toolchain:TOOLS",
    "TOOL_NAMES": "local.toolchain:TOOL_NAMES",
    "Instance": "local.supervisor.instance:Instance",
    "Prop": "local.plugins.aws.resource_type:Prop",
    "ResourceType": "local.plugins.aws.resource_type:ResourceType",
    "Stack": "local.supervisor.pulumi_stack:Stack",
    "cache_root": "local.toolchain.cache:cache_root",
    "control": "local.supervisor.control",
    "get_all": "local.toolchain:get_all",
    "locate": "local.toolchain:locate",
}


def __getattr__(name: str) -> Any:
    if name not in _SOURCES:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return resolve_name(_SOURCES[name])

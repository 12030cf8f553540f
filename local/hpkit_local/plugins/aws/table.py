"""The table: every type and function that the fake plugin answers for."""

from __future__ import annotations

from typing import Final

from hpkit_local.aws.service import resource_modules
from hpkit_local.plugins.aws.function import Function
from hpkit_local.plugins.aws.resource_type import ResourceType

__all__ = ["FUNCTIONS", "RESOURCE_TYPES"]

_MODULES: Final = tuple(resource_modules())
RESOURCE_TYPES: Final[dict[str, ResourceType]] = {
    each.token: each for module in _MODULES for each in getattr(module, "RESOURCE_TYPES", ())
}
FUNCTIONS: Final[dict[str, Function]] = {
    each.token: each for module in _MODULES for each in getattr(module, "FUNCTIONS", ())
}

"""The table: every type and function that the fake plugin answers for."""

import importlib
import pkgutil
from typing import Final

from hpkit_local.plugins.aws import resources
from hpkit_local.plugins.aws.resource_type import Function, ResourceType

__all__ = ["FUNCTIONS", "RESOURCE_TYPES"]

_MODULES: Final = tuple(
    importlib.import_module(module.name)
    for module in pkgutil.walk_packages(resources.__path__, f"{resources.__name__}.")
)
RESOURCE_TYPES: Final[dict[str, ResourceType]] = {
    each.token: each for module in _MODULES for each in getattr(module, "RESOURCE_TYPES", ())
}
FUNCTIONS: Final[dict[str, Function]] = {
    each.token: each for module in _MODULES for each in getattr(module, "FUNCTIONS", ())
}

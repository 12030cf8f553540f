"""Values of charts and add-ons: a user's laid over hpkit's."""

from collections.abc import Mapping
from typing import Any

__all__ = ["merged"]


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return base with over laid on it, map by map; what is no map is replaced whole."""
    result = dict(base)
    for key, value in over.items():
        before = result.get(key)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            result[key] = merged(before, value)
        else:
            result[key] = value
    return result

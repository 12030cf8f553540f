"""Values of charts and add-ons: a user's laid over hpkit's."""

from collections.abc import Mapping
from typing import Any

__all__ = ["merged"]


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return base merged with over, map by map; other values are replaced."""
    result = dict(base)
    for key, value in over.items():
        before = result.get(key)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            result[key] = merged(before, value)
        else:
            result[key] = value
    return result

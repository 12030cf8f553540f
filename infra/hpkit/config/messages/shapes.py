"""Converts values to other shapes, such as pairs to a map.

A shape is only suggested if the contract accepts it in place of the wrong one.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

__all__ = ["from_list", "from_map", "shapes_of"]

# A key and a value, as AWS lists tags.
_PAIR: Final = 2
_PERCENT = re.compile(r"(\d{1,3})\s*%\Z")


def from_list(items: tuple[Any, ...], under: str) -> Iterator[Any]:
    """Yield a list's pairs or named maps as a map, sections that an empty map turns on, and a list's only entry."""
    if under == "addons" and all(isinstance(name, str) for name in items):
        yield {name: {} for name in items}
    pairs: dict[str, Any] = {}
    for item in items:
        if isinstance(item, dict):
            named = {str(key).lower(): value for key, value in item.items()}
            key, value = (
                (named.get("key", named.get("name")), named.get("value")) if len(named) == _PAIR else (None, None)
            )
        else:
            key, separator, value = str(item).partition("=")
            key = key if separator else None
        if not isinstance(key, str) or isinstance(value, bool) or not isinstance(value, (str, int)):
            break
        pairs[key] = str(value)
    else:
        yield from (pairs,) if pairs else ()
    maps = [item for item in items if isinstance(item, dict)]
    if maps and len(maps) == len(items):
        if all(isinstance(item.get("name"), str) for item in maps):
            yield {item["name"]: {key: value for key, value in item.items() if key != "name"} for item in maps}
        if all(len(item) == 1 for item in maps):
            yield {key: value for item in maps for key, value in item.items()}
    yield from items if len(items) == 1 else ()


def from_map(mapping: dict[str, Any]) -> Iterator[Any]:
    """Yield a map's only value; its entries as a list: instance types with numbers, priority classes, requirements."""
    if not mapping:
        return
    if len(mapping) == 1 and isinstance(only := next(iter(mapping.values())), str):
        yield only
    if all(isinstance(number, int) for number in mapping.values()):
        if all(kind.startswith("ml.") for kind in mapping):
            yield tuple({"instanceType": kind, "count": number} for kind, number in mapping.items())
        yield tuple({"name": name, "weight": number} for name, number in mapping.items())
    if all(isinstance(values, dict) for values in mapping.values()):
        yield tuple({"name": name, **values} for name, values in mapping.items())
    if all(isinstance(values, tuple) for values in mapping.values()):
        yield tuple({"key": key, "operator": "In", "values": values} for key, values in mapping.items())


def shapes_of(value: Any) -> Iterator[Any]:
    """Yield the map that a number of nodes at a time can mean."""
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        return
    if isinstance(value, int):
        yield {"type": "INSTANCE_COUNT", "value": value}
        return
    if percent := _PERCENT.match(value):
        yield {"type": "CAPACITY_PERCENTAGE", "value": int(percent[1])}

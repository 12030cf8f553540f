"""Every key of an organization file, with other possible values from the models' JSON Schema."""

import copy
import ipaddress
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hpkit.catalog import instance_types, regions
from hpkit.config.schema.contract import required_at
from hpkit.config.schema.reference import json_schema

__all__ = ["Edit", "edits"]

Path = tuple[str | int, ...]
_NAME = "<name>"
_MOST = 12


@dataclass(frozen=True, slots=True)
class Edit:
    """An edit of one key; key is its path without indexes and names, how is `change` or `remove`.

    values: possible new values, the most likely first; empty if the key is removed.
    """

    key: str
    how: str
    path: Path
    values: tuple[Any, ...]

    def apply(self, data: Any, value: Any) -> Any:
        """Return an edited copy of an organization's data."""
        edited = copy.deepcopy(data)
        inner = edited
        for part in self.path[:-1]:
            inner = inner[part]
        if self.how == "remove":
            del inner[self.path[-1]]
        else:
            inner[self.path[-1]] = value
        return edited


def edits(data: Any, environment: str) -> Iterator[Edit]:
    """Yield every edit of one environment and of the shared parts: leaves, items, and removable sections."""
    schema = json_schema()
    walk = _Walk(schema["$defs"])
    for key, value in data.items():
        # Anchors aren't read, and each environment is a separate stack.
        if key in schema["properties"] and key != "environments":
            yield from walk.node(schema["properties"][key], value, (key,), key, optional=key not in required_at(()))
    place: Path = ("environments", environment)
    inside = schema["$defs"]["Environment"]
    yield from walk.node(inside, data["environments"][environment], place, "", optional=False)


class _Walk:
    """Walks data and its schema in parallel."""

    def __init__(self, definitions: dict[str, Any]) -> None:
        self._definitions = definitions

    def node(self, schema: Any, value: Any, path: Path, key: str, *, optional: bool) -> Iterator[Edit]:
        fits = self._fitting(schema, value)
        if isinstance(value, dict):
            if optional:
                yield Edit(key, "remove", path, (None,))
            yield from self._mapping(fits, value, path, key)
        elif isinstance(value, list):
            for index, item in enumerate(value):
                yield Edit(f"{key}[]", "remove", (*path, index), (None,))
                yield from self.node(fits.get("items", {}), item, (*path, index), f"{key}[]", optional=False)
        else:
            values = tuple(dict.fromkeys(each for each in _others(fits, value) if each != value))
            yield Edit(key, "change", path, values)

    def _mapping(self, schema: Any, value: dict[str, Any], path: Path, key: str) -> Iterator[Edit]:
        # In an editor's schema, defaults may contain required keys.
        keys, required = schema.get("properties", {}), required_at(path)
        for name, item in value.items():
            inner = keys.get(name, schema.get("additionalProperties", {}))
            shown = name if name in keys else _NAME
            free = name not in required
            if name not in keys and not isinstance(item, dict):
                yield Edit(f"{key}.{shown}", "remove", (*path, name), (None,))
            yield from self.node(inner, item, (*path, name), f"{key}.{shown}" if key else shown, optional=free)

    def _fitting(self, schema: Any, value: Any) -> Any:
        """Return the branch of a schema that matches the value."""
        if not isinstance(schema, dict):
            return {}
        if "$ref" in schema:
            return self._fitting(self._definitions[schema["$ref"].rpartition("/")[2]], value)
        for branch in schema.get("anyOf", ()):
            found = self._fitting(branch, value)
            if _takes(found, value):
                return found
        return schema


def _takes(schema: dict[str, Any], value: Any) -> bool:
    type_names = {dict: "object", list: "array", bool: "boolean", str: "string", int: "integer", float: "number"}
    if "enum" in schema:
        return value in schema["enum"]
    return (
        schema.get("type", type_names[type(value)]) == type_names[type(value)] if type(value) in type_names else False
    )


def _others(schema: dict[str, Any], value: Any) -> Iterator[Any]:
    if isinstance(value, bool):
        yield not value
    elif "enum" in schema:
        yield from (each for each in schema["enum"] if each != value)
    elif isinstance(value, int | float):
        step = schema.get("multipleOf", 1)
        # Also try smaller values: if capacity is exhausted, larger ones are rejected.
        yield from (each for each in (value + step, value - step) if _within(schema, each))
    elif isinstance(value, str):
        yield from _texts(value)


def _within(schema: dict[str, Any], value: float) -> bool:
    return bool(schema.get("minimum", value) <= value <= schema.get("maximum", value))


def _texts(value: str) -> Iterator[str]:
    if re.fullmatch(r"[a-z]{2}(?:-[a-z]+)+-[0-9]+", value):
        yield from sorted(region.name for region in regions() if region.name != value)[:_MOST]
    elif re.fullmatch(r"[a-z]{2}(?:-[a-z]+)+-[0-9]+[a-d]", value):
        yield from (value[:-1] + letter for letter in "abcd")
    elif re.fullmatch(r"[0-9.]+/[0-9]+", value):
        yield from _ranges(value)
    elif match := re.fullmatch(r"([0-9]+)\.([0-9]+)", value):
        yield f"{match[1]}.{int(match[2]) + 1}"
    elif match := re.fullmatch(r"([0-9]+)([a-zA-Z%]*)", value):
        yield from (f"{int(match[1]) + step}{match[2]}" for step in (1, -1))
    elif value.startswith("ml."):
        family = value.rpartition(".")[0]
        names = sorted(each.name for each in instance_types())
        yield from [name for name in names if name.startswith(f"{family}.")][:_MOST]
        yield from [name for name in names if not name.startswith(f"{family}.")][:_MOST]
    else:
        yield from (f"{value}-x", f"{value}x")


def _ranges(value: str) -> Iterator[str]:
    network = ipaddress.IPv4Network(value)
    for step in (1, 7, 40, 60):
        first = int(network.network_address) + step * network.num_addresses
        if first < 2**32:
            yield str(ipaddress.IPv4Network((first, network.prefixlen)))

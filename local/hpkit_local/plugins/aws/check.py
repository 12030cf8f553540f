"""Check: every property is known to this plugin, has the right type, and is set if required."""

from __future__ import annotations

import difflib
import json
import random
from collections.abc import Iterator
from typing import Any

from hpkit_local.plugins.aws.resource_type import Prop, ResourceType
from hpkit_provider.engine.results import CheckFailure
from hpkit_provider.engine.values import Props, is_unknown

__all__ = ["DEFAULTS", "check", "named"]

DEFAULTS = "__defaults"  # the real provider, too, keeps the names of generated inputs here
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "policy": (str,),
    "url": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "list": (list,),
    "map": (dict,),
    "object": (dict,),
    "asset": (dict,),
}
_SUFFIX = 7


def check(resource_type: ResourceType, inputs: Props) -> list[CheckFailure]:
    """Return everything that is wrong with the inputs."""
    given = {name: value for name, value in inputs.items() if name != DEFAULTS}
    return list(_object(resource_type.token, resource_type.spec, given, ""))


def named(resource_type: ResourceType, name: str, *, old: Props, new: Props, seed: bytes) -> Props:
    """Return the inputs, with a generated name if the program sets none; an earlier generated one stays."""
    key = resource_type.autoname
    if not key or key in new or f"{key}Prefix" in new:
        return new
    if key in old.get(DEFAULTS, []):
        return {**new, key: old[key], DEFAULTS: [key]}
    suffix = "".join(random.Random(seed or None).choices("0123456789abcdef", k=_SUFFIX))  # noqa: S311 - no secret
    made = f"{name[: resource_type.longest_name - _SUFFIX - 1]}-{suffix}"
    return {**new, key: made.lower() if resource_type.lowercase else made, DEFAULTS: [key]}


def _object(token: str, spec: Prop, value: Props, path: str) -> Iterator[CheckFailure]:
    for name, item in value.items():
        inner = f"{path}.{name}" if path else name
        member = spec.by_name.get(name)
        if member is None:
            yield CheckFailure(inner, _unknown(token, spec, name))
        else:
            yield from _value(token, member, item, inner)
    for member in spec.members:
        if member.required and member.name not in value:
            yield CheckFailure(f"{path}.{member.name}" if path else member.name, "is required")


def _unknown(token: str, spec: Prop, name: str) -> str:
    near = difflib.get_close_matches(name, spec.by_name, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"it takes {', '.join(sorted(spec.by_name))}"
    return f"the local cloud's {token} has no property {name!r}; {hint}"


def _value(token: str, spec: Prop, value: Any, path: str) -> Iterator[CheckFailure]:
    if is_unknown(value):
        return
    wanted = _TYPES[spec.kind]
    if not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted):
        yield CheckFailure(path, f"{value!r} isn't of type {spec.kind}")
    elif spec.kind == "policy":
        yield from _document(str(value), path)
    elif spec.members and isinstance(value, list):
        for index, item in enumerate(value):
            if isinstance(item, dict):
                yield from _object(token, spec, item, f"{path}[{index}]")
    elif spec.members and isinstance(value, dict):
        yield from _object(token, spec, value, path)


def _document(value: str, path: str) -> Iterator[CheckFailure]:
    try:
        json.loads(value)
    except ValueError as error:
        yield CheckFailure(path, f"isn't a JSON document: {error}")

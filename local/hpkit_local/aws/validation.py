"""Checks values against a shape of botocore's service models, with the messages that the services send.

botocore checks only names, types, and lower bounds in the client. The services also check patterns, ranges, and enums,
and so does this module. The endpoint's own answers get the same check before they are sent.
"""

import json
import re
import sys
import unicodedata
from collections.abc import Iterator
from datetime import datetime
from functools import cache
from typing import Any

from botocore.model import ListShape, MapShape, Shape, StructureShape

from hpkit_local.aws.errors import ServiceError

__all__ = ["WrongTypeError", "check_request", "violations"]

_HIGHEST_ASCII = 0x7F
# The same language in linear time: the original nests repetitions and takes exponentially long to reject.
_EQUIVALENT = {
    r"[a-z0-9]([-a-z0-9]*[a-z0-9]){0,39}?": r"[a-z0-9]([-a-z0-9]*[a-z0-9])?",
}


@cache
def compile_pattern(pattern: str, *, is_ascii: bool = False) -> re.Pattern[str]:
    """Compile a pattern of the model; it must match the whole value, as the services do.

    is_ascii: for values in ASCII only, which is faster: Unicode has a million characters.
    """
    text = _EQUIVALENT.get(pattern, pattern)
    highest = _HIGHEST_ASCII if is_ascii else sys.maxunicode
    return re.compile(re.sub(r"\\p\{(\w)\w*\}", lambda found: _category(found.group(1), highest), text))


@cache
def _category(letter: str, highest: int) -> str:
    """Return a Unicode category such as L or Z up to a character, as ranges for use inside a character class."""
    ranges: list[tuple[int, int]] = []
    for code in range(highest + 1):
        if unicodedata.category(chr(code))[0] == letter:
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1] = (ranges[-1][0], code)
            else:
                ranges.append((code, code))
    return "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in ranges)


_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "long": (int,),
    "float": (int, float),
    "double": (int, float),
    "boolean": (bool,),
    "timestamp": (int, float, str, datetime),
    "blob": (str, bytes),
    "list": (list,),
    "map": (dict,),
    "structure": (dict,),
}


class WrongTypeError(Exception):
    """A value whose JSON type differs from the shape's."""


# Source: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_CommonErrors.html
def check_request(shape: StructureShape, params: dict[str, Any], *, code: str) -> None:
    """Reject a request that breaks the model: with `code`, or SerializationException for a wrong type."""
    try:
        problems = list(violations(shape, params))
    except WrongTypeError as error:
        raise ServiceError("SerializationException", str(error)) from None
    if problems:
        plural = "" if len(problems) == 1 else "s"
        raise ServiceError(code, f"{len(problems)} validation error{plural} detected: {'; '.join(problems)}")


def violations(shape: Shape, value: object, path: str = "", *, sizes: bool = True) -> Iterator[str]:
    """Return every constraint that `value` violates, in the services' wording.

    `sizes=False` ignores the length of lists and maps: EKS returns `tags: {}`, which its own model forbids.
    """
    if not _has_type(shape, value):
        raise WrongTypeError(f"{_json_type(value)} can not be converted to {shape.type_name} at '{path or shape.name}'")
    if isinstance(shape, StructureShape) and isinstance(value, dict):
        yield from _structure(shape, value, path, sizes=sizes)
    elif isinstance(shape, ListShape) and isinstance(value, list):
        yield from _bounds(shape, value, path, "length" if sizes else "")
        for index, item in enumerate(value, start=1):
            yield from violations(shape.member, item, f"{path}.{index}.member", sizes=sizes)
    elif isinstance(shape, MapShape) and isinstance(value, dict):
        yield from _bounds(shape, value, path, "length" if sizes else "")
        for key, item in value.items():
            yield from violations(shape.key, key, f"{path}.{key}.key")
            yield from violations(shape.value, item, f"{path}.{key}.member", sizes=sizes)
    elif shape.type_name == "string":
        yield from _string(shape, str(value), path)
    elif shape.type_name in ("integer", "long", "float", "double"):
        yield from _bounds(shape, value, path, "value")


def _has_type(shape: Shape, value: object) -> bool:
    if isinstance(value, bool):
        return bool(shape.type_name == "boolean")
    wanted: tuple[type, ...] = _TYPES[shape.type_name]
    return isinstance(value, wanted)


def _structure(shape: StructureShape, value: dict[str, Any], path: str, *, sizes: bool) -> Iterator[str]:
    for name in shape.required_members:
        if value.get(name) is None:
            yield _failed(None, _join(path, name), "Member must not be null")
    for name, item in value.items():
        where = _join(path, name)
        if name not in shape.members:
            known = ", ".join(shape.members)
            yield _failed(item, where, f"Member must be one that the API model has: [{known}]")
        elif item is not None:
            yield from violations(shape.members[name], item, where, sizes=sizes)
    given = [name for name, item in value.items() if item is not None]
    if shape.is_tagged_union and len(given) != 1:
        yield _failed(value, path, f"Exactly one member must be set, not {len(given)}")


def _string(shape: Shape, value: str, path: str) -> Iterator[str]:
    allowed = shape.metadata.get("enum")
    if allowed is not None:
        if value not in allowed:
            yield _failed(value, path, f"Member must satisfy enum value set: [{', '.join(allowed)}]")
        return
    broken = list(_bounds(shape, value, path, "length"))
    yield from broken
    pattern = shape.metadata.get("pattern")
    if pattern and not broken and not _matches(pattern, value):
        yield _failed(value, path, f"Member must satisfy regular expression pattern: {pattern}")


def _matches(pattern: str, value: str) -> bool:
    """Models of EKS write their patterns with anchors at one end only; the services match from the start."""
    compiled = compile_pattern(pattern, is_ascii=value.isascii())
    return bool(compiled.match(value) if pattern.startswith("^") else compiled.fullmatch(value))


def _bounds(shape: Shape, value: Any, path: str, measure: str) -> Iterator[str]:
    if not measure:
        return
    size = value if measure == "value" else len(value)
    low, high = shape.metadata.get("min"), shape.metadata.get("max")
    if low is not None and size < low:
        yield _failed(value, path, f"Member must have {measure} greater than or equal to {low}")
    if high is not None and size > high:
        yield _failed(value, path, f"Member must have {measure} less than or equal to {high}")


def _failed(value: object, path: str, constraint: str) -> str:
    shown = "null" if value is None else f"'{value if isinstance(value, str) else json.dumps(value, default=str)}'"
    return f"Value {shown} at '{path}' failed to satisfy constraint: {constraint}"


def _join(path: str, name: str) -> str:
    member = name[:1].lower() + name[1:]
    return f"{path}.{member}" if path else member


def _json_type(value: object) -> str:
    names = {str: "STRING", bool: "BOOLEAN", int: "NUMBER", float: "NUMBER", list: "ARRAY", dict: "OBJECT"}
    return f"{names.get(type(value), 'NULL')}_VALUE"

"""Finds what an API server would reject in a custom resource, by the schema and CEL rules of its CRD.

Structural schemas differ from JSON Schema: defaults are applied first, lists can be sets or maps, and unknown fields
are dropped instead of rejected. CEL rules are checked as well. Source: Kubernetes documentation, "Extend the Kubernetes
API with CustomResourceDefinitions"; a test compares this with an API server. Transition rules, which compare with the
existing object, are skipped, because a file doesn't know it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

__all__ = ["Violation", "violations"]

_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "array": (list,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "object": (dict,),
    "string": (str,),
}
_NAMES: Final = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "object": "a map",
    "string": "text",
}
_INTEGERS: Final = {"int32": 2**31, "int64": 2**63}
Path = tuple[str | int, ...]
# The problem and the fix.
_Broken = tuple[str, str] | None


@dataclass(frozen=True, slots=True)
class Violation:
    """A violated constraint: its position, the problem and the fix as text; for a CEL rule, also the rule."""

    path: Path
    message: str
    fix: str
    rule: str = ""


def violations(schema: Mapping[str, Any], value: Any) -> list[Violation]:
    """Return what an API server would report about a new value, including unknown fields, which it drops."""
    found = list(_structure(schema, _with_defaults(schema, value), ()))
    # An API server asks the rules only once the structure is right.
    return found or list(_rules(schema, _with_defaults(schema, value), ()))


def _with_defaults(schema: Mapping[str, Any], value: Any) -> Any:
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        more = schema.get("additionalProperties")
        complete = {key: each["default"] for key, each in properties.items() if "default" in each} | value
        inner = {key: properties.get(key, more if isinstance(more, dict) else {}) for key in complete}
        return {key: _with_defaults(inner[key], each) for key, each in complete.items()}
    if isinstance(value, (list, tuple)):
        return [_with_defaults(schema.get("items", {}), each) for each in value]
    return value


def _structure(schema: Mapping[str, Any], value: Any, path: Path) -> Iterator[Violation]:
    expected = "string" if schema.get("x-kubernetes-int-or-string") else schema.get("type")
    if expected is None:
        return
    whole = isinstance(value, int) and not isinstance(value, bool)
    if schema.get("x-kubernetes-int-or-string") and whole:
        return
    if not isinstance(value, _TYPES[expected]) or (isinstance(value, bool) and expected != "boolean"):
        yield Violation(path, f"isn't {_NAMES[expected]}", f"Use {_NAMES[expected]}.")
        return
    for broken in filter(None, (check(schema, value) for check in _LIMITS)):
        yield Violation(path, *broken)
    if isinstance(value, dict):
        yield from _fields(schema, value, path)
    elif isinstance(value, list):
        yield from _items(schema, value, path)


def _fields(schema: Mapping[str, Any], value: dict[str, Any], path: Path) -> Iterator[Violation]:
    properties, additional = schema.get("properties", {}), schema.get("additionalProperties")
    for key in schema.get("required", ()):
        if key not in value:
            yield Violation(path, f"has no `{key}`", f"Add `{key}`.")
    for key, field in value.items():
        if key in properties:
            yield from _structure(properties[key], field, (*path, key))
        elif isinstance(additional, dict):
            yield from _structure(additional, field, (*path, key))
        elif not additional and not schema.get("x-kubernetes-preserve-unknown-fields"):
            yield Violation((*path, key), "isn't a field of the API, which drops it", "Remove it.")


def _items(schema: Mapping[str, Any], value: list[Any], path: Path) -> Iterator[Violation]:
    for index, item in enumerate(value):
        yield from _structure(schema.get("items", {}), item, (*path, index))
    list_type, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys", ())
    identities = [[each.get(key) for key in keys] if list_type == "map" else each for each in value]
    for index, item in enumerate(identities):
        if list_type in ("set", "map") and item in identities[:index]:
            yield Violation((*path, index), f"lists {_shown(item)} twice", "List it once.")


def _in_enum(schema: Mapping[str, Any], value: Any) -> _Broken:
    allowed = schema.get("enum")
    if not allowed or value in allowed:
        return None
    return f"is {_shown(value)}, which isn't a valid value", f"Use one of {', '.join(map(str, allowed))}."


def _in_range(schema: Mapping[str, Any], value: Any) -> _Broken:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    edge = _INTEGERS.get(schema.get("format", ""))
    least, most = schema.get("minimum", -edge if edge else None), schema.get("maximum", edge - 1 if edge else None)
    if least is not None and value < least:
        return f"is {value}; the minimum is {least}", f"Use `{least}` or more."
    if most is not None and value > most:
        return f"is {value}; the maximum is {most}", f"Use `{most}` or less."
    return None


def _in_length(schema: Mapping[str, Any], value: Any) -> _Broken:
    # maxLength of a list, which Karpenter's CRD has, has no meaning.
    for value_type, low, high, unit in (
        (str, "minLength", "maxLength", "characters"),
        (list, "minItems", "maxItems", "entries"),
        (dict, "minProperties", "maxProperties", "entries"),
    ):
        if isinstance(value, value_type):
            least, most = schema.get(low, 0), schema.get(high, len(value))
            if not least <= len(value) <= most:
                bound = f"at least {least}" if len(value) < least else f"at most {most}"
                return f"has {len(value)} {unit}; the limit is {bound}", f"Use {bound}."
    return None


def _in_form(schema: Mapping[str, Any], value: Any) -> _Broken:
    pattern = schema.get("pattern")
    if pattern is None or not isinstance(value, str) or re.search(pattern, value):
        return None
    if value == "":
        return "is empty", "Set a value, or remove the key."
    return (
        f"is {_shown(value)}, which doesn't have the format that the API expects",
        "Use the format that Karpenter's documentation describes.",
    )


_LIMITS: Final[Sequence[Callable[[Mapping[str, Any], Any], _Broken]]] = (_in_enum, _in_range, _in_length, _in_form)


def _rules(schema: Mapping[str, Any], value: Any, path: Path) -> Iterator[Violation]:
    for rule in schema.get("x-kubernetes-validations", ()):
        if "oldSelf" not in rule["rule"] and not _holds(rule["rule"], value):
            message = rule.get("message", "the value breaks a rule of the API")
            yield Violation(path, f"is rejected: {message}", "Change the value to meet this condition.", rule["rule"])
    if isinstance(value, dict):
        properties, more = schema.get("properties", {}), schema.get("additionalProperties")
        for key, member in value.items():
            yield from _rules(properties.get(key, more if isinstance(more, dict) else {}), member, (*path, key))
    elif isinstance(value, list):
        for index, member in enumerate(value):
            yield from _rules(schema.get("items", {}), member, (*path, index))


def _holds(rule: str, value: Any) -> bool:
    """Return whether a rule is true; like an API server, treat one that ends in an error as false."""
    return _program(rule).eval(data={"self": value}).plain_value() is True


@cache
def _program(rule: str) -> Any:
    return _environment().compile(rule)


@cache
def _environment() -> Any:
    """Return a CEL environment with Kubernetes' own functions that Karpenter's rules use.

    Find, from its regex library.
    """
    # Imported here: 14 MB of machine code, which a file without NodePools doesn't need.
    from cel_expr_python import cel

    text, anything = cel.Type.STRING, cel.Type.DYN
    find = cel.Overload("string_find_string", text, [text, text], is_member=True, impl=_find)
    return cel.NewEnv(variables={"self": anything}, functions=[cel.FunctionDecl("find", [find])])


def _find(text: str, pattern: str) -> str:
    found = re.search(pattern, text)
    return found[0] if found else ""


def _shown(value: Any) -> str:
    return f"`{value}`" if isinstance(value, str) else str(value)

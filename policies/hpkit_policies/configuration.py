"""Checks organizations' policy files without an engine.

Pulumi checks the parameters of known policies, and ignores unknown policy names.
"""

import json
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final, get_args

from hpkit.catalog import aws_regions, find_instance_type, find_nearest
from hpkit_policies.model import Level, Parameter, Policy
from hpkit_policies.pack import POLICIES
from hpkit_policies.waivers import WAIVERS, RunState, configuration_policy

__all__ = ["problems"]

# It supports only the part of JSON Schema that the pack's parameters use.
_KINDS: Final[Mapping[str, tuple[str, tuple[type, ...]]]] = {
    "array": ("a list", (list,)),
    "integer": ("a whole number", (int,)),
    "object": ("a map", (dict,)),
    "string": ("text", (str,)),
}
# What texts of a form are, by the form; a test finds missing forms.
_FORMS: Final = {
    r"^ml\.": "an instance type such as ml.g5.12xlarge",
    r"^\d{4}-\d{2}-\d{2}$": "a date such as 2027-01-31",
}


def _wrong(schema: Mapping[str, Any], value: Any, where: str) -> Iterator[str]:
    """Yield the problems of a value, starting with its position."""
    kind = schema.get("type")
    if kind is not None and (not isinstance(value, _KINDS[kind][1]) or isinstance(value, bool)):
        yield f"{where} is {_shown(value)}; it must be {_KINDS[kind][0]}"
    elif isinstance(value, list):
        for index, each in enumerate(value, 1):
            yield from _wrong(schema.get("items", {}), each, f"{where}, entry {index},")
    elif isinstance(value, dict):
        yield from _of_map(schema, value, where)
    else:
        yield from _of_one(schema, value, where)


def _of_map(schema: Mapping[str, Any], value: Mapping[str, Any], where: str) -> Iterator[str]:
    properties, others = schema.get("properties", {}), schema.get("additionalProperties", {})
    yield from (f"{where} has no {name}" for name in schema.get("required", ()) if name not in value)
    for name, item in value.items():
        if name not in properties and others is False:
            near = get_close_matches(name, properties, n=1)
            yield f"{where} has an unknown {name}{f', did you mean {near[0]}?' if near else ''}"
        else:
            yield from _wrong(properties.get(name, others), item, f"{where}.{name}")


def _of_one(schema: Mapping[str, Any], value: Any, where: str) -> Iterator[str]:
    least, most = schema.get("minimum"), schema.get("maximum")
    if "enum" in schema and value not in schema["enum"]:
        near = get_close_matches(str(value), schema["enum"], n=1)
        hint = f", did you mean {near[0]}?" if near else ""
        yield f"{where} is {_shown(value)}; it must be one of {', '.join(schema['enum'])}{hint}"
    elif least is not None and value < least:
        yield f"{where} is {value}; the minimum is {least}"
    elif most is not None and value > most:
        yield f"{where} is {value}; the maximum is {most}"
    elif len(str(value)) < schema.get("minLength", 0):
        yield f"{where} is empty"
    elif "pattern" in schema and not re.search(schema["pattern"], value):
        near = list(find_nearest(value)[:1]) if schema["pattern"] == r"^ml\." else []
        hint = f", did you mean {near[0]}?" if near else ""
        yield f"{where} is {_shown(value)}; it must be {_FORMS[schema['pattern']]}{hint}"


def _unknown_names(schema: Mapping[str, Any], values: Any, where: str, *, regions: bool) -> Iterator[str]:
    """Yield entries of a list that are no region, or no instance type, though the list is of these."""
    types = schema.get("items", {}).get("pattern") == r"^ml\."
    for value in values if regions or types else ():
        if regions and value not in aws_regions():
            near = get_close_matches(value, aws_regions(), n=1)
            yield f"{where} contains {value}, which isn't an AWS region{f', did you mean {near[0]}?' if near else ''}"
        elif types and find_instance_type(value) is None:
            near = list(find_nearest(value)[:1])
            meant = f", did you mean {near[0]}?" if near else ""
            yield f"{where} contains {value}, which isn't a HyperPod instance type{meant}"


def _shown(value: Any) -> str:
    kind = next((name for name, types in (("a list", list), ("a map", dict)) if isinstance(value, types)), None)
    return kind or (
        f'"{value}"' if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
    )


_POLICIES: Final = {policy.name: policy for policy in (*POLICIES, configuration_policy(RunState()))}
_LEVELS: Final = get_args(Level)
_REGIONS: Final = "regions-allowed"
_LEVEL: Final = "enforcementLevel"
# Both stop an update; other levels would let through violations that can't be waived.
_STOPPING: Final = ("mandatory", "remediate")


def problems(text: str) -> list[str]:
    """Return the problems of a policy file, one sentence each."""
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        return [f"invalid JSON at line {error.lineno}, column {error.colno}: {error.msg[:1].lower()}{error.msg[1:]}"]
    if not isinstance(data, dict):
        return ["must be a JSON object that maps policies to settings"]
    return [problem for name, given in data.items() for problem in _entry(name, given)]


def _entry(name: str, given: Any) -> list[str]:
    settings: Any = {_LEVEL: given} if isinstance(given, str) else given
    if not isinstance(settings, Mapping):
        return [f"{name}: must be an enforcement level or an object of parameters"]
    level = settings.get(_LEVEL)
    if level is not None and level not in _LEVELS:
        return [f"{name}: {level} isn't a valid enforcement level (levels: {', '.join(_LEVELS)})"]
    if name == "all":
        # Pulumi's key for all policies that have no key of their own.
        lowered = level is not None and level not in _STOPPING
        return ["all: would lower policies that can't be waived; name the policies instead"] if lowered else []
    policy = _POLICIES.get(name)
    if policy is None:
        near = ", ".join(get_close_matches(name, _POLICIES, n=1))
        return [f"{name}: no such policy{f', did you mean {near}?' if near else ''}"]
    return _parameters(policy, settings)


def _parameters(policy: Policy, settings: Mapping[str, Any]) -> list[str]:
    known_names = [parameter.name for parameter in policy.parameters] + ([WAIVERS.name] if policy.waivable else [])
    problems = [
        f"{policy.name}: unknown parameter {name} (parameters: {', '.join(known_names) or 'none'})"
        for name in settings
        if name not in (*known_names, _LEVEL)
    ]
    for parameter in (*policy.parameters, *((WAIVERS,) if policy.waivable else ())):
        if parameter.name in settings:
            problems += _values(policy, parameter, settings[parameter.name])
    if not policy.waivable and settings.get(_LEVEL, "mandatory") not in _STOPPING:
        problems.append(f"{policy.name}: can't be lowered to {settings[_LEVEL]}, because it can't be waived")
    return problems


def _values(policy: Policy, parameter: Parameter, value: Any) -> list[str]:
    where = f"{policy.name}: {parameter.name}"
    found = list(_wrong(parameter.schema, value, where))
    return found or list(_unknown_names(parameter.schema, value, where, regions=policy.name == _REGIONS))

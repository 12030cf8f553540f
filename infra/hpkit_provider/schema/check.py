"""Check: the API model's constraints on properties, with all failures and their paths."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from hpkit_provider.engine.results import CheckFailure
from hpkit_provider.engine.values import Props, is_unknown
from hpkit_provider.schema.field_table import Field, table
from hpkit_provider.schema.rules import RULES

__all__ = ["check"]

_SHOWN = 8
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "timestamp": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "list": (list,),
    "map": (dict,),
    "object": (dict,),
}


def check(resource: str, inputs: Props) -> list[CheckFailure]:
    """Return everything that is wrong: form first, then the rules that concern several fields."""
    failures = list(_value(table(resource), inputs, ""))
    if failures:
        return failures
    rule = RULES.get(resource)
    return [CheckFailure(path, reason) for path, reason in rule(inputs)] if rule else []


def _value(spec: Field, value: Any, path: str) -> Iterator[CheckFailure]:
    if is_unknown(value):
        return
    wanted = _TYPES[spec.kind]
    fits = isinstance(value, wanted)
    if not fits or (isinstance(value, bool) and bool not in wanted):
        article = "an" if spec.kind[0] in "aeio" else "a"
        yield CheckFailure(path, f"{value!r} isn't {article} {spec.kind}")
        return
    if spec.kind == "object":
        yield from _object(spec, value, path)
    elif spec.kind == "list":
        yield from _size(spec, value, path)
        for index, item in enumerate(value):
            yield from _value(spec.item or spec, item, f"{path}[{index}]")
    elif spec.kind == "map":
        yield from _size(spec, value, path)
        for key, item in value.items():
            yield from _value(spec.key or spec, key, f'{path}["{key}"]')
            yield from _value(spec.item or spec, item, f'{path}["{key}"]')
    else:
        yield from _scalar(spec, value, path)


def _object(spec: Field, value: Props, path: str) -> Iterator[CheckFailure]:
    for name, item in value.items():
        inner = f"{path}.{name}" if path else name
        member = spec.by_name.get(name)
        if member is None:
            near = difflib.get_close_matches(name, spec.by_name, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(sorted(spec.by_name))}"
            yield CheckFailure(inner, f"no property {name!r} exists here; {hint}")
        else:
            yield from _value(member, item, inner)
    if spec.union and len(value) != 1:
        given = f"not {' and '.join(value)}" if value else "none is given"
        yield CheckFailure(path, f"exactly one of {', '.join(spec.by_name)} is required; {given}")
    for member in spec.members:
        if member.required and member.name not in value:
            inner = f"{path}.{member.name}" if path else member.name
            yield CheckFailure(inner, "is required")


def _size(spec: Field, value: Any, path: str) -> Iterator[CheckFailure]:
    unit = "entries" if spec.kind in ("list", "map") else "characters"
    if spec.minimum is not None and len(value) < spec.minimum:
        yield CheckFailure(path, f"has {len(value)} {unit}; the minimum is {spec.minimum}")
    if spec.maximum is not None and len(value) > spec.maximum:
        yield CheckFailure(path, f"has {len(value)} {unit}; the maximum is {spec.maximum}")


def _scalar(spec: Field, value: Any, path: str) -> Iterator[CheckFailure]:
    if spec.kind == "string":
        yield from _string(spec, value, path)
        return
    if spec.kind == "timestamp":
        yield from _timestamp(value, path)
        return
    if spec.minimum is not None and value < spec.minimum:
        yield CheckFailure(path, f"{value} is less than the minimum of {spec.minimum}")
    if spec.maximum is not None and value > spec.maximum:
        yield CheckFailure(path, f"{value} is more than the maximum of {spec.maximum}")


def _timestamp(value: str, path: str) -> Iterator[CheckFailure]:
    try:
        datetime.fromisoformat(value)
    except ValueError:
        yield CheckFailure(path, f"{value!r} isn't a valid time, such as 2027-01-31T00:00:00Z")


def _linear(pattern: str) -> str:
    # The same language: with the model's nesting, Python needs exponential time to reject a long name.
    return pattern.replace("([-a-z0-9]*[a-z0-9]){0,39}?", "([-a-z0-9]*[a-z0-9])?")


def _string(spec: Field, value: str, path: str) -> Iterator[CheckFailure]:
    if spec.enum and value not in spec.enum:
        near = difflib.get_close_matches(value, spec.enum, n=3, cutoff=0.5)
        shown = near if near or len(spec.enum) > _SHOWN else spec.enum
        hint = f"; one of {', '.join(shown)}" if shown else ""
        yield CheckFailure(path, f"{value!r} isn't a value that the service accepts{hint}")
        return
    yield from _size(spec, value, path)
    # Python has no \p{…} classes; the service model uses them only where nearly everything is allowed.
    if spec.pattern and "\\p{" not in spec.pattern and not re.fullmatch(_linear(spec.pattern), value):
        yield CheckFailure(path, f"{value!r} doesn't match {spec.pattern}")

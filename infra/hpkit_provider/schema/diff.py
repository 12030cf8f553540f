"""What differs between two sets of inputs: lists by the name of their entries, sets without order."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from hpkit_provider.engine.results import PropertyChange
from hpkit_provider.engine.values import is_unknown, walk_unknown
from hpkit_provider.schema.field_table import Field

__all__ = ["changes", "same", "says_nothing"]


def changes(spec: Field, old: Any, new: Any, *, path: str = "", replaces: bool = False) -> Iterator[PropertyChange]:
    """Yield what differs; nothing for a mere change of order where order means nothing."""
    replaces = replaces or spec.immutable
    if is_unknown(new) or is_unknown(old):
        yield PropertyChange(path, "update", replaces)
    elif spec.kind == "object":
        for member in spec.compared:
            inner = f"{path}.{member.name}" if path else member.name
            yield from _optional(member, old.get(member.name), new.get(member.name), path=inner, replaces=replaces)
    elif spec.kind == "map" and spec.item:
        for key in sorted(old.keys() | new.keys()):
            yield from _optional(spec.item, old.get(key), new.get(key), path=f'{path}["{key}"]', replaces=replaces)
    elif spec.kind == "list" and spec.identity not in ("", "*") and not _unnamed(spec, old, new):
        yield from _named(spec, old, new, path=path, replaces=replaces)
    elif spec.kind == "list" and spec.item and spec.identity != "*" and len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from changes(spec.item, before, after, path=f"{path}[{index}]", replaces=replaces)
    elif _canonical(spec, old) != _canonical(spec, new):
        yield PropertyChange(path, "update", replaces)


def same(spec: Field, old: Any, new: Any) -> bool:
    """Whether two values mean the same."""
    return not any(changes(spec, old, new))


def says_nothing(spec: Field, value: Any) -> bool:
    """Leaving a property out is the same as an empty list, map or text, and as what the service takes by itself."""
    if spec.kind == "object" and not spec.members:
        return False  # such an object says what it says by being there: `spot: {}`
    if value in ("", [], {}) or (spec.default is not None and value == spec.default):
        return True
    if spec.kind == "object" and isinstance(value, dict):
        return all(says_nothing(member, value[member.name]) for member in spec.members if member.name in value)
    return False


def _optional(spec: Field, old: Any, new: Any, *, path: str, replaces: bool) -> Iterator[PropertyChange]:
    if old is None and new is None:
        return
    if old is None or new is None:
        kind = "add" if old is None else "delete"
        if not says_nothing(spec, new if old is None else old):
            yield PropertyChange(path, kind, replaces or spec.immutable)
        return
    yield from changes(spec, old, new, path=path, replaces=replaces)


def _unnamed(spec: Field, *lists: list[Any]) -> bool:
    return any(is_unknown(entry) or is_unknown(entry.get(spec.identity)) for entries in lists for entry in entries)


def _named(spec: Field, old: list[Any], new: list[Any], *, path: str, replaces: bool) -> Iterator[PropertyChange]:
    item = spec.item or spec
    before = {entry[spec.identity]: (index, entry) for index, entry in enumerate(old)}
    after = {entry[spec.identity]: (index, entry) for index, entry in enumerate(new)}
    for name, (index, entry) in after.items():
        if name not in before:
            yield PropertyChange(f"{path}[{index}]", "add", replaces)
        else:
            yield from changes(item, before[name][1], entry, path=f"{path}[{index}]", replaces=replaces)
    for name, (index, _) in before.items():
        if name not in after:
            yield PropertyChange(f"{path}[{index}]", "delete", replaces)


def _canonical(spec: Field, value: Any) -> Any:
    if any(walk_unknown(value)):
        return None
    if spec.identity == "*" and isinstance(value, list):
        return sorted(json.dumps(entry, sort_keys=True) for entry in value)
    return value

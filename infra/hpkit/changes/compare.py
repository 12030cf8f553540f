"""What differs between the inputs of then and now, and what of it replaces, by the facts of the catalog."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from hpkit.catalog import TypeFacts, immutable_of_objects, type_facts
from hpkit.changes.recorded import RecordedResource

__all__ = ["UNKNOWN", "Difference", "deletes_first", "differences", "facts_of", "has_unknown", "with_unknown"]

_RELEASE = "kubernetes:helm.sh/v3:Release"


class _Unknown:
    """A value that AWS gives out when what it comes from is made."""

    def __repr__(self) -> str:
        return "known after it is made"


UNKNOWN: Final = _Unknown()


@dataclass(frozen=True, slots=True)
class Difference:
    """A property that differs, by its path without indexes, and whether that takes a new resource.

    place: the path with the names of entries, such as `instanceGroups[gpu].imageId`, for people and for telling apart.
    """

    path: str
    place: str
    before: Any
    after: Any
    replaces: bool


def facts_of(resource: RecordedResource) -> TypeFacts:
    """Return what is known of a resource's type; of a Kubernetes object, by its kind."""
    if not resource.type.startswith("kubernetes:") or resource.type == _RELEASE:
        return type_facts(resource.type)
    version, kind = str(resource.inputs.get("apiVersion", "")), str(resource.inputs.get("kind", ""))
    # A patch changes any field of an object that others own.
    patch = resource.type.endswith(":" + kind + "Patch")
    group = version.partition("/")[0] if "/" in version else ""
    immutable = frozenset(immutable_of_objects(group, "*" if patch else kind))
    # The API server's own default may be true, such as that of automountServiceAccountToken.
    return TypeFacts(immutable=immutable, literal=True)


def deletes_first(old: RecordedResource, new: RecordedResource) -> bool:
    """Return whether the old one must be gone before the new one can be made: they cannot both be."""
    facts = facts_of(new)
    if new.type.startswith("kubernetes:"):
        sides = [side.inputs.get("metadata") or {} for side in (old, new)]
        return new.type != _RELEASE and all(sides[0].get(key) == sides[1].get(key) for key in ("name", "namespace"))
    if not facts.identity or (facts.autoname and facts.autoname not in old.inputs):
        return facts.deletes_first
    return all(old.inputs.get(name) == new.inputs.get(name) for name in facts.identity)


def with_unknown(value: Any, marks: Iterable[str]) -> Any:
    """Return the value, unknown wherever a text holds one of the marks."""
    alternatives = "|".join(re.escape(mark) for mark in marks)
    return (
        _with_pattern_unknown(value, re.compile(rf"(?<![\w-])(?:{alternatives})(?![\w-])")) if alternatives else value
    )


def _with_pattern_unknown(value: Any, pattern: re.Pattern[str]) -> Any:
    if isinstance(value, str):
        return UNKNOWN if pattern.search(value) else value
    if isinstance(value, Mapping):
        return {key: _with_pattern_unknown(item, pattern) for key, item in value.items()}
    return [_with_pattern_unknown(item, pattern) for item in value] if isinstance(value, list | tuple) else value


def has_unknown(value: Any) -> bool:
    """Return whether a value or any part of it is unknown."""
    if isinstance(value, Mapping):
        return any(has_unknown(item) for item in value.values())
    return any(has_unknown(item) for item in value) if isinstance(value, list | tuple) else value is UNKNOWN


def differences(
    facts: TypeFacts, old: Any, new: Any, path: str = "", *, place: str = "", replaces: bool = False
) -> Iterator[Difference]:
    """Yield what differs; nothing for what the plugins take for the same."""
    replaces = replaces or facts.replaces(path, old, new)
    if new is UNKNOWN or old is UNKNOWN or (path in facts.present and (old is None) != (new is None)):
        yield Difference(path, place, old, new, replaces)
        return
    if new is None and path in facts.optional:
        return
    if isinstance(old, Mapping) or isinstance(new, Mapping):
        before, after = (side if isinstance(side, Mapping) else {} for side in (old, new))
        for key in sorted(before.keys() | after.keys()):
            inner, at = (f"{above}.{key}" if above else key for above in (path, place))
            yield from differences(facts, before.get(key), after.get(key), inner, place=at, replaces=replaces)
    elif path in facts.entries:
        yield from _entries(facts, old or (), new or (), path, place, replaces=replaces)
    elif _same_length_maps(facts, path, old, new):
        for index, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from differences(facts, one, other, path, place=f"{place}[{index}]", replaces=replaces)
    elif _comparable(facts, path, old) != _comparable(facts, path, new):
        yield Difference(path, place, old, new, replaces)


def _entries(facts: TypeFacts, old: Any, new: Any, path: str, place: str, *, replaces: bool) -> Iterator[Difference]:
    member = facts.entries[path]
    before, after = ({entry[member]: entry for entry in entries} for entries in (old, new))
    for key in sorted(before.keys() | after.keys()):
        at = f"{place}[{key}]"
        if key in before and key in after:
            yield from differences(facts, before[key], after[key], path, place=at, replaces=replaces)
        else:
            yield Difference(f"{path}[{key}]", at, before.get(key), after.get(key), replaces)


def _same_length_maps(facts: TypeFacts, path: str, old: Any, new: Any) -> bool:
    lists = isinstance(old, list) and isinstance(new, list) and path not in facts.sets
    return lists and len(old) == len(new) and all(isinstance(each, Mapping) for each in (*old, *new))


def _comparable(facts: TypeFacts, path: str, value: Any) -> Any:
    if value is None or value in ("", [], {}):
        value = facts.defaults.get(path)
    if value is False and not facts.literal:
        return None
    if has_unknown(value):
        return object()
    if path in facts.sets and isinstance(value, list):
        return sorted(json.dumps(item, sort_keys=True) for item in value)
    return value

"""Compares two sets of inputs of a resource, by the facts of its type, for reviews and plugins."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from ipaddress import IPv4Network
from typing import Any, Final

from hpkit.catalog.resource_types import TypeFacts

__all__ = ["UNKNOWN", "Difference", "adds_subnets", "differences", "has_unknown", "in_any_order", "ranges_in_use"]


class _Unknown:
    """A value that is known only after other resources are created."""

    def __repr__(self) -> str:
        return "known after it's created"

    def __deepcopy__(self, memo: dict[int, Any]) -> _Unknown:
        return self

    def __copy__(self) -> _Unknown:
        return self


UNKNOWN: Final = _Unknown()


@dataclass(frozen=True, slots=True)
class Difference:
    """A property that differs, and whether the difference replaces the resource.

    - path: without indexes, as in the facts.
    - place: with the names of entries, such as `instanceGroups[gpu].imageId`, for people and as an identity.
    - keys: its position, with indexes; if one side lacks a whole object, the position of that object.
    - kind: add, delete or update, of `keys`.
    """

    path: str = ""
    place: str = ""
    keys: tuple[str | int, ...] = ()
    kind: str = "update"
    before: Any = None
    after: Any = None
    replaces: bool = False


def differences(facts: TypeFacts, old: Any, new: Any, path: str = "") -> Iterator[Difference]:
    """Yield each property that differs, as deep as the facts go; nothing for values that mean the same."""
    yield from _within(facts, old, new, Difference(path, path))


def ranges_in_use(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    """Yield which new subnets have addresses of old ones, as text; old, new: zone → IPv4 range of the nodes' subnet.

    EC2 rejects them, because the old ones exist until then (Amazon EC2 API reference, InvalidSubnet.Conflict).
    """
    for zone, cidr in new.items():
        for other, taken in old.items():
            if old.get(zone) != cidr and IPv4Network(cidr).overlaps(IPv4Network(taken)):
                yield f"nodeCidr {cidr} of {zone} overlaps {taken} of {other}"


def adds_subnets(old: Any, new: Any) -> bool:
    """Return whether subnets are only added; existing instance groups keep theirs, because the API can't add any."""
    lists = isinstance(old, list | tuple) and isinstance(new, list | tuple)
    return lists and len(new) > len(old) and all(subnet in new for subnet in old)


def has_unknown(value: Any) -> bool:
    """Return whether a value or any part of it is unknown."""
    if isinstance(value, Mapping):
        return any(has_unknown(item) for item in value.values())
    return any(has_unknown(item) for item in value) if isinstance(value, list | tuple) else value is UNKNOWN


def in_any_order(value: Any) -> Any:
    """Return a value whose lists of texts are sorted, because sets of IDs have no order."""
    if isinstance(value, Mapping):
        return {key: in_any_order(item) for key, item in value.items()}
    return sorted(value) if isinstance(value, list) and all(isinstance(item, str) for item in value) else value


def _within(facts: TypeFacts, old: Any, new: Any, difference: Difference) -> Iterator[Difference]:
    # Most inputs of most resources are equal.
    if difference.path not in facts.silent and (old != new or has_unknown(new)):
        yield from _differing(facts, old, new, difference)


def _differing(facts: TypeFacts, old: Any, new: Any, difference: Difference) -> Iterator[Difference]:
    path, lacking = difference.path, (old is None) != (new is None)
    if difference.kind == "update" and lacking:
        difference = replace(difference, kind="add" if old is None else "delete")
    difference = replace(
        difference, before=old, after=new, replaces=difference.replaces or facts.replaces(path, old, new)
    )
    if new is UNKNOWN or old is UNKNOWN or (path in facts.present and lacking):
        yield difference
        return
    if (new is None and path in facts.optional) or (lacking and path in facts.undisclosed):
        return
    before, after = (side if isinstance(side, Mapping) else {} for side in (old, new))
    if keys := sorted(before.keys() | after.keys()):
        for key in keys:
            inner, place = (f"{above}.{key}" if above else key for above in (path, difference.place))
            yield from _within(facts, before.get(key), after.get(key), _inside(difference, inner, place, key))
    elif path in facts.entries and _named(facts.entries[path], old or (), new or ()):
        yield from _entries(facts, old or (), new or (), difference)
    elif _same_length_maps(facts, path, old, new):
        for index, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from _within(facts, one, other, _inside(difference, path, f"{difference.place}[{index}]", index))
    elif _comparable(facts, path, old) != _comparable(facts, path, new):
        yield difference


def _inside(at: Difference, path: str, place: str, key: str | int) -> Difference:
    keys = (*at.keys, key) if at.kind == "update" else at.keys
    return replace(at, path=path, place=place, keys=keys)


def _named(member: str, *lists: Any) -> bool:
    return all(isinstance(entry, Mapping) and isinstance(entry.get(member), str) for each in lists for entry in each)


def _entries(facts: TypeFacts, old: Any, new: Any, difference: Difference) -> Iterator[Difference]:
    member = facts.entries[difference.path]
    before, after = ({entry[member]: (index, entry) for index, entry in enumerate(side)} for side in (old, new))
    for key in sorted(before.keys() | after.keys()):
        index, _ = after[key] if key in after else before[key]
        entry = _inside(difference, difference.path, f"{difference.place}[{key}]", index)
        old_entry, new_entry = (side[key][1] if key in side else None for side in (before, after))
        if old_entry is not None and new_entry is not None:
            yield from _within(facts, old_entry, new_entry, entry)
        else:
            kind = difference.kind if difference.kind != "update" else "add" if old_entry is None else "delete"
            yield replace(entry, path=f"{difference.path}[{key}]", kind=kind, before=old_entry, after=new_entry)


def _same_length_maps(facts: TypeFacts, path: str, old: Any, new: Any) -> bool:
    lists = isinstance(old, list) and isinstance(new, list) and path not in facts.sets
    return lists and len(old) == len(new) and all(isinstance(each, Mapping) for each in (*old, *new))


def _comparable(facts: TypeFacts, path: str, value: Any) -> Any:
    if value is None or (value in ("", [], {}) and not facts.literal):
        value = facts.defaults.get(path)
    if value is False and not facts.literal:
        return None
    if has_unknown(value):
        return object()
    if path in facts.sets and isinstance(value, list):
        return sorted(json.dumps(item, sort_keys=True) for item in value)
    return value

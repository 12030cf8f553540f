"""What of each type cannot change in place: a change of it makes the engine delete one resource and make another."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from hpkit.catalog.instances import read_data

__all__ = ["TypeFacts", "frozen_of_groups", "immutable_of_objects", "sticky_of_groups", "type_facts"]


@dataclass(frozen=True, slots=True)
class TypeFacts:
    """One type, properties named by their path without indexes.

    immutable: a change replaces the resource. optional: leaving it out is no difference; unasked: neither is stating
    it for the first time. grows: a lower number replaces the resource. present: it says what it says by being there.
    sets: order means nothing. entries: lists whose entries are told apart by that member. defaults: what is taken for
    what is left out. identity: two resources cannot be alike in all of these at once, so that the old one goes first,
    unless the engine made up the name (autoname); deletes_first: it always does. literal: what is false is something
    else than what is left out.
    """

    immutable: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()
    unasked: frozenset[str] = frozenset()
    grows: frozenset[str] = frozenset()
    present: frozenset[str] = frozenset()
    sets: frozenset[str] = frozenset()
    entries: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    identity: tuple[str, ...] = ()
    autoname: str = ""
    deletes_first: bool = False
    literal: bool = False


@cache
def _data() -> Any:
    return read_data("replacing.json")


@cache
def type_facts(token: str) -> TypeFacts:
    """Return what is known of a type; nothing of one that the plugins' tables do not have."""
    given = _data()["types"].get(token, {})
    sets = {
        key: frozenset(given.get(key, ())) for key in ("immutable", "optional", "unasked", "grows", "present", "sets")
    }
    return TypeFacts(
        **sets,
        entries=given.get("entries", {}),
        defaults=given.get("defaults", {}),
        identity=tuple(given.get("identity", ())),
        autoname=given.get("autoname", ""),
        deletes_first=given.get("deletesFirst", False),
        literal=given.get("literal", False),
    )


def immutable_of_objects(api_version: str, kind: str) -> tuple[str, ...]:
    """Return the fields that a Kubernetes object of a kind keeps for good, beside its name and namespace."""
    group = api_version.partition("/")[0] if "/" in api_version else ""
    return tuple(_data()["kubernetes"].get(f"{group}/{kind}" if group else kind, ()))


def frozen_of_groups() -> tuple[str, ...]:
    """Return the members of an instance group that UpdateCluster refuses to change on a group that exists."""
    return tuple(_data()["groups"]["frozen"])


def sticky_of_groups() -> tuple[str, ...]:
    """Return the members of an instance group that can change but not be taken away."""
    return tuple(_data()["groups"]["sticky"])

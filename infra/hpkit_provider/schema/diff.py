"""Compares the inputs of a HyperPod resource, and brings live values into their form, by the facts of its fields."""

from typing import Any

from hpkit.catalog import differences
from hpkit_provider.engine.results import PropertyChange, property_changes
from hpkit_provider.schema.field_table import Field

__all__ = ["changes", "project", "same", "says_nothing"]


def changes(spec: Field, old: Any, new: Any) -> list[PropertyChange]:
    """Return the differences; a different order is none if order has no meaning."""
    return property_changes(differences(spec.facts, old, new))


def same(spec: Field, old: Any, new: Any) -> bool:
    """Return whether two values mean the same."""
    return not any(differences(spec.facts, old, new))


def says_nothing(spec: Field, value: Any) -> bool:
    """Return the value without empty lists, maps and texts, and without the service's defaults.

    They equal an omitted one.
    """
    return same(spec, None, value)


# A property that the program sets is compared with its live value. A property that the program leaves to the service is
# no difference, regardless of the service's value. The few exceptions are declared as watched.
def project(spec: Field, declared: Any, live: Any) -> Any:
    """Return the live value, in the program's form if both mean the same."""
    if declared is None:
        return _imported(spec, live)
    if spec.kind == "object" and isinstance(declared, dict):
        return _object(spec, declared, live)
    if spec.kind == "list" and spec.item and spec.identity not in ("", "*"):
        return _named(spec, declared, live)
    if spec.kind == "list" and spec.item and spec.item.kind == "object" and len(declared) == len(live):
        return [project(spec.item, *pair) for pair in zip(declared, live, strict=True)]
    return declared if same(spec, declared, live) else live


def _object(spec: Field, declared: dict[str, Any], live: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for member in spec.members:
        name = member.name
        if name in declared:
            if member.service_owned or (name not in live and declared[name] in ("", [], {})):
                result[name] = declared[name]
            elif name in live:
                result[name] = project(member, declared[name], live[name])
        elif member.watched and name in live and not _left_alone(member, live[name]):
            result[name] = project(member, None, live[name])
    return result


def _left_alone(spec: Field, live: Any) -> bool:
    """Return whether a live value is the service's default."""
    if isinstance(live, dict):
        return all(item in ("", [], {}) for item in live.values())
    return bool(live == (spec.reset_to if spec.default is None else spec.default))


def _named(spec: Field, declared: list[Any], live: list[Any]) -> list[Any]:
    """Keep the program's order; unknown entries come last."""
    item, key = spec.item or spec, spec.identity
    found = {entry[key]: entry for entry in live}
    known = [entry[key] for entry in declared]
    kept = [project(item, entry, found[entry[key]]) for entry in declared if entry[key] in found]
    return kept + [project(item, None, entry) for entry in live if entry[key] not in known]


def _imported(spec: Field, live: Any) -> Any:
    if spec.kind == "object":
        return {
            member.name: _imported(member, live[member.name])
            for member in spec.members
            if member.name in live and not member.service_owned and not _is_empty(member, live[member.name])
        }
    if spec.kind == "list" and spec.item:
        return [_imported(spec.item, entry) for entry in live]
    return live


def _is_empty(member: Field, value: Any) -> bool:
    """Return whether an empty value has no meaning; for some, mere presence has one (`spot: {}`)."""
    if value in ("", []):
        return True
    if member.kind == "object":
        return member.watched and _left_alone(member, value)
    return bool(member.kind == "map" and not value)

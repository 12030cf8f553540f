"""Compares two sets of inputs of a HyperPod resource, by the facts of its fields."""

from __future__ import annotations

from typing import Any

from hpkit.catalog import differences
from hpkit_provider.engine.results import PropertyChange, property_changes
from hpkit_provider.schema.field_table import Field

__all__ = ["changes", "same", "says_nothing"]


def changes(spec: Field, old: Any, new: Any) -> list[PropertyChange]:
    """Return the differences; a different order is none if order has no meaning."""
    return property_changes(differences(spec.facts, *_compared(spec, old, new)))


def same(spec: Field, old: Any, new: Any) -> bool:
    """Return whether two values mean the same."""
    return not any(differences(spec.facts, *_compared(spec, old, new)))


def _compared(spec: Field, *sides: Any) -> list[Any]:
    """Return both sides without properties that are only kept in the state, because the service never returns them."""
    silent = {member.name for member in spec.members if member.silent}
    return [
        {name: value for name, value in side.items() if name not in silent}
        if silent and isinstance(side, dict)
        else side
        for side in sides
    ]


def says_nothing(spec: Field, value: Any) -> bool:
    """Return the value without empty lists, maps and texts, and without the service's defaults.

    They equal an omitted one.
    """
    return same(spec, None, value)

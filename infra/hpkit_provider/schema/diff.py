"""What differs between two sets of inputs of a HyperPod resource, by the facts of its fields."""

from __future__ import annotations

from typing import Any

from hpkit.catalog import differences
from hpkit_provider.engine.results import PropertyChange, property_changes
from hpkit_provider.schema.field_table import Field

__all__ = ["changes", "same", "says_nothing"]


def changes(spec: Field, old: Any, new: Any) -> list[PropertyChange]:
    """Return what differs; nothing for a mere change of order where order means nothing."""
    return property_changes(differences(spec.facts, *_compared(spec, old, new)))


def same(spec: Field, old: Any, new: Any) -> bool:
    """Whether two values mean the same."""
    return not any(differences(spec.facts, *_compared(spec, old, new)))


def _compared(spec: Field, *sides: Any) -> list[Any]:
    """Return both sides without the properties that are kept in the state only: the service never returns them."""
    silent = {member.name for member in spec.members if member.silent}
    return [
        {name: value for name, value in side.items() if name not in silent}
        if silent and isinstance(side, dict)
        else side
        for side in sides
    ]


def says_nothing(spec: Field, value: Any) -> bool:
    """Leaving a property out is the same as an empty list, map or text, and as what the service takes by itself."""
    return same(spec, None, value)

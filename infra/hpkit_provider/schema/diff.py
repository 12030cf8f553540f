"""What differs between two sets of inputs of a HyperPod resource, by the facts of its fields."""

from __future__ import annotations

from typing import Any

from hpkit.catalog import differences
from hpkit_provider.engine.results import PropertyChange, property_changes
from hpkit_provider.schema.field_table import Field

__all__ = ["changes", "same", "says_nothing"]


def changes(spec: Field, old: Any, new: Any) -> list[PropertyChange]:
    """Return what differs; nothing for a mere change of order where order means nothing."""
    silent = {member.name for member in spec.members if member.silent}
    before, after = ({k: v for k, v in side.items() if k not in silent} if silent else side for side in (old, new))
    return property_changes(differences(spec.facts, before, after))


def same(spec: Field, old: Any, new: Any) -> bool:
    """Whether two values mean the same."""
    return not any(differences(spec.facts, old, new))


def says_nothing(spec: Field, value: Any) -> bool:
    """Leaving a property out is the same as an empty list, map or text, and as what the service takes by itself."""
    return same(spec, None, value)

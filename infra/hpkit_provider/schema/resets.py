"""Values that a request sends for unset properties, because the API keeps omitted ones."""

from __future__ import annotations

from hpkit_provider.engine.values import Props
from hpkit_provider.schema.field import Field

__all__ = ["with_resets"]


def with_resets(spec: Field, inputs: Props) -> Props:
    """Write defaults explicitly for unset inputs, so that the service resets them."""
    full = dict(inputs)
    for member in spec.members:
        if member.name not in full and member.reset_to is not None:
            full[member.name] = member.reset_to
        value = full.get(member.name)
        if member.kind == "object" and isinstance(value, dict):
            full[member.name] = with_resets(member, value)
    return full

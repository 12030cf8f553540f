"""What the generated classes share: outputs, and inputs by their names in the API."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Generic, TypeVar, cast

import pulumi

__all__ = ["OutputOf", "inputs_of"]

_Value = TypeVar("_Value")


class OutputOf(Generic[_Value]):
    """An output, which the engine sets by its name in the API."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, resource: pulumi.Resource, owner: object) -> pulumi.Output[_Value]:
        return cast("pulumi.Output[_Value]", resource.__dict__[self.name])


def inputs_of(resource: type, stated: Mapping[str, object]) -> dict[str, Any]:
    """Return the inputs by their names in the API, and None for every output of the class, which the engine sets."""
    outputs = [each.name for each in vars(resource).values() if isinstance(each, OutputOf)]
    inputs = {re.sub(r"_(.)", lambda found: found[1].upper(), name): value for name, value in stated.items()}
    return inputs | dict.fromkeys(outputs)

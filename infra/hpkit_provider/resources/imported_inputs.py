"""The ID that imports a resource that exists in the state alone: the JSON text of its inputs."""

from __future__ import annotations

import json

from hpkit_provider.engine.errors import RefusedError
from hpkit_provider.engine.values import Props
from hpkit_provider.schema.check import check

__all__ = ["imported_inputs"]


def imported_inputs(resource: str, text: str, *, example: Props) -> Props:
    """Read the ID that an import gives; raises RefusedError with the problem."""
    what_to_do = f"What to do: use the JSON text of its inputs as the ID, such as '{json.dumps(example)}'."
    try:
        inputs = json.loads(text)
    except ValueError as error:
        raise RefusedError(f"The ID {text!r} of a {resource} isn't valid JSON ({error}). {what_to_do}") from None
    if not isinstance(inputs, dict):
        raise RefusedError(f"The ID {text!r} of a {resource} isn't a JSON object. {what_to_do}")
    failures = [f"{failure.path} {failure.reason}" for failure in check(resource, inputs)]
    if failures:
        raise RefusedError(f"The ID of a {resource} has invalid inputs: {'; '.join(failures)}. {what_to_do}")
    return inputs

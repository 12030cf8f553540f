"""The common part of resources that exist only in the state. An import's ID is the JSON text of the inputs."""

import json
from typing import ClassVar

from hpkit_provider.engine.call import EngineCall
from hpkit_provider.engine.errors import RejectedError
from hpkit_provider.engine.values import Props
from hpkit_provider.resources.handler import Handler, ResourceState
from hpkit_provider.schema.check import check

__all__ = ["StateOnlyHandler", "imported_inputs"]


class StateOnlyHandler(Handler):
    """A resource that AWS doesn't know. `example` contains the inputs that messages show."""

    example: ClassVar[Props]

    def create(self, call: EngineCall, inputs: Props) -> ResourceState:
        """Record the inputs."""
        return ResourceState(_logical_name(call), inputs, inputs)

    def read(self, call: EngineCall, resource_id: str, inputs: Props, state: Props) -> ResourceState | None:
        """Return what was recorded, because nothing else exists. At import, the ID is the JSON text of the inputs."""
        if state or inputs:
            return ResourceState(resource_id, state or inputs, inputs or state)
        given = imported_inputs(self.name, resource_id, example=self.example)
        return ResourceState(_logical_name(call), given, given)

    def delete(self, call: EngineCall, resource_id: str) -> None:
        """Forget it."""


def _logical_name(call: EngineCall) -> str:
    return call.urn.rpartition("::")[2]


def imported_inputs(resource: str, text: str, *, example: Props) -> Props:
    """Read the ID that an import gives; raises RejectedError with the problem."""
    what_to_do = f"To fix: use the JSON text of its inputs as the ID, such as '{json.dumps(example)}'."
    try:
        inputs = json.loads(text)
    except ValueError as error:
        raise RejectedError(f"The ID {text!r} of a {resource} isn't valid JSON ({error}). {what_to_do}") from None
    if not isinstance(inputs, dict):
        raise RejectedError(f"The ID {text!r} of a {resource} isn't a JSON object. {what_to_do}")
    failures = [f"{failure.path} {failure.reason}" for failure in check(resource, inputs)]
    if failures:
        raise RejectedError(f"The ID of a {resource} has invalid inputs: {'; '.join(failures)}. {what_to_do}")
    return inputs

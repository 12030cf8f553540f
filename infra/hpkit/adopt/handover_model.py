"""The resources of another tool, the resources of an adoption, and the steps of the handover between them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

__all__ = ["AdoptedResource", "ManagedResource", "Step", "Tool", "When", "string"]

When = Literal["before import", "after import"]
Tool = Literal["terraform", "cloudformation"]


@dataclass(frozen=True, slots=True)
class ManagedResource:
    """A resource that Terraform or CloudFormation manages.

    - address: Terraform's, with modules and keys, or CloudFormation's stack name, a slash, logical id.
    - type: as the tool spells it.
    - ids: all that identifies the live resource (id, ARN, name, physical id). An id of several parts has the form that
      `pulumi import` takes.
    """

    tool: Tool
    address: str
    type: str
    ids: frozenset[str]

    @property
    def stack(self) -> str:
        """Return the stack's name; only CloudFormation has stacks."""
        return self.address.rpartition("/")[0] if self.tool == "cloudformation" else ""

    @property
    def logical_id(self) -> str:
        """Return the name within the stack; for Terraform the whole address."""
        return self.address.rpartition("/")[2] if self.tool == "cloudformation" else self.address


@dataclass(frozen=True, slots=True)
class AdoptedResource:
    """A live resource that an adopted file describes or refers to.

    - type_token: Pulumi's.
    - name: its name in the program.
    - ids: ID and ARN of the live resource.
    - owner: `imported` if Pulumi will own it, `existing` if the file only refers to it and the other tool keeps it.
    """

    type_token: str
    name: str
    ids: frozenset[str]
    owner: Literal["imported", "existing"]


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a handover: its phase, its effect, and its shell commands."""

    when: When
    description: str
    commands: tuple[str, ...] = ()


def string(data: Mapping[str, object], key: str) -> str:
    """Return the string under a key, an empty one for any other value."""
    value = data.get(key)
    return value if isinstance(value, str) else ""

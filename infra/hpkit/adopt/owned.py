"""What another tool holds, and what hpkit takes over of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

__all__ = ["Owned", "Step", "Taken", "Tool", "When", "string"]

When = Literal["before import", "after import"]
Tool = Literal["terraform", "cloudformation"]


@dataclass(frozen=True, slots=True)
class Owned:
    """One resource in the records of another tool.

    address: Terraform's, with modules and keys, or CloudFormation's stack name, a slash, logical id; type: as the tool
    spells it; ids: whatever names the live thing (id, ARN, name, physical id), joined as `pulumi import` wants it
    where it has several parts.
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
class Taken:
    """One thing that an adopted file speaks of.

    type_token: Pulumi's; name: its name in the program; ids: id and ARN of the live thing; owner: `imported` when
    Pulumi shall own it, `existing` when the file only names it and the other tool keeps it.
    """

    type_token: str
    name: str
    ids: frozenset[str]
    owner: Literal["imported", "existing"]


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a handover: when it is due, what it is for, the commands that do it."""

    when: When
    say: str
    run: tuple[str, ...] = ()


def string(data: Mapping[str, object], key: str) -> str:
    """Return data's text under key; empty for anything else."""
    value = data.get(key)
    return value if isinstance(value, str) else ""

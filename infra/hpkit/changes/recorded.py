"""The parts of a recording that this package reads, as protocols, so that comparing doesn't load Pulumi."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from hpkit.plan.model import Plan

__all__ = ["Recorded", "RecordedResource"]


class RecordedResource(Protocol):
    """One registration in hpkit.program.recording."""

    @property
    def urn(self) -> str:
        """Its URN, which contains its type, its parents' types and its name."""

    @property
    def type(self) -> str:
        """Type token, such as `aws:ec2/vpc:Vpc`."""

    @property
    def name(self) -> str:
        """Name in the program."""

    @property
    def inputs(self) -> Mapping[str, Any]:
        """The program's inputs."""

    @property
    def provider(self) -> str:
        """URN of its provider; empty for none."""

    @property
    def uses(self) -> Mapping[str, frozenset[str]]:
        """Property → URNs of the resources whose outputs are in it."""

    @property
    def protect(self) -> bool:
        """Whether the engine won't delete it."""

    @property
    def custom(self) -> bool:
        """Whether it's a resource of a plugin, not a component."""

    @property
    def retain_on_delete(self) -> bool:
        """Whether it's kept when the program no longer registers it."""

    @property
    def replace_on_changes(self) -> Sequence[str]:
        """Inputs whose changes replace it, in addition to those of its type."""

    @property
    def delete_before_replace(self) -> bool | None:
        """Whether a replacement deletes it first; None leaves it to its plugin."""

    @property
    def made(self) -> Mapping[str, Any]:
        """Invented values that only AWS could assign."""


class Recorded(Protocol):
    """Everything that a plan registers, by URN, in the order in which it was registered."""

    @property
    def plan(self) -> Plan:
        """The plan."""

    @property
    def resources(self) -> Mapping[str, RecordedResource]:
        """URN → registration."""

"""What every resource handler does: the frame that the server calls, and the diff they share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

from provider.client import Api
from provider.diff import Change, changes
from provider.fields import RESOURCES, Field, ResourceTable, table
from provider.room import Room
from provider.run_groups import RunGroups
from provider.task import Task
from provider.values import Props

__all__ = ["Cloud", "Diff", "Handler", "Live", "status_change"]

CONFLICT_TRIES = 12


@dataclass
class Cloud:
    """What the handlers work with."""

    api: Api
    room: Room
    node_wait: float = 1200.0
    allow_replace: bool = False  # clusters may be replaced, and the region may change
    groups: RunGroups = field(default_factory=RunGroups)


@dataclass(frozen=True)
class Diff:
    """What a diff found."""

    changes: list[Change] = field(default_factory=list)

    @property
    def replaces(self) -> list[str]:
        """Properties that make a replacement necessary, by their outermost name."""
        return sorted({change.path for change in self.changes if change.replaces})


@dataclass(frozen=True)
class Live:
    """A resource as it is: what the engine keeps of it."""

    resource_id: str
    state: Props
    inputs: Props


def status_change(reason: str) -> Change:
    """Return a replacement that no input asks for, because the service can only delete and make anew."""
    return Change(reason, "update", replaces=True)


class Handler(ABC):
    """One resource: everything the engine can ask for."""

    name: ClassVar[str]
    seconds: ClassVar[float]

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud
        self.api = cloud.api

    @property
    def table(self) -> ResourceTable:
        """What is written down about the resource."""
        return RESOURCES[self.name]

    @property
    def spec(self) -> Field:
        """The inputs."""
        return table(self.name)

    def foresee(self, task: Task, old: Props, new: Props) -> None:
        """Warn, at preview, of what the change itself would run into; most resources have nothing to say."""
        del task, old, new

    def diff(self, old: Props, new: Props, state: Props) -> Diff:
        """Compare the inputs of then and now."""
        del state
        return Diff(list(changes(self.spec, old, new)))

    def remarks(self, old: Props, new: Props, state: Props) -> list[str]:
        """Return what the user must know of a comparison even if it comes to no change."""
        del old, new, state
        return []

    @abstractmethod
    def create(self, task: Task, inputs: Props) -> Live:
        """Make it, or take over what an interrupted run made."""

    @abstractmethod
    def read(self, task: Task, resource_id: str, inputs: Props, state: Props) -> Live | None:
        """Return it as it is; None when it is gone. Without inputs it is an import."""

    @abstractmethod
    def update(self, task: Task, resource_id: str, *, old: Props, new: Props, state: Props) -> Live:
        """Bring what is live to the new inputs."""

    @abstractmethod
    def delete(self, task: Task, resource_id: str) -> None:
        """Delete it; no error if it is gone."""

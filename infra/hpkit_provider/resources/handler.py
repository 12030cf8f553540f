"""The interface of every resource handler: what the server calls, the shared diff, and what a run's resources share."""

import threading
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import ClassVar, Final

from hpkit_provider.aws.client import SageMakerApi
from hpkit_provider.engine.call import EngineCall
from hpkit_provider.engine.results import PropertyChange
from hpkit_provider.engine.values import Props
from hpkit_provider.resources.quota_lists import QuotaLists
from hpkit_provider.schema.diff import changes
from hpkit_provider.schema.field_table import RESOURCES, Field, ResourceTable, table

__all__ = [
    "CONFLICT_RETRIES",
    "MAX_UPDATES",
    "Clients",
    "Handler",
    "ResourceDiff",
    "ResourceState",
    "forced_replacement",
]

# The engine deletes after it has updated, and a deletion learns nothing about the program. The engine compares the
# cluster in every run, and the cluster then records here which groups the program has. The deletion of a group checks
# this first.
_LOCK_POLL_SECONDS: Final = 0.3


class _DeclaredGroups:
    """Groups by the ARN of their cluster; safe for many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._declared: dict[str, frozenset[str]] = {}
        self._deleting: dict[str, set[str]] = defaultdict(set)
        self._cluster_locks: dict[str, threading.Lock] = defaultdict(threading.Lock)

    def declare(self, arn: str, group_names: Iterable[str]) -> None:
        """Record all groups that the program has in a cluster."""
        with self._lock:
            self._declared[arn] = frozenset(group_names)

    def declared(self, arn: str) -> frozenset[str] | None:
        """Return the groups that the program has in a cluster; None if this run didn't compare the cluster."""
        with self._lock:
            return self._declared.get(arn)

    def deleting(self, arn: str) -> frozenset[str]:
        """Return all groups that wait to be deleted."""
        with self._lock:
            return frozenset(self._deleting[arn])

    @contextmanager
    def exclusive(self, call: EngineCall, arn: str, name: str) -> Iterator[None]:
        """Lock the cluster to delete a group; its holder can also delete all groups that wait for it."""
        with self._lock:
            self._deleting[arn].add(name)
            lock = self._cluster_locks[arn]
        try:
            while not lock.acquire(blocking=False):
                call.progress("waiting for other groups to be deleted")
                call.pause(_LOCK_POLL_SECONDS)
            try:
                yield
            finally:
                lock.release()
        finally:
            with self._lock:
                self._deleting[arn].discard(name)


CONFLICT_RETRIES: Final = 12
# How many accepted updates may leave a difference.
MAX_UPDATES: Final = 40


@dataclass
class Clients:
    """The handlers' context: the API, and what all resources of a run share."""

    api: SageMakerApi
    quotas: QuotaLists
    allow_replace: bool = False  # clusters may be replaced
    declared_groups: _DeclaredGroups = field(default_factory=_DeclaredGroups)
    capacity_wait: float = 300.0
    leaving_teams: frozenset[str] = frozenset()
    where: str = ""  # the place of the settings that allow losses, for messages
    emptying: threading.RLock = field(default_factory=threading.RLock)  # one call empties the quotas of leaving teams


@dataclass(frozen=True)
class ResourceDiff:
    """The result of a diff."""

    changes: list[PropertyChange] = field(default_factory=list)

    @property
    def replaces(self) -> list[str]:
        """Properties that make a replacement necessary, by their path."""
        return sorted({change.path for change in self.changes if change.replaces})


@dataclass(frozen=True)
class ResourceState:
    """A live resource: what the engine keeps of it."""

    resource_id: str
    state: Props
    inputs: Props


def forced_replacement(output: str) -> PropertyChange:
    """Return a replacement that no input causes: because of this output, the service can only recreate it."""
    return PropertyChange(output, "update", replaces=True)


class Handler(ABC):
    """One resource: everything that the engine can request."""

    name: ClassVar[str]
    seconds: ClassVar[float]

    def __init__(self, clients: Clients) -> None:
        self.clients = clients
        self.api = clients.api

    @property
    def table(self) -> ResourceTable:
        """The resource's definition."""
        return RESOURCES[self.name]

    @property
    def spec(self) -> Field:
        """The inputs."""
        return table(self.name)

    def diff(self, old: Props, new: Props, state: Props) -> ResourceDiff:
        """Compare the old and new inputs."""
        del state
        return ResourceDiff(list(changes(self.spec, old, new)))

    def diff_warnings(self, old: Props, new: Props, state: Props) -> list[str]:
        """Return notes about a comparison for the user, even if nothing changes."""
        del old, new, state
        return []

    @abstractmethod
    def create(self, call: EngineCall, inputs: Props) -> ResourceState:
        """Create it, or take over what an interrupted run created."""

    @abstractmethod
    def read(self, call: EngineCall, resource_id: str, inputs: Props, state: Props) -> ResourceState | None:
        """Return it as it is; None when it is gone. Without inputs it is an import."""

    def update(self, call: EngineCall, resource_id: str, *, old: Props, new: Props, state: Props) -> ResourceState:
        """Change the live resource to the new inputs; by default, nothing but the state has them."""
        del call, old, state
        return ResourceState(resource_id, new, new)

    @abstractmethod
    def delete(self, call: EngineCall, resource_id: str) -> None:
        """Delete it; no error if it is gone."""

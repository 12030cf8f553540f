"""What controllers read of an endpoint: everything that exists in it at one moment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

__all__ = ["Snapshot", "View"]

Documents = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Snapshot:
    """What exists in all regions: by name (EKS clusters, add-ons, clusters), ARN or ID.

    `nodes` are NodeDetails by cluster; `entries` have their `policies`; `subnets` have `zone` and `zoneId`. A quota or
    policy that is Updating appears as it was before. `cut_off`: IDs of instances whose network lost what they need;
    `joining`: of those that run and haven't joined Kubernetes.
    """

    eks: Documents
    addons: Documents
    clusters: Documents
    nodes: dict[str, list[dict[str, Any]]]
    entries: list[dict[str, Any]]
    quotas: Documents
    policies: Documents
    subnets: Documents
    cut_off: set[str]
    joining: set[str] = field(default_factory=set)


class View(Protocol):
    """The state of an endpoint, to be read from any thread, and a way to call it as the service itself."""

    @property
    def latency_factor(self) -> float:
        """Return how long changes take: 1 as on AWS, 0 no time."""

    def held(self) -> AbstractContextManager[None]:
        """Hold the endpoint's lock, so that several reads are consistent; callbacks wait meanwhile."""

    def snapshot(self) -> Snapshot:
        """Return what exists."""

    def contexts(self) -> Iterator[Any]:
        """Yield the context of the endpoint's region and of others that have records; call it in `held`."""

    def call(self, region: str, service: str, operation: str, **parameters: Any) -> dict[str, Any]:
        """Call an operation, not from a callback; ServiceError if it is rejected."""

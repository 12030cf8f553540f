"""The interface of controllers, which act in the cluster when something changes here, and what they read.

See local/hpkit_local/controllers.

Callbacks run in order, one at a time, when a status machine reaches its end; they get what the Describe call would
return. They must be quick and must not call the endpoint. To keep the object in its running status during slow work
elsewhere, raise `RequeueAfter`: the same callback is called again. To fail the change, raise `ControllerError`.
`noticed` raises neither.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["ControllerError", "Controllers", "EksConnection", "RequeueAfter", "Snapshot"]

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


Document = Mapping[str, Any]


class RequeueAfter(Exception):  # noqa: N818 - it is a request for time, not an error
    """The work is under way: ask again after `seconds` (real time)."""

    def __init__(self, seconds: float = 0.2) -> None:
        super().__init__(f"ask again in {seconds} s")
        self.seconds = seconds


class ControllerError(Exception):
    """A controller cannot do its work; the message becomes the object's failure reason."""


@dataclass(frozen=True)
class EksConnection:
    """How to reach the API server of a cluster, for DescribeCluster of EKS."""

    endpoint: str
    certificate_authority: str


class Controllers:
    """What happens in the cluster when something changes in the endpoint: here, nothing. Subclass it."""

    def started(self, view: Any) -> None:
        """Hear that the endpoint begins to serve; `view`, a BackendView, reads its state from any thread."""

    def stopped(self) -> None:
        """Hear that the endpoint no longer serves."""

    def asked(self, page: str, body: bytes) -> Document | None:  # noqa: ARG002 - see Controllers
        """Answer a POST to /_hpkit/<page>, without the endpoint's lock held; None if no such page exists."""
        return None

    def eks_cluster_requested(self, name: str, others: Sequence[str]) -> None:
        """Get notified that an EKS cluster is requested while others exist; raises ControllerError to reject it."""

    def eks_cluster_created(self, cluster: Document) -> EksConnection | None:  # noqa: ARG002 - see Controllers
        """Prepare an EKS cluster that is about to become ACTIVE; None keeps the invented endpoint."""
        return None

    def brings_cert_manager(self) -> bool:
        """Return whether the EKS cluster has a cert-manager that no add-on installed."""
        return False

    def submit(self, key: str, document: Document | None) -> None:
        """Apply an object that is about to take effect, or delete what is about to vanish (None).

        key: `eks`, `addon`, `cluster`, `autoscaling`, `quota` or `policy`, a slash, and the name or ID; or
        `dependencies/` and a HyperPod cluster, which needs them and is about to be created.
        """

    def noticed(self) -> None:
        """Hear that nodes, access entries or the status of a HyperPod cluster changed."""

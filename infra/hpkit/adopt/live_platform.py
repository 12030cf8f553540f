"""A live platform as its APIs describe it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["LiveAccessEntry", "LiveAddon", "LivePlatform"]

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LiveAddon:
    """An EKS add-on: the response of DescribeAddon, and its configuration, None where the text is no document."""

    described: Document
    configuration: Document | None

    @property
    def version(self) -> str:
        """Its version."""
        return str(self.described["addonVersion"])


@dataclass(frozen=True, slots=True)
class LiveAccessEntry:
    """An access entry: the response of DescribeAccessEntry, and of ListAssociatedAccessPolicies."""

    described: Document
    policies: Sequence[Document]

    @property
    def principal(self) -> str:
        """ARN of the role or user."""
        return str(self.described["principalArn"])

    @property
    def groups(self) -> frozenset[str]:
        """Kubernetes groups."""
        return frozenset(self.described.get("kubernetesGroups", ()))

    def has(self, policy: str) -> bool:
        """Return whether the policy with that name is associated for the whole cluster."""
        return any(
            str(association["policyArn"]).endswith(f"/{policy}") and association["accessScope"]["type"] == "cluster"
            for association in self.policies
        )


@dataclass(frozen=True, slots=True)
class LivePlatform:
    """The responses of the APIs, as boto3 and the Kubernetes API return them.

    - cluster: DescribeCluster.
    - eks: the `cluster` of EKS's DescribeCluster.
    - zones: subnet id → zone.
    - quotas, policies: DescribeComputeQuota and DescribeClusterSchedulerConfig of all that belong to the cluster.
    - identities: pod identity associations.
    - node_classes, node_pools: Kubernetes objects.
    - objects: `Kind namespace/name` → object, of the Kubernetes kinds that hpkit creates or patches.
    - unknown: the calls that failed, one sentence for each.
    """

    cluster: Document
    eks: Document
    zones: Mapping[str, str]
    quotas: Sequence[Document] = ()
    policies: Sequence[Document] = ()
    addons: Mapping[str, LiveAddon] = field(default_factory=dict)
    entries: Sequence[LiveAccessEntry] = ()
    identities: Sequence[Document] = ()
    node_classes: Sequence[Document] = ()
    node_pools: Sequence[Document] = ()
    objects: Mapping[str, Document] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()

    @property
    def arn(self) -> str:
        """ARN of the HyperPod cluster."""
        return str(self.cluster["ClusterArn"])

    @property
    def region(self) -> str:
        """The region of the cluster."""
        return self.arn.split(":")[3]

    @property
    def account(self) -> str:
        """The account of the cluster."""
        return self.arn.split(":")[4]

    @property
    def partition(self) -> str:
        """The partition of the cluster."""
        return self.arn.split(":")[1]

    @property
    def eks_name(self) -> str:
        """Name of the EKS cluster."""
        return str(self.eks["name"])

    @property
    def autoscales(self) -> bool:
        """Return whether managed Karpenter is on."""
        return bool(self.cluster.get("AutoScaling", {}).get("Mode") == "Enable")

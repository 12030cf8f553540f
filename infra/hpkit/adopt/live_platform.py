"""A live platform, as adopt reads it: the cluster, its add-ons, and remarks about what isn't adopted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hpkit.plan.existing import POD_ACCOUNTS, ROLE_BY_USER

__all__ = ["LiveAccessEntry", "LiveAddon", "LivePlatform", "Remarks", "addons_of", "association_of"]

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LiveAddon:
    """An EKS add-on: the response of DescribeAddon, and its configuration; None if the text isn't a valid document."""

    described: Document
    configuration: Document | None

    @property
    def version(self) -> str:
        """The installed version, such as v1.6.0-eksbuild.1."""
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
    - api_groups: groups of the Kubernetes API; None if it couldn't be reached, and nothing else is read from it.
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
    api_groups: frozenset[str] | None = None
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


@dataclass
class Remarks:
    """Notes for the user.

    - unmanaged: live, and not managed by hpkit.
    - assumed: in the file, although no API returns it.
    - changes: what the first `up` will change.
    - blockers: what makes the adoption impossible.
    """

    unmanaged: list[str] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)
    blockers: list[str] = field(default_factory=list)


def addons_of(live: LivePlatform, remarks: Remarks) -> dict[str, Any]:
    """Return the add-ons for the file by name; omitted ones are added to the remarks, with the reason."""
    addons: dict[str, Any] = {}
    for name, addon in sorted(live.addons.items()):
        if addon.configuration is None:
            remarks.unmanaged.append(f"the add-on {name} {addon.version}: its configuration is neither JSON nor YAML")
            continue
        spec: dict[str, Any] = {"version": addon.version}
        if addon.configuration:
            spec["configurationValues"] = dict(addon.configuration)
        spec |= _role(name, addon, live)
        addons[name] = addon.version if spec.keys() == {"version"} else spec
    return addons


def _role(name: str, addon: LiveAddon, live: LivePlatform) -> dict[str, Any]:
    """Return the setting of the file that gives the add-on's pods the role that they have now."""
    if addon.described.get("serviceAccountRoleArn"):
        return {"serviceAccountRoleArn": addon.described["serviceAccountRoleArn"]}
    if addon.described.get("podIdentityAssociations"):
        return {"podIdentity": False}  # EKS creates and deletes them with the add-on
    account = POD_ACCOUNTS.get(name)
    found = association_of(live, account.namespace, account.name) if account else None
    if found is not None and not found.get("ownerArn"):
        return {"role": found["roleArn"]}
    # As it is: that need neither hpkit's role nor one from the user.
    return {"podIdentity": False} if account is not None and (account.managed or name in ROLE_BY_USER) else {}


def association_of(live: LivePlatform, namespace: str, service_account: str) -> Mapping[str, Any] | None:
    """Return the pod identity association of a service account."""
    for each in live.identities:
        if (each["namespace"], each["serviceAccount"]) == (namespace, service_account):
            return each
    return None

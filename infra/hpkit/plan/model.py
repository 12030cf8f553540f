"""The frozen plan: everything the program will create for one environment.

A part that a person wrote is the config object itself (`spec`); all other fields are derived.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

from hpkit.config.models.autoscaling import NodePool
from hpkit.config.models.cluster import InstanceGroup, RestrictedInstanceGroup
from hpkit.config.models.governance import ClusterPolicy, GangScheduling, QuotaAmount, Team
from hpkit.config.models.organization import Environment
from hpkit.config.reading.document import Path
from hpkit.plan.user_ids import user_ids_of
from hpkit.text.formatting import seconds_in

__all__ = [
    "CLUSTER_QUEUE_SUFFIX",
    "NAMESPACE_PREFIX",
    "POD_SECURITY_LEVEL",
    "AddonPlan",
    "DependenciesPlan",
    "GroupPlan",
    "NetworkPlan",
    "NodePoolPlan",
    "Partition",
    "Plan",
    "QuotaResource",
    "RestrictedGroupPlan",
    "TeamPlan",
    "TypeCapacity",
    "ZonePlan",
    "exact",
    "resource_of",
]

# The service's names of the objects that it creates for a team.
NAMESPACE_PREFIX: Final = "hyperpod-ns-"
CLUSTER_QUEUE_SUFFIX: Final = "-clusterqueue"
# What Pod Security enforces in a team's namespace.
POD_SECURITY_LEVEL: Final = "baseline"


@dataclass(frozen=True, slots=True)
class Partition:
    """count MIG partitions of a profile such as `mig-1g.5gb`."""

    type: str
    count: int


@dataclass(frozen=True, slots=True)
class QuotaResource:
    """A team's reservation of one instance type, with shares converted to whole instances.

    The API's ComputeQuotaResource. path is its position in the file; share is kept for display. An elastic one relies
    on Karpenter.
    """

    instance_type: str
    count: int | None = None
    accelerators: int | None = None
    v_cpu: Fraction | None = None
    memory_in_gib: Fraction | None = None
    partition: Partition | None = None
    elastic: bool = False
    future: bool = False
    share: Fraction | None = None
    path: Path = ()

    @property
    def row(self) -> dict[str, Any]:
        """Return what the API has of it, with names that begin in lower case."""
        values = {
            "instanceType": self.instance_type,
            "count": self.count,
            "accelerators": self.accelerators,
            "vCpu": None if self.v_cpu is None else float(self.v_cpu),
            "memoryInGiB": None if self.memory_in_gib is None else float(self.memory_in_gib),
            "acceleratorPartition": self.partition and {"type": self.partition.type, "count": self.partition.count},
        }
        return {name: value for name, value in values.items() if value is not None}


def resource_of(stated: QuotaAmount, count: int | None = None) -> QuotaResource:
    """Return an amount of the file in exact numbers; count: instances that replace a share."""
    partition = stated.accelerator_partition
    return QuotaResource(
        instance_type=stated.instance_type,
        count=stated.count if count is None else count,
        accelerators=stated.accelerators,
        v_cpu=exact(stated.v_cpu),
        memory_in_gib=exact(stated.memory_in_gib),
        partition=None if partition is None else Partition(partition.type, partition.count),
    )


def exact(value: float | None) -> Fraction | None:
    """Return a number as it was written: 0.1 is a tenth, not the double nearest to it."""
    return None if value is None else Fraction(repr(value))


@dataclass(frozen=True, slots=True)
class TeamPlan:
    """A team that has quota in this environment, with the service's names of its objects.

    spec: the team in the file, with the environment's overrides. named: the quota's name in the file, if it isn't the
    team's name. made_role: ARN of the role that the program creates for the team, which is a member.
    """

    spec: Team
    quota_resources: tuple[QuotaResource, ...]
    is_shared_pool: bool = False
    named: str | None = None
    made_role: str | None = None

    @property
    def name(self) -> str:
        """Return the team's name."""
        return self.spec.name

    @property
    def absolute_borrow_limits(self) -> dict[str, tuple[QuotaResource, ...]]:
        """Return instance type → the most of it that the team borrows."""
        limits = self.spec.sharing.absolute_borrow_limits
        found = {
            limit.instance_type: [each for each in limits if each.instance_type == limit.instance_type]
            for limit in limits
        }
        return {name: tuple(map(resource_of, found[name])) for name in sorted(found)}

    @property
    def quota_config(self) -> dict[str, Any]:
        """Return the API's ComputeQuotaConfig, with names that begin in lower case."""
        sharing: dict[str, Any] = {"strategy": self.spec.sharing.strategy}
        if self.spec.sharing.borrow_limit is not None:
            sharing["borrowLimit"] = self.spec.sharing.borrow_limit
        if limits := self.absolute_borrow_limits:
            sharing["absoluteBorrowLimits"] = [each.row for limit in limits.values() for each in limit]
        return {
            "computeQuotaResources": [each.row for each in self.quota_resources],
            "resourceSharingConfig": sharing,
            "preemptTeamTasks": self.spec.preempt_team_tasks,
        }

    @property
    def user_ids(self) -> range:
        """Return the user and group ids of the team's pods on the shared file system."""
        return user_ids_of(self.name, self.spec.user_ids)

    @property
    def quota_name(self) -> str:
        """Return the API's name of the team's quota."""
        return self.named or self.name

    @property
    def namespace(self) -> str:
        """Return the namespace that the service creates for the team."""
        return f"{NAMESPACE_PREFIX}{self.name}"

    @property
    def cluster_queue(self) -> str:
        """Return the name of the team's ClusterQueue."""
        return f"{self.namespace}{CLUSTER_QUEUE_SUFFIX}"

    @property
    def local_queue(self) -> str:
        """Return the name of the team's LocalQueue."""
        return f"{self.namespace}-localqueue"

    @property
    def run_seconds(self) -> tuple[int, int] | None:
        """Return the default and the longest run time of the team's jobs; None without a limit."""
        stated = self.spec.max_run_time
        if stated is None:
            return None
        return int(seconds_in(stated.default or stated.limit)), int(seconds_in(stated.limit))

    @property
    def priority_labels(self) -> tuple[str, ...]:
        """Return the values of the label by which members rank their work, none where all of the policy are."""
        return tuple(f"{name}-priority" for name in self.spec.priority_classes)

    @property
    def space_priority_label(self) -> str | None:
        """Return the value of that label on the team's spaces, None where it is chosen as for other work."""
        name = self.spec.space_priority_class
        return None if name is None else f"{name}-priority"

    @property
    def lends(self) -> bool:
        """Return whether other teams can use the team's idle quota."""
        return self.spec.sharing.strategy != "DontLend"

    @property
    def borrows(self) -> bool:
        """Return whether the team can use more than its quota."""
        return self.spec.sharing.strategy == "LendAndBorrow"


@dataclass(frozen=True, slots=True)
class TypeCapacity:
    """Instances of one type: permanent ones always run; maximum is what Karpenter can grow to.

    maximum is None if no NodePool limit bounds it. groups and pools are the contributors.
    """

    permanent: int
    maximum: int | None
    groups: tuple[str, ...]
    pools: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ZonePlan:
    """One zone: where its nodes get their addresses; inside_vpc, when that is part of the VPC's own range."""

    availability_zone: str
    node_cidr: str | None
    subnet_id: str | None
    inside_vpc: bool = False


@dataclass(frozen=True, slots=True)
class NetworkPlan:
    """The network: created, or found where it is."""

    vpc_id: str | None
    zones: tuple[ZonePlan, ...]
    nat_gateways: int
    endpoints: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """An instance group, its zones, and whether a NodeClass names it (then Karpenter owns its count)."""

    spec: InstanceGroup
    zones: tuple[str, ...]
    node_class: str | None

    @property
    def autoscaled(self) -> bool:
        """Return whether Karpenter manages the group's count."""
        return self.node_class is not None


@dataclass(frozen=True, slots=True)
class RestrictedGroupPlan:
    """A restricted instance group and its zones; no quota counts its instances, and Karpenter never owns its count."""

    spec: RestrictedInstanceGroup
    zones: tuple[str, ...]

    @property
    def autoscaled(self) -> bool:
        """Return that Karpenter does not own the group's count."""
        return False


@dataclass(frozen=True, slots=True)
class NodePoolPlan:
    """A NodePool with the instance types and zones that match its requirements."""

    spec: NodePool
    instance_types: tuple[str, ...]
    zones: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AddonPlan:
    """An EKS add-on with the version to install; None lets EKS choose, because none is pinned.

    configuration: the file's configurationValues, merged over hpkit's own. role, service_account_role_arn,
    pod_identity: how the file gives its pods an existing role.
    """

    name: str
    version: str | None
    configuration: Mapping[str, Any] = field(default_factory=dict)
    role: str | None = None
    service_account_role_arn: str | None = None
    pod_identity: bool = True


@dataclass(frozen=True, slots=True)
class DependenciesPlan:
    """The chart that HyperPod requires: a path in the project or an `oci://` reference, with all its values."""

    chart: str
    version: str | None
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that the program creates for one environment of one organization.

    groups are the ordinary ones, which capacity and quotas count. For an existing cluster, spec has no autoscaling.
    topology_aware_scheduling is whether hpkit turns it on; manages_topology is whether hpkit manages it at all.
    dependencies: the chart that is installed before the cluster, None if the EKS cluster has it.
    """

    organization: str
    environment: str
    spec: Environment
    tags: Mapping[str, str]
    network: NetworkPlan
    groups: tuple[GroupPlan, ...]
    restricted_groups: tuple[RestrictedGroupPlan, ...]
    node_pools: tuple[NodePoolPlan, ...]
    policy: ClusterPolicy | None
    teams: tuple[TeamPlan, ...]
    capacity: Mapping[str, TypeCapacity]
    addons: tuple[AddonPlan, ...]
    dependencies: DependenciesPlan | None
    topology_aware_scheduling: bool

    @property
    def owner_tags(self) -> dict[str, str]:
        """Return the tags that identify a resource's owner."""
        return {key: self.tags[key] for key in ("hpkit:organization", "hpkit:environment")}

    def owns(self, tags: Mapping[str, str]) -> bool:
        """Return whether tags mark a resource as this stack's own."""
        return self.owner_tags.items() <= tags.items()

    @property
    def stack(self) -> str:
        """Return the name of the Pulumi stack."""
        return f"{self.organization}-{self.environment}"

    @property
    def eks_name(self) -> str:
        """Return the name of the EKS cluster: that of the existing one, or the stack's."""
        existing = self.spec.eks.existing
        return existing.name if existing else self.stack

    @property
    def all_groups(self) -> tuple[GroupPlan | RestrictedGroupPlan, ...]:
        """Return every instance group of the cluster."""
        return (*self.groups, *self.restricted_groups)

    @property
    def own_groups(self) -> tuple[GroupPlan | RestrictedGroupPlan, ...]:
        """Return every instance group that the stack creates: none of an existing cluster."""
        return () if self.spec.cluster.existing else self.all_groups

    @property
    def has_static_nodes(self) -> bool:
        """Return whether an instance group has nodes that Karpenter doesn't add."""
        return any(not group.autoscaled and group.spec.instance_count for group in self.groups)

    @property
    def policy_name(self) -> str:
        """Return the API's name of the cluster policy."""
        named = self.spec.governance.policy_name if self.spec.governance else None
        return named or self.stack

    @property
    def gang_scheduling(self) -> GangScheduling | None:
        """Return how hpkit sets gang scheduling, on or off; None if it doesn't change it."""
        governance = self.spec.governance
        if governance is None or governance.installed:
            return None
        if governance.gang_scheduling is None and not self.manages_topology:
            return None
        return governance.gang_scheduling or GangScheduling(enable=False)

    @property
    def manages_topology(self) -> bool:
        """Return whether hpkit turns topology-aware scheduling on or off."""
        governance = self.spec.governance
        if governance is None or governance.installed:
            return False
        return governance.topology_aware_scheduling != "Unmanaged"

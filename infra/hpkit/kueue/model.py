"""The simulator's input: Kueue's objects, as plain data in whole base units.

CPU is in millicores, memory in bytes, all else in pieces. None as a limit is no limit, as in Kueue's API. Everything
here can be built by hand; `hpkit.kueue.model_of` builds it from a plan.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

__all__ = [
    "UNCONSTRAINED",
    "Admission",
    "BorrowWithinCohort",
    "ClusterQueue",
    "Cohort",
    "FlavorFungibility",
    "FlavorQuotas",
    "Model",
    "Node",
    "PodSet",
    "PodSetAssignment",
    "Preemption",
    "ResourceGroup",
    "ResourceQuota",
    "Strategy",
    "Topology",
    "TopologyRequest",
    "WaitForPodsReady",
    "Workload",
    "open_flavors",
    "per_unit",
]

Policy = Literal["Never", "LowerPriority", "LowerOrNewerEqualPriority", "Any"]
Strategy = Literal["LessThanOrEqualToFinalShare", "LessThanInitialShare"]
Fungibility = Literal["MayStopSearch", "TryNextFlavor"]
# With this annotation, pods request a topology without constraints.
UNCONSTRAINED: Final = "kueue.x-k8s.io/podset-unconstrained-topology"


def per_unit(resource: str) -> int:
    """Return how many of the model's units equal one Kubernetes unit: CPUs are counted in millicores."""
    return 1000 if resource == "cpu" else 1


def open_flavors(topologies: Mapping[str, bool | None], *, asks: bool) -> frozenset[str]:
    """Return the flavors of a queue that accept pods; asks: whether the pods request a topology.

    topologies: whether each flavor of the queue has a topology; None if that isn't known, or doesn't matter. If all
    have one, it's implied. Source: Kueue 0.19.2, checkPodSetAndFlavorMatchForTAS.
    """
    implied = all(topologies.values())
    return frozenset(name for name, has in topologies.items() if implied or has in (None, asks))


@dataclass(frozen=True, slots=True)
class ResourceQuota:
    """Quota of one resource of one flavor."""

    nominal: int = 0
    borrowing_limit: int | None = None
    lending_limit: int | None = None


@dataclass(frozen=True, slots=True)
class FlavorQuotas:
    """A flavor's quotas, by resource."""

    name: str
    resources: Mapping[str, ResourceQuota]


@dataclass(frozen=True, slots=True)
class ResourceGroup:
    """Resources that are assigned together from one flavor, and the flavors in the order in which they are tried."""

    covered_resources: tuple[str, ...]
    flavors: tuple[FlavorQuotas, ...]


@dataclass(frozen=True, slots=True)
class BorrowWithinCohort:
    """Lets a workload that will borrow evict others' workloads; used only by classic preemption."""

    policy: Literal["Never", "LowerPriority"] = "LowerPriority"
    max_priority_threshold: int | None = None


@dataclass(frozen=True, slots=True)
class Preemption:
    """Whom a queue's workloads may evict."""

    within_cluster_queue: Policy = "Never"
    reclaim_within_cohort: Policy = "Never"
    borrow_within_cohort: BorrowWithinCohort | None = None


@dataclass(frozen=True, slots=True)
class FlavorFungibility:
    """Whether the next flavor is tried before borrowing or preempting in this one."""

    when_can_borrow: Fungibility = "MayStopSearch"
    when_can_preempt: Fungibility = "TryNextFlavor"
    preference: Literal["BorrowingOverPreemption", "PreemptionOverBorrowing"] = "BorrowingOverPreemption"


@dataclass(frozen=True, slots=True)
class Cohort:
    """A cohort that is a Kubernetes object; one that queues merely name has no quota, no parent and weight 1."""

    name: str
    parent: str | None = None
    fair_weight: float = 1.0
    flavors: tuple[FlavorQuotas, ...] = ()


@dataclass(frozen=True, slots=True)
class ClusterQueue:
    """A team's queue; if it isn't `active`, it admits nothing more (Kueue's stopPolicy Hold)."""

    name: str
    cohort: str | None = None
    resource_groups: tuple[ResourceGroup, ...] = ()
    queueing_strategy: Literal["BestEffortFIFO", "StrictFIFO"] = "BestEffortFIFO"
    fair_weight: float = 1.0
    preemption: Preemption = Preemption()
    fungibility: FlavorFungibility = FlavorFungibility()
    active: bool = True


@dataclass(frozen=True, slots=True)
class TopologyRequest:
    """How close to each other pods must be; `level` is the node label of the level, not used when unconstrained."""

    mode: Literal["required", "preferred", "unconstrained"]
    level: str | None = None


@dataclass(frozen=True, slots=True)
class PodSet:
    """Equal pods of a workload.

    per_pod: amounts of one pod. min_count: how few pods are enough (partial admission). flavors: the flavors that the
    pods' node selectors, affinities and tolerations admit; None is all.
    """

    name: str
    count: int
    per_pod: Mapping[str, int]
    min_count: int | None = None
    flavors: frozenset[str] | None = None
    topology: TopologyRequest | None = None


@dataclass(frozen=True, slots=True)
class PodSetAssignment:
    """A pod set's assignment: flavor and amount of each resource; `domains` are (leaf of the topology, pods)."""

    name: str
    count: int
    flavors: Mapping[str, str]
    usage: Mapping[str, int]
    domains: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Admission:
    """Time and assignment of a workload's admission; `evicted`: it's being evicted, and still holds its quota."""

    admitted: float
    pod_sets: tuple[PodSetAssignment, ...]
    evicted: bool = False


@dataclass(frozen=True, slots=True)
class Workload:
    """A task: its pod sets are admitted together or not at all.

    created: when it entered its queue, in seconds. run: how long it runs once its pods are ready, None for ever.
    admission: the quota that it holds, if it already runs. start: how long its pods take to become ready after each
    admission. Names are unique; they replace the object's UID where Kueue breaks a tie.
    """

    name: str
    queue: str
    pod_sets: tuple[PodSet, ...]
    priority: int = 0
    created: float = 0.0
    run: float | None = None
    admission: Admission | None = None
    start: float = 0.0


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a topology, with its resources for pods; one that isn't ready is ignored."""

    name: str
    labels: Mapping[str, str]
    allocatable: Mapping[str, int]
    ready: bool = True


@dataclass(frozen=True, slots=True)
class Topology:
    """Node labels from the widest level down, and the nodes.

    flavors: those whose pods are placed on it, each with the labels of its nodes.
    """

    levels: tuple[str, ...]
    nodes: tuple[Node, ...]
    flavors: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WaitForPodsReady:
    """Gang scheduling. Times are in seconds.

    recovery_timeout: 0 for none. timestamp: the time that orders evicted workloads. backoff_limit_count: None for no
    limit.
    """

    timeout: float
    recovery_timeout: float
    block_admission: bool = False
    timestamp: Literal["Eviction", "Creation"] = "Eviction"
    backoff_limit_count: int | None = None
    backoff_base_seconds: int = 60
    backoff_max_seconds: int = 3600

    def retries_forever(self, start: float) -> bool:
        """Return whether a workload whose pods take this time to become ready is retried without end."""
        return self.backoff_limit_count is None and start > self.timeout


@dataclass(frozen=True, slots=True)
class Model:
    """Queues and cohorts, and how idle capacity is shared: by these strategies, or None for classic preemption.

    wait_for_pods_ready: None without gang scheduling.
    """

    queues: tuple[ClusterQueue, ...]
    cohorts: tuple[Cohort, ...] = ()
    fair_sharing: tuple[Strategy, ...] | None = None
    topologies: tuple[Topology, ...] = field(default=())
    wait_for_pods_ready: WaitForPodsReady | None = None

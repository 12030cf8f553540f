"""The data of a running platform, with the names of the APIs that it comes from.

Amounts are in Kubernetes' units: CPUs, bytes, numbers. Times are aware datetimes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

from hpkit.catalog import EFA
from hpkit.plan.model import CLUSTER_QUEUE_SUFFIX, NAMESPACE_PREFIX
from hpkit.text.document import Quantity

__all__ = [
    "AddonHealth",
    "ClusterEvent",
    "ClusterNode",
    "Condition",
    "Flavor",
    "Group",
    "KubernetesNode",
    "NodePool",
    "Observed",
    "Platform",
    "Pod",
    "Queue",
    "Quota",
    "SchedulerPolicy",
    "Task",
    "TaskPods",
    "TopologyAsked",
    "Warned",
    "main_resource",
    "team_of",
    "without_basics",
]


_ACCELERATORS = ("nvidia.com/gpu", "aws.amazon.com/neurondevice", "aws.amazon.com/neuroncore", "aws.amazon.com/neuron")
_BASICS = ("cpu", "memory", EFA)


def team_of(namespace: str) -> str:
    """Return the team for which the service created a namespace, otherwise the namespace."""
    return namespace.removeprefix(NAMESPACE_PREFIX)


def main_resource(names: Iterable[str]) -> str:
    """Return the main resource: an accelerator, a partition of one, or else CPUs."""
    present = set(names)
    for name in _ACCELERATORS:
        if name in present:
            return name
    return next((name for name in sorted(present) if name.startswith("nvidia.com/")), "cpu")


def without_basics(names: Iterable[str]) -> list[str]:
    """Return the resources that matter most in a text: all but CPUs, memory and EFA, if there are others."""
    every = list(names)
    return [name for name in every if name not in _BASICS] or every


@dataclass(frozen=True, slots=True)
class Group:
    """An instance group, or a restricted one, as DescribeCluster has it."""

    name: str
    instance_types: tuple[str, ...]
    target: int
    current: int
    status: str


@dataclass(frozen=True, slots=True)
class ClusterNode:
    """An instance, as in ListClusterNodes; message explains its status, if the service does.

    release: of its AMI; release_status: its comparison with offered ones (ImageVersionStatus); launched: LaunchTime.
    log: the last lines of its lifecycle script, if the instance failed.
    """

    instance_id: str
    group: str
    instance_type: str
    status: str
    message: str = ""
    release: str = ""
    release_status: str = ""
    launched: datetime | None = None
    log: tuple[str, ...] = ()

    @property
    def log_stream(self) -> str:
        """Return the stream of its lifecycle script (SageMaker HyperPod developer guide, cluster management)."""
        return f"LifecycleConfig/{self.group}/{self.instance_id}"


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """An event of the cluster (ListClusterEvents)."""

    time: datetime
    level: str
    about: str
    description: str


@dataclass(frozen=True, slots=True)
class AddonHealth:
    """An EKS add-on: its version, its status, and its problems reported by EKS."""

    name: str
    version: str
    status: str
    issues: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SchedulerPolicy:
    """The cluster policy (DescribeClusterSchedulerConfig); priority_classes: name → weight, none for first come."""

    name: str
    status: str
    message: str = ""
    fair_share: str = ""
    idle_sharing: str = ""
    priority_classes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Platform:
    """AWS's data: the cluster with groups and instances, the cluster policy, add-ons and events, latest first.

    - policy: None if the cluster has none.
    - kubernetes: the version of the EKS cluster. log_group: of the lifecycle scripts.
    - karpenter: the mode of managed Karpenter, karpenter_failure: why it failed, or "".
    - ending: instance group → when its training plan ends, if that is soon.
    - unread: which of nodes, policy and `addons` weren't read, and so might exist.
    """

    name: str
    status: str
    message: str
    groups: tuple[Group, ...]
    nodes: tuple[ClusterNode, ...]
    policy: SchedulerPolicy | None
    addons: tuple[AddonHealth, ...]
    events: tuple[ClusterEvent, ...]
    kubernetes: str = ""
    node_recovery: str = ""
    karpenter: str = ""
    karpenter_failure: str = ""
    log_group: str = ""
    ending: Mapping[str, str] = field(default_factory=dict)
    unread: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Quota:
    """Quota of one resource of one flavor; a limit of None is none."""

    nominal: Decimal
    borrowing_limit: Decimal | None = None
    lending_limit: Decimal | None = None
    used: Decimal = Decimal(0)
    borrowed: Decimal = Decimal(0)

    @property
    def lendable(self) -> Decimal:
        """Return how much of the idle nominal quota others can use."""
        return self.nominal if self.lending_limit is None else min(self.nominal, self.lending_limit)


@dataclass(frozen=True, slots=True)
class Queue:
    """A ClusterQueue; quotas by (flavor, resource), in the order of its resource groups.

    within, reclaim: Kueue's withinClusterQueue and reclaimWithinCohort. stopped: whether its stopPolicy pauses it.
    """

    name: str
    cohort: str | None
    weight: Decimal
    active: bool
    message: str
    within: str = "Never"
    reclaim: str = "Never"
    stopped: bool = False
    quotas: Mapping[tuple[str, str], Quota] = field(default_factory=dict)

    @property
    def problem(self) -> str:
        """Return why it admits nothing, "" if it's active."""
        if self.active:
            return ""
        return "it is paused (activationState: Disabled)" if self.stopped else self.message or "it isn't active"

    @property
    def team(self) -> str | None:
        """Return the team whose queue the service created, None for any other queue."""
        if not self.name.startswith(NAMESPACE_PREFIX) or not self.name.endswith(CLUSTER_QUEUE_SUFFIX):
            return None
        return team_of(self.namespace)

    @property
    def namespace(self) -> str:
        """Return the namespace whose tasks the queue is for, by the name that the service gives it."""
        return self.name.removesuffix(CLUSTER_QUEUE_SUFFIX)


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of a Workload that is True, or False with a reason."""

    status: bool
    reason: str
    message: str
    since: datetime | None


@dataclass(frozen=True, slots=True)
class Flavor:
    """A ResourceFlavor: the labels of its nodes, whether a topology places its pods, and the tolerations they get.

    topology: None if it doesn't matter.
    """

    name: str
    labels: Mapping[str, str]
    topology: bool | None
    tolerations: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class TopologyAsked:
    """How close to each other pods must be. level: the label of the nodes that they share, None for any.

    more: other parts of the request, such as slices; mode is None if it has only those.
    """

    mode: Literal["required", "preferred", "unconstrained"] | None
    level: str | None = None
    more: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskPods:
    """Identical pods of a task.

    requests: of one pod; spec: of their template; topology: their topology request, if any. least: how many of them are
    enough to start (partial admission).
    """

    name: str
    count: int
    requests: Mapping[str, Decimal]
    spec: Mapping[str, Any] = field(default_factory=dict)
    topology: TopologyAsked | None = None
    least: int | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """A Workload: Kueue's object for a task. owner is the user's object: its kind and name.

    queue: the ClusterQueue, empty if none serves its LocalQueue. requests: of all its pods, by resource. usage: what it
    was assigned last, by (flavor, resource). conditions by type. pod_sets: its pods, by requests. longest: its maximum
    run time in seconds, None if it isn't set; limit: the one that also ends it if none of its pods runs. retry_at: when
    Kueue queues it again after an eviction. project: its pods' label app.kubernetes.io/part-of. evictions: how often
    Kueue evicted it, by reason. reclaimed: pods that have ended, and whose quota it no longer uses. replaces: of a new
    one, UIDs of its object's existing tasks that end before; None if there are none. unranked: of a new one, why its
    priority isn't known.
    """

    name: str
    namespace: str
    uid: str
    owner_kind: str
    owner_name: str
    local_queue: str
    queue: str
    priority: int
    priority_class: str | None
    created: datetime
    pods: int
    active: bool
    requests: Mapping[str, Decimal]
    usage: Mapping[tuple[str, str], Decimal]
    conditions: Mapping[str, Condition]
    pod_sets: tuple[TaskPods, ...] = ()
    longest: float | None = None
    limit: float | None = None
    retry_at: datetime | None = None
    project: str = ""
    evictions: Mapping[str, int] = field(default_factory=dict)
    reclaimed: int = 0
    replaces: tuple[str, ...] | None = None
    unranked: str = ""

    @property
    def holds(self) -> Mapping[tuple[str, str], Decimal]:
        """Return its current usage; a finished one keeps its admission, but uses nothing."""
        return {} if self.has("Finished") else self.usage

    @property
    def team(self) -> str:
        """Return the team whose namespace it is in; the namespace itself where the service did not make it."""
        return team_of(self.namespace)

    @property
    def waits(self) -> bool:
        """Return whether it waits for Kueue to admit it."""
        return self.active and not self.has("Finished") and not self.has("Admitted")

    def has(self, condition: str) -> bool:
        """Return whether a condition is true."""
        return condition in self.conditions and self.conditions[condition].status


@dataclass(frozen=True, slots=True)
class KubernetesNode:
    """A node. layers: its network nodes, widest first, as far as they are labelled; pool: Karpenter's NodePool.

    trouble: what HyperPod's health checks and Kubernetes report about it, or "".
    """

    name: str
    group: str
    instance_type: str
    zone: str
    pool: str | None
    layers: tuple[str, ...]
    ready: bool
    cordoned: bool
    allocatable: Mapping[str, Decimal]
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, Any], ...] = ()
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod that hasn't succeeded.

    - task: the name of its Workload, if Kueue admitted it.
    - owner_kind, owner_name, template: the controller that created it, and the hash of a Deployment's template.
    - priority: the scheduler's. phase, ready: as in the API; deleted: when the deletion's grace period ends.
    - unplaced: why the scheduler finds no node.
    - stuck: why a container doesn't run: Kubernetes' reason and message.
    - evicted: why it was ended from outside, or exceeded its memory: a text.
    """

    name: str
    namespace: str
    node: str | None
    task: str | None
    requests: Mapping[str, Decimal]
    priority: int = 0
    owner_kind: str = ""
    owner_name: str = ""
    template: str = ""
    phase: str = "Running"
    ready: bool = True
    deleted: datetime | None = None
    finalizers: tuple[str, ...] = ()
    unplaced: str = ""
    stuck: tuple[str, str] | None = None
    evicted: str = ""


@dataclass(frozen=True, slots=True)
class Warned:
    """A warning event of Kubernetes about an object of a namespace."""

    namespace: str
    kind: str
    name: str
    reason: str
    message: str
    time: datetime


@dataclass(frozen=True, slots=True)
class NodePool:
    """A NodePool of Karpenter: its limits and what its nodes have, by resource."""

    name: str
    ready: bool
    message: str
    limits: Mapping[str, Quantity]
    used: Mapping[str, Quantity]


@dataclass(frozen=True, slots=True)
class Observed:
    """All that was read at one time. unknown: what could not be, each with the reason; its part is empty then.

    stopped: stopPolicy of stopped LocalQueues, by namespace and name. unread: the kinds of which nothing was read, in
    the plural. namespaces: where pods, events, LocalQueues and Workloads were read; None is everywhere.
    priority_classes: Kueue's. pod_priorities: of Kubernetes' PriorityClasses; "" is the default's.
    kueue_configuration: the text of Kueue's own configuration.
    """

    time: datetime
    platform: Platform | None = None
    queues: tuple[Queue, ...] = ()
    tasks: tuple[Task, ...] = ()
    nodes: tuple[KubernetesNode, ...] = ()
    pods: tuple[Pod, ...] = ()
    warnings: tuple[Warned, ...] = ()
    pools: tuple[NodePool, ...] = ()
    priority_classes: Mapping[str, int] = field(default_factory=dict)
    pod_priorities: Mapping[str, int] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()
    flavors: Mapping[str, Flavor] = field(default_factory=dict)
    stopped: Mapping[tuple[str, str], str] = field(default_factory=dict)
    unread: frozenset[str] = frozenset()
    namespaces: tuple[str, ...] | None = None
    kueue_configuration: str = ""

    def stop(self, task: Task) -> str:
        """Return that a task's LocalQueue is stopped, as a text; or ""."""
        policy = self.stopped.get((task.namespace, task.local_queue))
        return (
            f"its LocalQueue {task.local_queue} is stopped (stopPolicy {policy}), and admits nothing" if policy else ""
        )

    def sees(self, namespace: str, kind: str = "workloads") -> bool:
        """Return whether all objects of a kind in a namespace were read; unread ones aren't known to be missing."""
        return kind not in self.unread and (self.namespaces is None or namespace in self.namespaces)

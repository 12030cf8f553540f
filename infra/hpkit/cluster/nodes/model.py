"""A node in the service and the API server, and reasons against an operation on it. No side effects."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from hpkit.cluster.live.model import ClusterNode, KubernetesNode, Observed, Pod, team_of
from hpkit.errors import SelectionError
from hpkit.plan.model import Plan
from hpkit.text.spelling import near

__all__ = ["LIMITS", "Node", "Verb", "choose", "counts_after", "nodes_of", "objections"]

Verb = Literal["replace", "reboot", "delete"]

# How many instance ids one request takes.
# Source: SageMaker API reference, BatchReplaceClusterNodes, BatchRebootClusterNodes, BatchDeleteClusterNodes.
LIMITS: Final[Mapping[Verb, int]] = {"replace": 25, "reboot": 25, "delete": 99}
# How HyperPod registers an instance as a node (SageMaker developer guide, "Resilience-related Kubernetes labels").
_PREFIX: Final = "hyperpod-"
# Statuses in which the service refuses with InvalidInstanceStatus: a change of the instance is under way.
_CHANGING: Final = ("Pending", "ShuttingDown", "SystemUpdating")


@dataclass(frozen=True, slots=True)
class Node:
    """An instance, its node name (None before it registers), and its pods, without those of DaemonSets.

    tasks: team/name of admitted tasks → their pods on the node. pods_read: whether pods in all namespaces were read, so
    that no others run there; registration_read: whether node is known.
    """

    instance: ClusterNode
    node: KubernetesNode | None
    pods: tuple[Pod, ...]
    tasks: Mapping[str, int]
    pods_read: bool = True
    registration_read: bool = True

    @property
    def id(self) -> str:
        """Return the instance id."""
        return self.instance.instance_id

    @property
    def name(self) -> str:
        """Return the name under which it is, or will be, in the Kubernetes API."""
        return _PREFIX + self.id

    @property
    def ready(self) -> bool:
        """Return whether the kubelet reports the node as ready."""
        return self.node is not None and self.node.ready

    @property
    def teams(self) -> tuple[str, ...]:
        """Return the teams that have pods there."""
        return tuple(sorted({team_of(pod.namespace) for pod in self.pods if pod.task is not None}))


def nodes_of(observed: Observed) -> tuple[Node, ...]:
    """Return every instance of a platform, by group and id."""
    if observed.platform is None:
        return ()
    registered = {node.name: node for node in observed.nodes}
    pods = defaultdict(list)
    for pod in observed.pods:
        if pod.node is not None and pod.owner != "DaemonSet":
            pods[pod.node].append(pod)
    pods_read = observed.namespaces is None and "pods" not in observed.unread
    names = {(task.namespace, task.name): f"{task.team}/{task.owner_name}" for task in observed.tasks}
    cluster_nodes = []
    for instance in sorted(observed.platform.nodes, key=lambda each: (each.group, each.instance_id)):
        name = _PREFIX + instance.instance_id
        node_pods = tuple(pods[name])
        tasks = Counter(
            names.get((pod.namespace, pod.task), f"{team_of(pod.namespace)}/{pod.task}")
            for pod in node_pods
            if pod.task
        )
        cluster_nodes.append(
            Node(instance, registered.get(name), node_pods, dict(tasks), pods_read, "nodes" not in observed.unread)
        )
    return tuple(cluster_nodes)


def choose(nodes: Sequence[Node], wanted_names: Iterable[str]) -> tuple[Node, ...]:
    """Return the nodes that were named, by instance id or node name, each once.

    Raises SelectionError for a name that none has.
    """
    nodes_by_name = {name: node for node in nodes for name in (node.id, node.name)}
    chosen: dict[str, Node] = {}
    for name in wanted_names:
        node = nodes_by_name.get(name)
        if node is None:
            likely = near(name, nodes_by_name)
            meant = f"; did you mean {likely}?" if likely else "; to list them, run `hpkit node list`"
            raise SelectionError(f"the cluster has no node {name}{meant}")
        chosen[node.id] = node
    return tuple(chosen.values())


def objections(observed: Observed, plan: Plan, verb: Verb, chosen: Sequence[Node]) -> Iterator[str]:
    """Yield why the service would reject an operation, or why it wouldn't last, each with a fix."""
    platform = observed.platform
    if platform is None:
        return
    if platform.status != "InService":
        yield (
            f"the cluster is {platform.status}, and the service changes nodes only when it's InService. Wait until "
            "`hpkit cluster status` shows InService"
        )
    for node in chosen:
        if node.instance.status in _CHANGING:
            yield f"{node.id} is {node.instance.status}. Wait until that change is complete"
    if verb == "delete":
        yield from _of_delete(observed, plan, chosen)


def _of_delete(observed: Observed, plan: Plan, chosen: Sequence[Node]) -> Iterator[str]:
    if observed.platform is not None and not observed.platform.continuous:
        yield (
            "the cluster has no continuous provisioning, which is required to delete single nodes. Lower the "
            "group's instanceCount in the organization file, and run `pulumi up`; the service then chooses the nodes"
        )
    autoscaled = {group.spec.name for group in plan.groups if group.autoscaled}
    least = {group.spec.name: group.spec.min_instance_count or 0 for group in plan.groups}
    for name in dict.fromkeys(node.instance.group for node in chosen):
        if name in autoscaled:
            yield (
                f"{name} is managed by Karpenter, which would recreate the node. Delete its NodeClaim (`kubectl get "
                "nodeclaims`), or lower the limits of the NodePool in the organization file"
            )
        remaining = counts_after(observed, chosen).get(name, 0)
        if remaining < least.get(name, 0):
            yield (
                f"{name} would have {remaining} instances, but its minInstanceCount is {least[name]}. Lower "
                "minInstanceCount in the organization file first"
            )


def counts_after(observed: Observed, chosen: Iterable[Node]) -> dict[str, int]:
    """Return instance group → its target once these nodes are deleted, of the groups that they are in."""
    platform = observed.platform
    fewer = Counter(node.instance.group for node in chosen)
    if platform is None:
        return {}
    return {group.name: max(0, group.target - fewer[group.name]) for group in platform.groups if fewer[group.name]}

"""The nodes of a platform: instances in SageMaker with their nodes in Kubernetes, and what runs on them."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from hpkit.cluster.live.model import ClusterNode, KubernetesNode, Observed, Platform, Pod, main_resource, team_of
from hpkit.text.document import Quantity
from hpkit.text.formatting import amount

__all__ = ["Node", "failed_instances", "log_words", "nodes_of"]

# HyperPod registers an instance as a node with this prefix (SageMaker developer guide, "Resilience-related Kubernetes
# labels").
_PREFIX: Final = "hyperpod-"


@dataclass(frozen=True, slots=True)
class Node:
    """A node. Fields from SageMaker are empty if its instances couldn't be read.

    - status, message, release, release_status: of the instance in SageMaker (ListClusterNodes).
    - registered, ready, cordoned: of the node in Kubernetes; None if nodes couldn't be read.
    - layers: its network nodes, widest first.
    - resource: its main resource, in whose units allocatable and used count. used: None if pods in some namespaces
      couldn't be read.
    - tasks: team/name of admitted tasks → their pods on it.
    """

    name: str
    group: str
    instance_type: str
    zone: str
    status: str
    message: str
    release: str
    release_status: str
    registered: bool | None
    ready: bool | None
    cordoned: bool | None
    layers: tuple[str, ...]
    resource: str
    allocatable: Quantity
    used: Quantity | None
    tasks: Mapping[str, int]

    @property
    def state_words(self) -> str:
        """Return its states in SageMaker and Kubernetes, and that of its AMI if it isn't up to date."""
        states = [self.status] if self.status else []
        if self.registered is None:
            states.append("?")
        elif not self.registered:
            states.append("not registered")
        elif not self.ready:
            states.append("not ready")
        elif not self.status:
            states.append("ready")
        if self.cordoned:
            states.append("cordoned")
        if self.release_status not in ("", "UpToDate"):
            states.append(f"AMI {self.release_status}")
        return ", ".join(states)

    @property
    def use_words(self) -> str:
        """Return the units in use and the total of the main resource; `?` if there might be more."""
        used = "?" if self.used is None else amount(self.used)
        return f"{used} of {amount(self.allocatable)} {self.resource.rpartition('/')[2]}" if self.registered else ""

    @property
    def is_available(self) -> bool:
        """Return whether it takes pods, as far as known."""
        return self.status in ("", "Running") and self.ready is not False and not self.cordoned


def failed_instances(platform: Platform, types: Collection[str]) -> tuple[str, ...]:
    """Return the failed instances of some types, with the service's reasons and the ends of their lifecycle logs."""
    failed = [each for each in platform.nodes if each.status == "Failure" and each.instance_type in types]
    return tuple(
        f"{each.instance_id} of group {each.group}: {each.message or 'SageMaker gives no reason'}"
        + (f"; its lifecycle script {log_words(platform, each)}" if each.log else "")
        for each in failed
    )


def log_words(platform: Platform, instance: ClusterNode) -> str:
    """Return the last lines of an instance's lifecycle log, and where the rest is."""
    return (
        f"ended with: {' | '.join(instance.log)}. The whole log is in the log group {platform.log_group}, stream "
        f"{instance.log_stream}"
    )


def nodes_of(observed: Observed) -> tuple[Node, ...]:
    """Return every node, by group and name."""
    instances = (
        {} if observed.platform is None else {_PREFIX + each.instance_id: each for each in observed.platform.nodes}
    )
    registered = {node.name: node for node in observed.nodes}
    pods = defaultdict(list)
    for pod in observed.pods:
        if pod.node is not None and pod.phase != "Failed":
            pods[pod.node].append(pod)
    names = {(task.namespace, task.name): f"{task.team}/{task.owner_name}" for task in observed.tasks}
    nodes = [
        _node(observed, name, instances.get(name), registered.get(name), pods[name], names)
        for name in {**instances, **registered}
    ]
    return tuple(sorted(nodes, key=lambda node: (node.group, node.name)))


def _node(
    observed: Observed,
    name: str,
    instance: ClusterNode | None,
    node: KubernetesNode | None,
    pods: Sequence[Pod],
    names: Mapping[tuple[str, str], str],
) -> Node:
    is_read = "nodes" not in observed.unread
    allocatable = node.allocatable if node is not None else {}
    resource = main_resource(name for name, quantity in allocatable.items() if quantity)
    tasks = Counter(
        names.get((pod.namespace, pod.task), f"{team_of(pod.namespace)}/{pod.task}")
        for pod in pods
        if pod.task is not None
    )
    used = sum((pod.requests.get(resource, Decimal(0)) for pod in pods), Decimal(0))
    is_whole = observed.namespaces is None and "pods" not in observed.unread
    return Node(
        name=name,
        group=instance.group if instance else node.group if node else "",
        instance_type=instance.instance_type if instance else node.instance_type if node else "",
        zone=node.zone if node else "",
        status=instance.status if instance else "",
        message=instance.message if instance else "",
        release=instance.release if instance else "",
        release_status=instance.release_status if instance else "",
        registered=node is not None if is_read else None,
        ready=(node is not None and node.ready) if is_read else None,
        cordoned=(node is not None and node.cordoned) if is_read else None,
        layers=node.layers if node else (),
        resource=resource,
        allocatable=allocatable.get(resource, Decimal(0)),
        used=used if is_whole else None,
        tasks=dict(tasks),
    )

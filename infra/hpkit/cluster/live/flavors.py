"""Finds the flavors of a queue that pods can use, and whether an instance of their types can ever hold a pod."""

from collections.abc import Collection, Mapping
from decimal import Decimal
from typing import Final

from hpkit.catalog import EFA, InstanceType, find_instance_type, kubelet_reserved
from hpkit.cluster.live.model import Observed, Queue, Task, TaskPods, without_basics
from hpkit.cluster.live.waiting import HELD, counted, sized
from hpkit.kueue.model import open_flavors, per_unit
from hpkit.plan.pods import may_go_to

__all__ = ["flavors_of", "for_pods", "has_topology", "large_enough", "oversized", "selected_flavors", "too_large"]

_GIB: Final = 1024**3


def for_pods(instance_type: InstanceType | None) -> dict[str, int]:
    """Return an instance's resources for pods in the model's units, as far as the catalog knows them."""
    if instance_type is None:
        return {}
    amounts = {EFA: instance_type.efa_interfaces, "pods": instance_type.max_pods, **instance_type.device_resources}
    if instance_type.vcpu is not None and instance_type.memory_gib is not None:
        cpu, memory = kubelet_reserved(instance_type.vcpu, instance_type.memory_gib)
        amounts |= {
            "cpu": int((instance_type.vcpu - cpu) * per_unit("cpu")),
            "memory": int((instance_type.memory_gib - memory) * _GIB),
        }
    return {name: amount for name, amount in amounts.items() if amount is not None}


def too_large(asked: Mapping[str, int], provided: Mapping[str, Mapping[str, int]]) -> str:
    """Return why a pod fits no instance of some types, with what each type provides; "" if it fits one of them.

    Types without the resource are shown only if no type has it.
    """
    reasons: dict[bool, list[str]] = {True: [], False: []}
    for instance_type, has in provided.items():
        short = [name for name, amount in asked.items() if amount > has.get(name, amount)]
        if not short:
            return ""
        name = without_basics(short)[0]
        amount, most = (Decimal(each[name]) / per_unit(name) for each in (asked, has))
        words = f"{counted(amount, name)} of {instance_type}, but an instance provides {sized(most, name)}"
        reasons[bool(most)].append(words)
    shown = reasons[True] or reasons[False]
    return f"one of its pods requests {'; and '.join(shown)}" if shown else ""


def selected_flavors(observed: Observed, pods: TaskPods, queue: Queue) -> frozenset[str]:
    """Return the flavors of a queue to which pods may go, by node selector and affinity."""
    flavors, details = {flavor for flavor, _ in queue.quotas}, observed.flavors
    keys = {key for name in flavors if name in details for key in details[name].labels}
    return frozenset(
        name for name in flavors if name not in details or may_go_to(pods.spec, details[name].labels, keys)
    )


def flavors_of(observed: Observed, pods: TaskPods, queue: Queue) -> frozenset[str]:
    """Return the flavors of a queue that can also place pods with these topology requests."""
    topologies = {name: has_topology(observed, name) for name, _ in queue.quotas}
    return selected_flavors(observed, pods, queue) & open_flavors(topologies, asks=pods.topology is not None)


def has_topology(observed: Observed, flavor: str) -> bool | None:
    """Return whether Kueue only admits pods to a flavor for which it finds nodes; None if that isn't known."""
    return observed.flavors[flavor].topology if flavor in observed.flavors else None


def large_enough(observed: Observed, pods: TaskPods, flavors: Collection[str]) -> frozenset[str]:
    """Return the flavors of which a node can hold one of the pods, or isn't known. Flavors have the names of types."""
    return frozenset(
        flavor
        for flavor in flavors
        if not _too_large(pods, (flavor,))
        or any(
            all(node.allocatable.get(name, 0) >= asked for name, asked in pods.requests.items())
            for node in observed.nodes
            if node.instance_type == flavor
        )
    )


def oversized(observed: Observed, task: Task, queue: Queue) -> str:
    """Return why no node can ever hold one of a task's pods, and what Kueue does with it; "" if nodes can.

    Kueue compares pods with nodes only in flavors with a topology.
    """
    sets = [(pods, selected_flavors(observed, pods, queue)) for pods in task.pod_sets]
    sets = [(pods, flavors) for pods, flavors in sets if flavors and not large_enough(observed, pods, flavors)]
    if not sets:
        return ""
    is_held = not any(has_topology(observed, name) for _, flavors in sets for name in flavors)
    return _too_large(sets[0][0], sorted(sets[0][1])) + (HELD if is_held and observed.flavors else "")


def _too_large(pods: TaskPods, flavors: Collection[str]) -> str:
    asked = {name: int(amount * per_unit(name)) for name, amount in pods.requests.items()}
    return too_large(asked, {flavor: for_pods(find_instance_type(flavor)) for flavor in flavors})

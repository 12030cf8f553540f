"""The nodes as a tree by the layers of the network, and how far apart the pods of a task sit.

Source: SageMaker developer guide, "Using topology-aware scheduling": layer 1 is the widest, layer 3 the nearest.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from hpkit.cluster.live.model import KubernetesNode, Observed, Pod, main_resource, team_of
from hpkit.text.formatting import amount

__all__ = ["Branch", "Leaf", "Placement", "placements", "tree_of"]

_NO_LAYER = "(no network layer)"


@dataclass(frozen=True, slots=True)
class Leaf:
    """A node: the number of units of its main resource, and how many are in use.

    used: None if pods in some namespaces couldn't be read. tasks: team/name of running tasks → their pods on it.
    """

    node: KubernetesNode
    resource: str
    allocatable: Decimal
    used: Decimal | None
    tasks: Mapping[str, int]

    @property
    def use_words(self) -> str:
        """Return the units in use and the total of the main resource."""
        used = "?" if self.used is None else amount(self.used)
        return f"{used} of {amount(self.allocatable)} {self.resource.rpartition('/')[2]}"


@dataclass(frozen=True, slots=True)
class Branch:
    """Nodes that share a network node; level counts from 1, the widest. Leaves are below the last level."""

    name: str
    level: int
    branches: tuple[Branch, ...]
    leaves: tuple[Leaf, ...]

    def all_leaves(self) -> Iterable[Leaf]:
        """Return every node below."""
        yield from self.leaves
        for branch in self.branches:
            yield from branch.all_leaves()


@dataclass(frozen=True, slots=True)
class Placement:
    """The places of a task's pods. shared: the nearest network node of all of them, None if there isn't one.

    level: of that network node, 4 if one node has all of them, 0 if nothing is shared.
    """

    task: str
    team: str
    pods: int
    nodes: int
    level: int
    shared: str | None


def tree_of(observed: Observed) -> tuple[Branch, ...]:
    """Return the branches of the widest layer; nodes without labels are under a separate one."""
    by_node = defaultdict(list)
    for pod in observed.pods:
        if pod.node is not None:
            by_node[pod.node].append(pod)
    names = {(task.namespace, task.name): f"{task.team}/{task.owner_name}" for task in observed.tasks}
    everywhere = observed.namespaces is None and "pods" not in observed.unread
    leaves = [
        _leaf(node, by_node[node.name], names, everywhere=everywhere)
        for node in sorted(observed.nodes, key=lambda each: each.name)
    ]
    return _branches(leaves, 0)


def _leaf(node: KubernetesNode, pods: Sequence[Pod], names: Mapping[tuple[str, str], str], *, everywhere: bool) -> Leaf:
    resource = main_resource(name for name, amount in node.allocatable.items() if amount)
    tasks = Counter(
        names.get((pod.namespace, pod.task), f"{team_of(pod.namespace)}/{pod.task}")
        for pod in pods
        if pod.task is not None
    )
    used = sum((pod.requests.get(resource, Decimal(0)) for pod in pods), Decimal(0))
    return Leaf(node, resource, node.allocatable.get(resource, Decimal(0)), used if everywhere else None, dict(tasks))


def _branches(leaves: Sequence[Leaf], depth: int) -> tuple[Branch, ...]:
    below: defaultdict[str, list[Leaf]] = defaultdict(list)
    for leaf in leaves:
        below[leaf.node.layers[depth] if len(leaf.node.layers) > depth else ""].append(leaf)
    branches = []
    for name in sorted(below, key=lambda each: (not each, each)):
        mine = below[name]
        deeper = [leaf for leaf in mine if name and len(leaf.node.layers) > depth + 1]
        here = tuple(leaf for leaf in mine if not name or len(leaf.node.layers) <= depth + 1)
        branches.append(Branch(name or _NO_LAYER, depth + 1, _branches(deeper, depth + 1) if deeper else (), here))
    return tuple(branches)


def placements(observed: Observed) -> tuple[Placement, ...]:
    """Return the places of each task's pods, those that are furthest apart first."""
    nodes = {node.name: node for node in observed.nodes}
    by_task: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for pod in observed.pods:
        if pod.task is not None and pod.node in nodes:
            by_task[pod.namespace, pod.task].append(pod.node)
    names = {(task.namespace, task.name): task.owner_name for task in observed.tasks}
    found = [_placement(names.get(key, key[1]), key[0], [nodes[name] for name in on]) for key, on in by_task.items()]
    return tuple(sorted(found, key=lambda each: (each.level, each.team, each.task)))


def _placement(task: str, namespace: str, on: Sequence[KubernetesNode]) -> Placement:
    distinct = {node.name: node for node in on}
    common = _common([node.layers for node in distinct.values()])
    alone = len(distinct) == 1
    return Placement(
        task=task,
        team=team_of(namespace),
        pods=len(on),
        nodes=len(distinct),
        level=4 if alone else len(common),
        shared=next(iter(distinct)) if alone else (common[-1] if common else None),
    )


def _common(paths: Sequence[Sequence[str]]) -> list[str]:
    common: list[str] = []
    for names in zip(*paths, strict=False):
        if len(set(names)) != 1:
            break
        common.append(names[0])
    return common

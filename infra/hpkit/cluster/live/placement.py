"""Finds out whether nodes have room for a task's pods, which quota doesn't say, and which jobs hold the parts.

It places pods as closely as possible, and ignores taints. Nothing is known for nodes that Karpenter adds, or if pods of
other teams couldn't be read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final

from hpkit.cluster.live.model import KubernetesNode, Pod, Queue, Task, TaskPods, main_resource
from hpkit.cluster.live.state import Jobs
from hpkit.cluster.live.waiting import counted
from hpkit.cluster.live.without_task import CohortSimulation
from hpkit.plan.pods import may_go_to
from hpkit.text.formatting import listing, plural

__all__ = ["Places"]

_SHOWN: Final = 3
Amounts = Mapping[str, Decimal]


@dataclass(frozen=True, slots=True)
class Places:
    """The nodes of a platform and what their pods request; starting: UIDs of new tasks that start before."""

    jobs: Jobs
    simulation: CohortSimulation
    starting: Collection[str] = ()

    def lacking(self, task: Task, queue: Queue, *, without: Collection[str] = ()) -> str:
        """Return why the nodes have no room for a task's pods; "" if they have, or if that isn't known.

        without: UIDs of tasks that end before.
        """
        observed = self.jobs.observed
        if observed.namespaces is not None or observed.unread & {"nodes", "pods", "resourceflavors"}:
            return ""
        gone = {
            (pod.namespace, pod.name) for each in observed.tasks if each.uid in without for pod in self.jobs.pods(each)
        }
        there: defaultdict[str, list[Pod]] = defaultdict(list)
        for pod in observed.pods:
            if pod.node is not None and pod.phase != "Failed" and (pod.namespace, pod.name) not in gone:
                there[pod.node].append(pod)
        free = {node.name: _left(node, there[node.name]) for node in observed.nodes}
        self._place_earlier(task, without, free)
        for pods in sorted(
            task.pod_sets, key=lambda each: -each.requests.get(main_resource(each.requests), Decimal(0))
        ):
            nodes = self._candidates(pods, queue)
            if nodes is None:
                return ""
            if not nodes:
                return "no node that is ready has the labels that its pods require"
            fitting = _placed(pods, nodes, free)
            if fitting < (pods.count if pods.least is None else pods.least):
                return f"{_words(pods, fitting)}{self._holding(nodes, there, main_resource(pods.requests))}"
        return ""

    def _place_earlier(self, task: Task, without: Collection[str], free: dict[str, dict[str, Decimal]]) -> None:
        """Use the nodes' room for pods that the scheduler places before a task's."""
        queues = {each.name: each for each in self.jobs.observed.queues}
        for other in self.jobs.observed.tasks:
            left = 0
            if other.uid in self.starting:
                left = other.pods
            elif other.has("Admitted") and other.created <= task.created and other.uid not in (task.uid, *without):
                unplaced = (pod.unplaced for pod in self.jobs.pods(other) if pod.node is None)
                left = sum(not words or "Insufficient" in words for words in unplaced)
            for pods in other.pod_sets if left and other.queue in queues else ():
                count = min(left, pods.count)
                left -= count
                if count and (nodes := self._candidates(pods, queues[other.queue])):
                    _placed(replace(pods, count=count), nodes, free)

    def is_unknown(self, task: Task, queue: Queue) -> bool:
        """Return whether other teams use the task's instance types, but their pods couldn't be read."""
        observed = self.jobs.observed
        flavors = {flavor for pods in task.pod_sets for flavor in self.simulation.flavors_of(pods, queue)}
        return observed.namespaces is not None and any(
            quota.used and flavor in flavors
            for other in observed.queues
            if other.name != queue.name and not observed.sees(other.namespace, "pods")
            for (flavor, _), quota in other.quotas.items()
        )

    def _candidates(self, pods: TaskPods, queue: Queue) -> list[KubernetesNode] | None:
        """Return the nodes to which pods may go; None if more can be added, or none exists yet."""
        details = self.jobs.observed.flavors
        flavors = [details[name] for name in self.simulation.flavors_of(pods, queue) if name in details]
        nodes = [
            node
            for node in self.jobs.observed.nodes
            if any(all(node.labels.get(key) == value for key, value in each.labels.items()) for each in flavors)
        ]
        if not nodes or any(node.pool for node in nodes):
            return None
        selected = pods.spec.get("nodeSelector") or {}
        return [
            node
            for node in nodes
            if node.ready and not node.cordoned and may_go_to(pods.spec, node.labels, {*node.labels, *selected})
        ]

    def _holding(self, nodes: Sequence[KubernetesNode], there: Mapping[str, Sequence[Pod]], resource: str) -> str:
        """Return which jobs hold parts of the nodes, those with most first."""
        tasks = {(task.namespace, task.name): task for task in self.jobs.observed.tasks}
        held: defaultdict[str, Decimal] = defaultdict(Decimal)
        on: defaultdict[str, set[str]] = defaultdict(set)
        for node in nodes:
            for pod in there[node.name]:
                task = tasks.get((pod.namespace, pod.task or ""))
                amount = pod.requests.get(resource, Decimal(0))
                if task is not None and amount:
                    name = f"{self.jobs.owner(task)[1]} of {task.team}"
                    held[name] += amount
                    on[name].add(node.name)
        names = sorted(held, key=lambda name: (-held[name], name))
        parts = [f"{name} holds {counted(held[name], resource)} on {plural(len(on[name]), 'node')}" for name in names]
        return f"; {listing(parts, _SHOWN)}" if parts else ""


def _left(node: KubernetesNode, pods: Sequence[Pod]) -> dict[str, Decimal]:
    left = dict(node.allocatable)
    for pod in pods:
        for name, amount in pod.requests.items():
            left[name] = left.get(name, Decimal(0)) - amount
    return left


def _placed(pods: TaskPods, nodes: Sequence[KubernetesNode], free: dict[str, dict[str, Decimal]]) -> int:
    """Return how many of the pods fit, and use the nodes' room for them."""
    rooms = {node.name: _room(free[node.name], pods.requests) for node in nodes}
    asked = pods.topology
    if asked is not None and asked.mode == "required" and asked.level is not None:
        under: defaultdict[str, list[KubernetesNode]] = defaultdict(list)
        for node in nodes:
            under[node.labels.get(asked.level, "")].append(node)
        nodes = max(under.values(), key=lambda each: sum(rooms[node.name] for node in each), default=[])
    left = pods.count
    for node in sorted(nodes, key=lambda node: rooms[node.name]):
        taken = min(left, rooms[node.name])
        for name, amount in pods.requests.items():
            free[node.name][name] = free[node.name].get(name, Decimal(0)) - amount * taken
        left -= taken
    return pods.count - left


def _room(free: Amounts, requests: Amounts) -> int:
    return min(
        (max(0, int(free.get(name, Decimal(0)) // amount)) for name, amount in requests.items() if amount),
        default=1_000,
    )


def _words(pods: TaskPods, fitting: int) -> str:
    resource = main_resource(pods.requests)
    wanted = f"{counted(pods.requests.get(resource, Decimal(0)), resource)} free for a pod"
    level = "" if pods.topology is None or pods.topology.mode != "required" else f" under one {pods.topology.level}"
    if not fitting:
        return f"no node{level} has {wanted}"
    return f"only {fitting} of {pods.count} pods find a node{level} with {wanted}"

"""Finds out whether nodes have room for a task's pods, which quota doesn't say, and which jobs hold the parts.

It says that nodes lack room if the pods don't fit however closely they're placed. The scheduler spreads pods
(kube-scheduler, NodeResourcesFit: LeastAllocated), so it says that nodes have room only if they have for any order.
Neither is known for nodes that Karpenter adds, for pods whose place depends on other pods, or next to unread pods.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from math import ceil, inf
from typing import Any, Final

from hpkit.cluster.live.flavors import flavors_of
from hpkit.cluster.live.model import KubernetesNode, Pod, Queue, Task, TaskPods, main_resource
from hpkit.cluster.live.state import Jobs
from hpkit.cluster.live.waiting import counted
from hpkit.plan.lustre import CLAIM, LOCAL_CLAIM
from hpkit.plan.pods import claims_of, may_go_to, tolerates
from hpkit.text.formatting import listing, plural

__all__ = ["Places"]

_SHOWN: Final = 3
_NEEDED: Final = {"nodes", "pods", "resourceflavors"}
# Of Node.status.allocatable: how many pods the kubelet runs. The scheduler counts it like a resource.
_PODS: Final = "pods"
_ONE: Final = Decimal(1)
Amounts = Mapping[str, Decimal]


@dataclass(frozen=True, slots=True)
class Places:
    """The nodes of a platform and what their pods request; starting: UIDs of new tasks that start before."""

    jobs: Jobs
    starting: Collection[str] = ()

    @property
    def unread(self) -> str:
        """Return what couldn't be read of nodes and their pods; "" if all was."""
        observed = self.jobs.observed
        kinds = sorted(observed.unread & _NEEDED)
        return listing(kinds) or ("" if observed.namespaces is None else "pods of other namespaces")

    def lacking(self, task: Task, queue: Queue, *, without: Collection[str] = ()) -> str:
        """Return why the nodes have no room for a task's pods; "" if they have, or if that isn't known.

        without: UIDs of tasks that end before.
        """
        if self.jobs.observed.unread & _NEEDED:
            return ""
        there = self._there(without, self.rank(task))
        free = self._free(there)
        for _, pods, nodes in self._earlier(task, without):
            _placed(pods, nodes, free)
        for pods in sorted(_sets(task), key=lambda each: -each.requests.get(main_resource(each.requests), Decimal(0))):
            candidates = self._candidates(pods, queue)
            if candidates is None:
                return ""
            if not candidates:
                return "no ready node has the labels that its pods require and only taints that they tolerate"
            fitting = _placed(pods, candidates, free)
            if fitting < _least(pods):
                scarce = _scarce(pods, candidates, free)
                return f"{_words(pods, fitting, scarce)}{self._holding(candidates, there, scarce)}"
        return ""

    def unknown(self, task: Task, queue: Queue, *, without: Collection[str] = ()) -> str:
        """Return why it isn't known whether the nodes have room for a task's pods; "" if it is."""
        rules = dict.fromkeys(rule for pods in task.pod_sets for rule in _not_computed(pods.spec))
        if rules:
            return f"whether nodes fit depends on {listing([*rules])}, which hpkit doesn't compute"
        if not self.jobs.observed.unread & _NEEDED and any(
            self._candidates(each, queue) is None for each in task.pod_sets
        ):
            return "its pods may wait until nodes for them have been added"
        if self.unread:
            return f"whether nodes have room isn't known, because {self.unread} couldn't be read"
        return self.depends(task, queue, without=without)

    def depends(self, task: Task, queue: Queue, *, without: Collection[str] = ()) -> str:
        """Return that nodes have room only if other pods are placed well; "" if they have wherever those are."""
        free = self._free(self._there(without))
        own = [(task, pods, self._candidates(pods, queue) or []) for pods in _sets(task)]
        placed = (*self._earlier(task, without), *own)
        for _, pods, nodes in own:
            names = {node.name for node in nodes}
            others = [
                (owner, other)
                for owner, other, theirs in placed
                if other is not pods and any(node.name in names for node in theirs)
            ]
            if nodes and _surely_placed(pods, nodes, free, ()) < _least(pods):
                return "nodes have room only if the scheduler preempts pods with a lower PriorityClass"
            if nodes and _surely_placed(pods, nodes, free, [other for _, other in others]) < _least(pods):
                owners = listing([*dict.fromkeys(owner.owner_name for owner, _ in others)], _SHOWN)
                return f"whether nodes have room depends on where the pods of {owners} are placed"
        return ""

    def rank(self, task: Task) -> float:
        """Return the scheduler's priority of pods for which it preempts lower ones; infinite if it isn't known."""
        classes = self.jobs.observed.pod_priorities
        specs = [pods.spec for pods in task.pod_sets if pods.spec.get("preemptionPolicy") != "Never"]
        names = [spec.get("priorityClassName") or "" for spec in specs]
        return max((classes.get(name, inf if name else 0) for name in names), default=-inf)

    def _there(self, without: Collection[str], rank: float = -inf) -> Mapping[str, list[Pod]]:
        """Return the pods on each node, from a priority on; without: UIDs of tasks that end before."""
        there: defaultdict[str, list[Pod]] = defaultdict(list)
        for pod in self.jobs.without(without).pods:
            if pod.node is not None and pod.phase != "Failed" and pod.priority >= rank:
                there[pod.node].append(pod)
        return there

    def _free(self, there: Mapping[str, Sequence[Pod]]) -> dict[str, dict[str, Decimal]]:
        return {node.name: _left(node, there.get(node.name, ())) for node in self.jobs.observed.nodes}

    def _earlier(
        self, task: Task, without: Collection[str]
    ) -> Iterator[tuple[Task, TaskPods, Sequence[KubernetesNode]]]:
        """Yield pods that the scheduler places before a task's, with their tasks and the nodes that they may use."""
        queues = {each.name: each for each in self.jobs.observed.queues}
        for other in self.jobs.observed.tasks:
            left = other.pods if other.uid in self.starting else 0
            if not left and other.has("Admitted") and other.created <= task.created:
                unplaced = (pod.unplaced for pod in self.jobs.pods(other) if pod.node is None)
                left = sum(not words or "Insufficient" in words for words in unplaced)
            ends = other.uid in (task.uid, *without)
            for pods in _sets(other) if left and other.queue in queues and not ends else ():
                count = min(left, pods.count)
                left -= count
                if count and (nodes := self._candidates(pods, queues[other.queue])):
                    yield other, replace(pods, count=count), nodes

    def _candidates(self, pods: TaskPods, queue: Queue) -> list[KubernetesNode] | None:
        """Return the nodes to which pods may go; None if more can be added, or none exists yet."""
        details = self.jobs.observed.flavors
        flavors = [details[name] for name in flavors_of(self.jobs.observed, pods, queue) if name in details]
        nodes = [
            node
            for node in self.jobs.observed.nodes
            if any(all(node.labels.get(key) == value for key, value in each.labels.items()) for each in flavors)
        ]
        if not nodes or any(node.pool for node in nodes):
            return None
        selected = pods.spec.get("nodeSelector") or {}
        tolerations = [
            *(pods.spec.get("tolerations") or ()),
            *(each for flavor in flavors for each in flavor.tolerations),
        ]
        return [
            node
            for node in nodes
            if node.ready
            and not node.cordoned
            and may_go_to(pods.spec, node.labels, {*node.labels, *selected})
            and all(tolerates(tolerations, each, pods.requests) for each in node.taints)
        ]

    def _holding(
        self, nodes: Sequence[KubernetesNode], there: Mapping[str, Sequence[Pod]], scarce: Sequence[str]
    ) -> str:
        """Return which jobs hold parts of the nodes, those with most first."""
        tasks, resource = {(task.namespace, task.name): task for task in self.jobs.observed.tasks}, scarce[0]
        held: defaultdict[str, Decimal] = defaultdict(Decimal)
        on: defaultdict[str, set[str]] = defaultdict(set)
        for node in nodes:
            for pod in there[node.name]:
                task = tasks.get((pod.namespace, pod.task or ""))
                amount = {**pod.requests, _PODS: _ONE}.get(resource, Decimal(0))
                if task is not None and amount:
                    ending = " (ending)" if pod.deleted is not None else ""
                    name = f"{self.jobs.owner(task)[1]} of {task.team}{ending}"
                    held[name] += amount
                    on[name].add(node.name)
        names = sorted(held, key=lambda name: (-held[name], name))
        parts = [f"{name} holds {_amount(held[name], resource)} on {plural(len(on[name]), 'node')}" for name in names]
        return f"; {listing(parts, _SHOWN)}" if parts else ""


def _sets(task: Task) -> list[TaskPods]:
    """Return a task's pods; each also uses one of the pods that a node can run."""
    return [replace(pods, requests={**pods.requests, _PODS: _ONE}) for pods in task.pod_sets]


def _least(pods: TaskPods) -> int:
    return pods.count if pods.least is None else pods.least


def _left(node: KubernetesNode, pods: Sequence[Pod]) -> dict[str, Decimal]:
    left = dict(node.allocatable)
    for pod in pods:
        for name, amount in (*pod.requests.items(), (_PODS, _ONE)):
            left[name] = left.get(name, Decimal(0)) - amount
    return left


def _placed(pods: TaskPods, nodes: Sequence[KubernetesNode], free: dict[str, dict[str, Decimal]]) -> int:
    """Return how many of the pods fit, and use the nodes' room for them."""
    rooms = {node.name: _room(free[node.name], pods.requests) for node in nodes}
    nodes = max(_domains(pods, nodes), key=lambda each: sum(rooms[node.name] for node in each), default=[])
    left = pods.count
    for node in sorted(nodes, key=lambda node: rooms[node.name]):
        taken = min(left, rooms[node.name])
        for name, amount in pods.requests.items():
            free[node.name][name] = free[node.name].get(name, Decimal(0)) - amount * taken
        left -= taken
    return pods.count - left


def _surely_placed(
    pods: TaskPods, nodes: Sequence[KubernetesNode], free: Mapping[str, Amounts], others: Sequence[TaskPods]
) -> int:
    """Return how many of the pods fit at least, wherever other pods are placed before.

    Others take room only from nodes where all of them together make a resource scarce. There, each of them takes the
    room of as many pods as its request of that resource has, rounded up.
    """
    asked = {name: amount for name, amount in pods.requests.items() if amount}
    total = {name: sum(each.requests.get(name, Decimal(0)) * each.count for each in others) for name in asked}
    fitting = []
    for domain in _domains(pods, nodes):
        scarce, exposed, rooms = set[str](), 0, 0
        for node in domain:
            room = _room(free[node.name], asked)
            left = {name: free[node.name].get(name, Decimal(0)) - total[name] for name in asked}
            short = {name for name, amount in asked.items() if left[name] // amount < room}
            scarce, exposed, rooms = scarce | short, exposed + (room if short else 0), rooms + room
        lost = sum(
            each.count * max((ceil(each.requests.get(name, 0) / asked[name]) for name in scarce), default=0)
            for each in others
        )
        fitting.append(rooms - min(exposed, lost))
    return max(fitting, default=0)


def _domains(pods: TaskPods, nodes: Sequence[KubernetesNode]) -> list[Sequence[KubernetesNode]]:
    """Return the parts of nodes of which one must take all pods."""
    asked = pods.topology
    if asked is None or asked.mode != "required" or asked.level is None:
        return [nodes]
    under: defaultdict[str, list[KubernetesNode]] = defaultdict(list)
    for node in nodes:
        under[node.labels.get(asked.level, "")].append(node)
    return [*under.values()]


def _room(free: Amounts, requests: Amounts) -> int:
    return min(max(0, int(free.get(name, Decimal(0)) // amount)) for name, amount in requests.items() if amount)


def _scarce(pods: TaskPods, nodes: Sequence[KubernetesNode], free: Mapping[str, Amounts]) -> list[str]:
    """Return a resource of which no node has enough for one more pod, or else all that some node lacks."""
    main = main_resource(pods.requests)
    names = sorted(pods.requests, key=lambda name: (name != main, name))
    lacks = {name: sum(free[node.name].get(name, Decimal(0)) < pods.requests[name] for node in nodes) for name in names}
    everywhere = [name for name in names if lacks[name] == len(nodes)]
    return everywhere[:1] or [name for name in names if lacks[name]] or [main]


def _amount(value: Decimal, name: str) -> str:
    return plural(int(value), "pod") if name == _PODS else counted(value, name)


def _words(pods: TaskPods, fitting: int, scarce: Sequence[str]) -> str:
    amounts = listing(
        ["a place (allocatable.pods)" if each == _PODS else counted(pods.requests[each], each) for each in scarce]
    )
    level = "" if pods.topology is None or pods.topology.mode != "required" else f" under one {pods.topology.level}"
    if not fitting:
        return f"no node{level} has {amounts} free for a pod"
    return f"only {fitting} of {pods.count} pods find a node{level} with {amounts} free for a pod"


def _not_computed(spec: Mapping[str, Any]) -> Iterator[str]:
    """Yield what decides about nodes for pods, but isn't computed here: mostly, where other pods are."""
    affinity = spec.get("affinity") or {}
    for name in ("podAffinity", "podAntiAffinity"):
        if (affinity.get(name) or {}).get("requiredDuringSchedulingIgnoredDuringExecution"):
            yield f"its {name}"
    if any(each.get("whenUnsatisfiable") != "ScheduleAnyway" for each in spec.get("topologySpreadConstraints") or ()):
        yield "its topologySpreadConstraints"
    required = (affinity.get("nodeAffinity") or {}).get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    if any(term.get("matchFields") for term in required.get("nodeSelectorTerms") or ()):
        yield "its nodeAffinity"
    if (scheduler := spec.get("schedulerName") or "default-scheduler") != "default-scheduler":
        yield f"the scheduler {scheduler}"
    yield from (f"the claim {name}" for name in claims_of(spec) if name not in (CLAIM, LOCAL_CLAIM))

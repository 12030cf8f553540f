"""Karpenter's decisions, without a clock or an API: whether a pod fits a node, and which nodes are missing.

Considered for a pod: its requests, node selector, required node affinity and tolerations. Affinity between pods,
topology spread, volumes, preferences, and prices aren't considered; the smallest instance type that fits is used.

Empty nodes that Karpenter removes now: consolidation of a NodePool, within its budgets. With policy
WhenEmptyOrUnderutilized, pods aren't moved from half-used nodes, unlike on AWS. Nodes don't expire.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from kubernetes.utils.quantity import parse_quantity

from hpkit.plan.pods import may_go_to, pod_requests, tolerates
from hpkit.text.formatting import seconds_in

__all__ = [
    "Claimed",
    "Launch",
    "Offering",
    "Room",
    "amounts_of",
    "is_daemons",
    "launches",
    "requests",
    "surplus",
    "waits_for_node",
]

Document = Mapping[str, Any]
Amounts = Mapping[str, Decimal]


@dataclass(frozen=True)
class Offering:
    """One type of node that a NodePool can have, in one instance group: what pods see of it once it exists."""

    pool: str
    cluster: str
    group: str
    instance_type: str
    zone: str
    labels: Mapping[str, str]
    taints: Sequence[Document]
    allocatable: Amounts
    capacity: Amounts
    weight: int = 0


@dataclass
class Room:
    """Free resources of a node that exists or is about to."""

    labels: Mapping[str, str]
    taints: Sequence[Document]
    free: dict[str, Decimal]

    def takes(self, pod: Document) -> bool:
        """Place the pod, if it can run there."""
        needs = requests(pod)
        fits = all(self.free.get(name, Decimal()) >= amount for name, amount in needs.items())
        if not fits or not _could_run(pod, self.labels, self.taints):
            return False
        for name, amount in needs.items():
            self.free[name] -= amount
        return True


@dataclass(frozen=True)
class Launch:
    """A node to be had, and the names of the pods that it is for."""

    offering: Offering
    pods: list[str] = field(default_factory=list)


def waits_for_node(pod: Document) -> bool:
    """Return whether the scheduler found no node for a pod: DaemonSets' and gated pods don't count."""
    conditions = (pod.get("status") or {}).get("conditions") or []
    return (
        "nodeName" not in pod["spec"]
        and "deletionTimestamp" not in pod["metadata"]
        and not is_daemons(pod)
        and any(each["type"] == "PodScheduled" and each.get("reason") == "Unschedulable" for each in conditions)
    )


def is_daemons(pod: Document) -> bool:
    """Return whether a pod belongs to a DaemonSet, which runs on every node."""
    return any(owner["kind"] == "DaemonSet" for owner in pod["metadata"].get("ownerReferences") or [])


def requests(pod: Document) -> dict[str, Decimal]:
    """Return a pod's requests, with the pod itself."""
    return {**pod_requests(pod["spec"], lambda _, quantity: _amount(quantity)), "pods": Decimal(1)}


def amounts_of(quantities: Mapping[str, Any]) -> dict[str, Decimal]:
    """Return quantities as numbers."""
    return {name: _amount(each) for name, each in quantities.items()}


def _amount(quantity: object) -> Decimal:
    # `kubernetes` has no types.
    return Decimal(parse_quantity(quantity))  # type: ignore[no-untyped-call]


def launches(
    pods: Iterable[Document],
    *,
    rooms: Sequence[Room],
    offerings: Sequence[Offering],
    used: Mapping[str, Amounts],
    limits: Mapping[str, Amounts],
) -> list[Launch]:
    """Return the nodes that are missing for waiting pods, largest pods first.

    `rooms` are nodes with free resources. `used` is the current use of each NodePool, `limits` its limit.
    """
    planned: list[tuple[Room, Launch]] = []
    having = {pool: dict(amounts) for pool, amounts in used.items()}
    for pod in sorted(pods, key=_size, reverse=True):
        if any(room.takes(pod) for room in rooms):
            continue
        place = next((launch for room, launch in planned if room.takes(pod)), None)
        if place is None:
            place = _new(pod, offerings, having, limits, planned)
        if place is not None:
            place.pods.append(f"{pod['metadata']['namespace']}/{pod['metadata']['name']}")
    return [launch for _, launch in planned]


def _new(
    pod: Document,
    offerings: Sequence[Offering],
    having: dict[str, dict[str, Decimal]],
    limits: Mapping[str, Amounts],
    planned: list[tuple[Room, Launch]],
) -> Launch | None:
    """Plan a node for the pod: from the NodePool with the highest weight, the smallest that fits within the limits."""
    ordered = sorted(offerings, key=lambda each: (-each.weight, each.pool, sorted(each.allocatable.values())))
    for offering in ordered:
        pool = having.setdefault(offering.pool, {})
        then = _sum((pool, offering.capacity))
        if any(then.get(name, Decimal()) > limit for name, limit in limits.get(offering.pool, {}).items()):
            continue
        room = Room(offering.labels, offering.taints, dict(offering.allocatable))
        if room.takes(pod):
            launch = Launch(offering)
            planned.append((room, launch))
            having[offering.pool] = then
            return launch
    return None


def _could_run(pod: Document, labels: Mapping[str, str], taints: Sequence[Document]) -> bool:
    tolerations = pod["spec"].get("tolerations") or []
    return may_go_to(pod["spec"], labels) and all(tolerates(tolerations, taint) for taint in taints)


def _sum(amounts: Iterable[Amounts]) -> dict[str, Decimal]:
    total: dict[str, Decimal] = {}
    for each in amounts:
        for name, amount in each.items():
            total[name] = total.get(name, Decimal()) + amount
    return total


def _size(pod: Document) -> list[Decimal]:
    """Return the sort key of pods: devices first, then CPUs, then memory."""
    needs = requests(pod)
    devices = sum((amount for name, amount in needs.items() if "/" in name), Decimal())
    return [devices, needs.get("cpu", Decimal()), needs.get("memory", Decimal())]


@dataclass(frozen=True)
class Claimed:
    """A node of a node pool: whether pods are on it that are not daemons', and since when that is so."""

    name: str
    empty: bool
    since: datetime
    going: bool = False


def surplus(pool: Mapping[str, Any], nodes: Sequence[Claimed], *, now: datetime, factor: float) -> list[str]:
    """Return the names of nodes to delete; `factor` shortens the pool's waiting time.

    Budgets without a schedule count, the strictest of them; a share of nodes is rounded up, as Karpenter does.
    """
    disruption = pool["spec"].get("disruption") or {}
    after = disruption.get("consolidateAfter", "0s")
    if after == "Never":
        return []
    idle = [each for each in nodes if each.empty and not each.going]
    ripe = [each for each in idle if (now - each.since).total_seconds() >= seconds_in(after) * factor]
    return [each.name for each in sorted(ripe, key=lambda each: (each.since, each.name))][: _allowed(disruption, nodes)]


def _allowed(disruption: Mapping[str, Any], nodes: Sequence[Claimed]) -> int:
    budgets = [
        budget["nodes"]
        for budget in disruption.get("budgets") or [{"nodes": "10%"}]
        if "schedule" not in budget and "Empty" in budget.get("reasons", ["Empty"])
    ]
    most = [
        math.ceil(len(nodes) * int(budget.removesuffix("%")) / 100) if budget.endswith("%") else int(budget)
        for budget in budgets
    ]
    return max(0, min(most, default=len(nodes)) - sum(each.going for each in nodes))

"""Checks whether a job can ever run: its pods fit an instance, and the simulator of an idle platform admits it."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final, Literal

from hpkit.catalog import find_instance_type
from hpkit.cluster.jobs.resources import types_by_topology
from hpkit.cluster.live.flavors import for_pods, too_large
from hpkit.cluster.live.model import main_resource
from hpkit.cluster.live.waiting import HELD, NEVER, sized, topology_mismatch
from hpkit.extensions import is_installed
from hpkit.kueue.events import simulator
from hpkit.kueue.model import Model, PodSet, Workload, per_unit
from hpkit.kueue.organization import model_of
from hpkit.plan.derive import instances_of, quotas_of
from hpkit.plan.model import Plan, TeamPlan
from hpkit.text.formatting import amount, figure, listing

__all__ = ["Fit", "fit"]

_PODS: Final = "pods"


@dataclass(frozen=True, slots=True)
class Fit:
    """quota: it fits the team's own quota; borrowing: only with borrowed quota; never: not at all.

    unknown: the simulator isn't installed. words: a text with the amounts. most: how many pods of the largest set fit,
    if not all do; surplus: how many don't. closed: the pod sets that would fit if their topology request differed.
    """

    kind: Literal["quota", "borrowing", "never", "unknown"]
    words: str
    most: int = 0
    surplus: int = 0
    closed: tuple[int, ...] = ()


def fit(plan: Plan, team: TeamPlan, pod_sets: Sequence[PodSet]) -> Fit:
    """Return whether a team's pods would be admitted if nothing else ran.

    For a paused team, the answer is what holds once it isn't paused.

    Raises CatalogError if an instance type in the plan isn't in the catalog.
    """
    model = model_of(plan)
    queues = (replace(each, active=True) if each.name == team.cluster_queue else each for each in model.queues)
    model = replace(model, queues=tuple(queues))
    flavors = [frozenset(_flavors(model, team, each)) for each in pod_sets]
    opened = [
        names & types_by_topology(plan, team, asks=each.topology is not None)
        for names, each in zip(flavors, pod_sets, strict=True)
    ]
    # A model without nodes has no topologies, so pods must request none.
    sets = [replace(each, topology=None) for each in pod_sets]
    found = _fit(plan, model, team, sets)
    if found.kind == "never" or opened == flavors:
        return found
    if all(opened):
        found = _fit(plan, model, team, [replace(each, flavors=mine) for each, mine in zip(sets, opened, strict=True)])
        if found.kind != "never":
            return found
    left = {number: flavors[number] - mine for number, mine in enumerate(opened) if not mine or all(opened)}
    closed = tuple(number for number, names in left.items() if names)
    asks = pod_sets[closed[0]].topology is not None
    return Fit("never", NEVER + topology_mismatch(sorted(left[closed[0]]), asks=asks), closed=closed)


def _fit(plan: Plan, model: Model, team: TeamPlan, pod_sets: Sequence[PodSet]) -> Fit:
    provided = {name: for_pods(each) for name, each in instances_of(plan).items()}
    sets = []
    for pod_set in pod_sets:
        flavors = _flavors(model, team, pod_set)
        large = frozenset(name for name in flavors if not too_large(pod_set.per_pod, {name: provided.get(name, {})}))
        if flavors and not large:
            words = too_large(pod_set.per_pod, {name: provided[name] for name in flavors})
            return Fit("never", f"{NEVER}{words}{_held(plan, model, team, pod_sets)}")
        most = _places(plan, provided, large, {})
        if most is not None and (pod_set.min_count or pod_set.count) > most:
            limits = listing([f"{provided[name][_PODS]} pods on {name}" for name in sorted(large)])
            words = f"at most {most} of its {pod_set.count} pods find a place: a kubelet runs at most {limits}"
            return Fit("never", f"{NEVER}{words}{_held(plan, model, team, pod_sets)}", most, pod_set.count - most)
        sets.append(replace(pod_set, flavors=large))
    if not is_installed("simulator"):
        return Fit(
            "unknown", "checking whether the quota has capacity requires the simulator: pip install 'hpkit[whatif]'"
        )
    usage = _admitted(model, team, sets)
    if usage is None:
        return _never(plan, model, team, sets)
    for pod_set in sets:
        most = _places(plan, provided, pod_set.flavors or (), pod_set.per_pod)
        if most is not None and (pod_set.min_count or pod_set.count) > most:
            words = (
                f"at most {most} of its {pod_set.count} pods find a place: {plan.stack} has no more "
                f"{listing(sorted(pod_set.flavors or ()))} on which such a pod fits"
            )
            return Fit("never", f"{NEVER}{words}{_held(plan, model, team, sets)}", most, pod_set.count - most)
    nominal = _nominal(model, team)
    over = {key: used - nominal.get(key, 0) for key, used in usage.items() if used > nominal.get(key, 0)}
    scarce = [key for key in usage if key[1] == main_resource(name for _, name in usage)]
    if not over:
        shown = ", ".join(
            f"{_amount(key, usage[key])} of {_amount(key, nominal[key])} {key[1]} of {key[0]}" for key in scarce
        )
        return Fit("quota", f"it fits {team.name}'s own quota: {shown}")
    return Fit(
        "borrowing",
        f"it must borrow {_borrowed(over, provided)}: it waits until other teams lend that much, and can be preempted",
    )


def _places(
    plan: Plan, provided: Mapping[str, Mapping[str, int]], types: Collection[str], per_pod: Mapping[str, int]
) -> int | None:
    """Return how many pods with these requests all instances of some types can run; None if that isn't known."""
    known = []
    for name in types:
        count = plan.capacity[name].maximum if name in plan.capacity else None
        places = [
            provided[name][each] // much
            for each, much in {**per_pod, _PODS: 1}.items()
            if much and each in provided[name]
        ]
        known += [count * min(places)] if count is not None and places else []
    return sum(known) if known and len(known) == len(types) else None


Key = tuple[str, str]


def _admitted(model: Model, team: TeamPlan, pod_sets: Sequence[PodSet]) -> dict[Key, int] | None:
    """Return the pods' usage, None if they aren't admitted."""
    outcome = simulator(model, [Workload("asked", team.cluster_queue, tuple(pod_sets))]).run_cycle()
    if not outcome.admitted:
        return None
    used: defaultdict[Key, int] = defaultdict(int)
    for assignment in outcome.admitted[0].pod_sets:
        for resource, much in assignment.usage.items():
            if resource in assignment.flavors:
                used[assignment.flavors[resource], resource] += much
    return dict(used)


def _held(plan: Plan, model: Model, team: TeamPlan, pod_sets: Sequence[PodSet]) -> str:
    """Return that Kueue, which doesn't compare pods with instances, admits them; or ""."""
    sets = [replace(each, flavors=frozenset(_flavors(model, team, each))) for each in pod_sets]
    types = [find_instance_type(name) for each in sets for name in each.flavors or ()]
    by_topology = plan.topology_aware_scheduling and any(each is not None and each.network_layers for each in types)
    if by_topology or not is_installed("simulator") or _admitted(model, team, sets) is None:
        return ""
    return HELD


def _never(plan: Plan, model: Model, team: TeamPlan, pod_sets: Sequence[PodSet]) -> Fit:
    covered = {resource for _, resource in _nominal(model, team)}
    unknown = sorted({name for each in pod_sets for name, amount in each.per_pod.items() if amount} - covered)
    if covered and unknown:
        return Fit("never", f"{NEVER}the queue of {team.name} doesn't count {', '.join(unknown)}")
    largest = max(pod_sets, key=lambda each: each.count)

    def is_too_much(count: int) -> bool:
        smaller = [replace(each, count=count, min_count=None) if each is largest else each for each in pod_sets]
        return _admitted(model, team, smaller) is None

    low = bisect_left(range(1, largest.count), True, key=is_too_much)
    flavors = sorted({flavor for flavor, _ in _nominal(model, team)})
    if low:
        amounts = [
            f"{quota.instance_type}: {amount(share.reserved + share.elastic)}, and {amount(share.borrowable)} to borrow"
            for quota in quotas_of(plan)
            for share in quota.teams
            if share.team == team.name and quota.instance_type in flavors
        ]
        words = f"at most {low} of its {largest.count} pods fit the quota and borrow limit of {team.name}"
        return Fit("never", f"{NEVER}{words} ({listing(amounts, 3)})", low, largest.count - low)
    return Fit(
        "never",
        f"{NEVER}not even one of its pods fits the quota and borrow limit of {team.name}, which has quota "
        f"of {', '.join(flavors) or 'nothing'}",
    )


def _flavors(model: Model, team: TeamPlan, pods: PodSet) -> list[str]:
    """Return the flavors of a team's queue to which pods may go."""
    has = dict.fromkeys(flavor for flavor, _ in _nominal(model, team))
    return [name for name in has if pods.flavors is None or name in pods.flavors]


def _nominal(model: Model, team: TeamPlan) -> dict[Key, int]:
    queue = next(each for each in model.queues if each.name == team.cluster_queue)
    return {
        (flavor.name, name): quota.nominal
        for group in queue.resource_groups
        for flavor in group.flavors
        for name, quota in flavor.resources.items()
    }


def _borrowed(over: Mapping[Key, int], instances: Mapping[str, Mapping[str, int]]) -> str:
    """Return what exceeds a quota, in instances of each type, or in amounts for types that aren't in the catalog."""
    parts = []
    for flavor in dict.fromkeys(flavor for flavor, _ in over):
        amounts = {name: amount for (other, name), amount in over.items() if other == flavor}
        has = instances.get(flavor, {})
        if all(has.get(name) for name in amounts):
            count = max(amount / has[name] for name, amount in amounts.items())
            parts.append(f"{figure(count)} {'instance' if count == 1 else 'instances'} of {flavor}")
        else:
            parts += [f"{_amount((flavor, name), amount)} {name} of {flavor}" for name, amount in amounts.items()]
    return ", ".join(parts)


def _amount(key: Key, amount: int) -> str:
    return sized(Decimal(amount) / per_unit(key[1]), key[1])

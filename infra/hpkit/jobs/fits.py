"""Whether a job can ever be admitted for a team, tried on the simulator of an idle platform."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from hpkit.plan.model import Plan, TeamPlan
from hpkit.whatif import Model, PodSet, Simulator, Workload, model_of, per_unit

__all__ = ["Fit", "fit"]


@dataclass(frozen=True, slots=True)
class Fit:
    """quota: it fits what is the team's own; borrowing: only with what others lend; never: not at all.

    words say it with the amounts.
    """

    kind: Literal["quota", "borrowing", "never"]
    words: str


def fit(plan: Plan, team: TeamPlan, pod_sets: Sequence[PodSet]) -> Fit:
    """Return whether pods of a team would be admitted if nothing else ran.

    Raises CatalogError where the catalog does not know what an instance type of the plan has.
    """
    model = model_of(plan)
    usage = _admitted(model, team, pod_sets)
    if usage is None:
        return Fit("never", _never(model, team, pod_sets))
    nominal = _nominal(model, team)
    over = {key: used - nominal.get(key, 0) for key, used in usage.items() if used > nominal.get(key, 0)}
    scarce = _scarce(usage)
    if not over:
        shown = ", ".join(f"{_amount(key, usage[key])} of {_amount(key, nominal[key])} {_name(key)}" for key in scarce)
        return Fit("quota", f"it fits {team.name}'s own quota: {shown}")
    shown = ", ".join(f"{_amount(key, amount)} {_name(key)}" for key, amount in over.items())
    return Fit("borrowing", f"{shown} of it must be borrowed: it waits until others lend so much, and may be preempted")


Key = tuple[str, str]


def _admitted(model: Model, team: TeamPlan, pod_sets: Sequence[PodSet]) -> dict[Key, int] | None:
    """Return what the pods would use, None where they are not admitted."""
    simulator = Simulator(model, [Workload("asked", team.cluster_queue, tuple(pod_sets))])
    outcome = simulator.run_cycle()
    if not outcome.admitted:
        return None
    used: defaultdict[Key, int] = defaultdict(int)
    for assignment in outcome.admitted[0].pod_sets:
        for resource, amount in assignment.usage.items():
            if resource in assignment.flavors:
                used[assignment.flavors[resource], resource] += amount
    return dict(used)


def _never(model: Model, team: TeamPlan, pod_sets: Sequence[PodSet]) -> str:
    largest = max(pod_sets, key=lambda each: each.count)
    low, high = 0, largest.count
    while high - low > 1:
        middle = (low + high) // 2
        smaller = [replace(each, count=middle) if each is largest else each for each in pod_sets]
        if _admitted(model, team, smaller) is None:
            high = middle
        else:
            low = middle
    if low:
        return f"it can never run: of its {largest.count} pods, at most {low} fit quota and borrowing of {team.name}"
    has = sorted({flavor for flavor, _ in _nominal(model, team)})
    return (
        f"it can never run: not even one of its pods fits quota and borrowing of {team.name}, "
        f"which has quota of {', '.join(has) or 'nothing'}"
    )


def _nominal(model: Model, team: TeamPlan) -> dict[Key, int]:
    queue = next(each for each in model.queues if each.name == team.cluster_queue)
    return {
        (flavor.name, name): quota.nominal
        for group in queue.resource_groups
        for flavor in group.flavors
        for name, quota in flavor.resources.items()
    }


def _scarce(usage: Mapping[Key, int]) -> list[Key]:
    """Return what people count: accelerators where there are any, else CPUs."""
    first = [key for key in usage if key[1] not in ("cpu", "memory", "vpc.amazonaws.com/efa")]
    return first or [key for key in usage if key[1] == "cpu"]


def _name(key: Key) -> str:
    return f"{'GiB of memory' if key[1] == 'memory' else key[1]} of {key[0]}"


def _amount(key: Key, amount: int) -> str:
    divided = amount / (1024**3 if key[1] == "memory" else per_unit(key[1]))
    return f"{divided:g}"

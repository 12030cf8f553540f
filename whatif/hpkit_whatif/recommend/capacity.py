"""The cheapest instances that meet goals: fewer as long as the goals stay met, or more until they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Final

from hpkit_whatif.recommend.levers import Lever, State, per_instance
from hpkit_whatif.recommend.search import Evaluate, Outcome

__all__ = ["cheapest"]

_MOST_STEPS: Final = 16
Price = Callable[[str], Decimal | None]


def cheapest(
    levers: Sequence[Lever], start: State, outcome: Outcome, evaluate: Evaluate, price: Price
) -> tuple[State, Outcome]:
    """Return the cheapest state that was found to meet the goals, and what comes of it.

    An instance goes or comes at a time, with a team's quota of it. Where the goals are not met, instances are added
    until they are, or until there are twice as many, or sixteen more; the nearest state comes back if they never are,
    and of equally near ones the first, which is that with the fewest.
    """
    here, found = start, outcome
    nearest = start, outcome
    by = -1 if outcome.good else 1
    for _ in range(_MOST_STEPS):
        states = list(_steps(levers, start, here, by))
        known = {
            state: each
            for state, each in zip(states, evaluate(states) if states else (), strict=True)
            if each is not None and not each.strands
        }
        if by < 0:
            known = {state: each for state, each in known.items() if each.good}
        if not known:
            break
        here = min(known, key=lambda state: _rank(levers, here, state, known[state], price, by))
        found = known[here]
        if found.good or found.miss < nearest[1].miss:
            nearest = here, found
        if by > 0 and found.good:
            break
    return nearest


def _steps(levers: Sequence[Lever], start: State, here: State, by: int) -> Iterator[State]:
    """Return the states with an instance less or more: of no team's quota, or of one team's."""
    for group, lever in enumerate(levers):
        if lever.kind != "instances":
            continue
        size = int(here[group]) + by
        if not 0 < size <= 2 * int(start[group]):
            continue
        changed = (*here[:group], size, *here[group + 1 :])
        yield changed
        for index, quota in enumerate(levers):
            value = here[index]
            if quota.kind == "quota" and quota.instance_type == lever.instance_type and isinstance(value, int):
                left = value + by * per_instance(quota.instance_type, quota.unit)
                if left > 0:
                    yield (*changed[:index], left, *changed[index + 1 :])


def _rank(
    levers: Sequence[Lever], here: State, state: State, outcome: Outcome, price: Price, by: int
) -> tuple[float, ...]:
    """Return what to minimize: the cost if the goals are met either way, otherwise the distance to them.

    Instances whose price is not known count as dearer than all others.
    """
    cost, unpriced = 0.0, 0.0
    for lever, old, new in zip(levers, here, state, strict=True):
        if lever.kind == "instances":
            each, more = price(lever.instance_type), int(new) - int(old)
            cost += 0.0 if each is None else more * float(each)
            unpriced += more if each is None else 0
    waited = sum(report.cluster.waited for report in outcome.reports)
    paid = (unpriced, cost, waited)
    return paid if by < 0 else (0.0 if outcome.good else 1.0, outcome.miss, *paid)

"""Finds the least expensive instances that meet goals: fewer while the goals are met, or more until they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Final

from hpkit_whatif.recommend.levers import Lever, State, per_instance
from hpkit_whatif.recommend.search import Evaluate, Evaluation

__all__ = ["cheapest"]

_MOST_STEPS: Final = 16
Price = Callable[[str], Decimal | None]


def cheapest(
    levers: Sequence[Lever], start: State, outcome: Evaluation, evaluate: Evaluate, price: Price
) -> tuple[State, Evaluation]:
    """Return the least expensive state that meets the goals, and its result.

    Instances are added or removed one at a time, together with a team's quota. If the goals aren't met, instances are
    added until they are, or until there are twice as many, or sixteen more. If they are never met, the nearest state is
    returned, and among equally near ones, the one with the fewest instances.
    """
    state_now, best_outcome = start, outcome
    nearest = start, outcome
    step = -1 if outcome.good else 1
    for _ in range(_MOST_STEPS):
        states = list(_steps(levers, start, state_now, step))
        outcomes = {
            state: state_outcome
            for state, state_outcome in zip(states, evaluate(states) if states else (), strict=True)
            if state_outcome is not None and not state_outcome.strands
        }
        if step < 0:
            outcomes = {state: state_outcome for state, state_outcome in outcomes.items() if state_outcome.good}
        if not outcomes:
            break
        state_now = min(outcomes, key=lambda state: _rank(levers, state_now, state, outcomes[state], price, step))
        best_outcome = outcomes[state_now]
        if best_outcome.good or best_outcome.miss < nearest[1].miss:
            nearest = state_now, best_outcome
        if step > 0 and best_outcome.good:
            break
    return nearest


def _steps(levers: Sequence[Lever], start: State, state: State, step: int) -> Iterator[State]:
    """Return the states with an instance less or more: of no team's quota, or of one team's."""
    for group, lever in enumerate(levers):
        if lever.kind != "instances":
            continue
        size = int(state[group]) + step
        if not 0 < size <= 2 * int(start[group]):
            continue
        changed = (*state[:group], size, *state[group + 1 :])
        yield changed
        for index, quota in enumerate(levers):
            value = state[index]
            if quota.kind == "quota" and quota.instance_type == lever.instance_type and isinstance(value, int):
                left = value + step * per_instance(quota.instance_type, quota.unit)
                if left > 0:
                    yield (*changed[:index], left, *changed[index + 1 :])


def _rank(
    levers: Sequence[Lever], current: State, state: State, outcome: Evaluation, price: Price, step: int
) -> tuple[float, ...]:
    """Return what to minimize: the cost if both meet the goals, otherwise the distance to them.

    Instances whose price isn't known count as more expensive than all others.
    """
    cost, unpriced = 0.0, 0.0
    for lever, old, new in zip(levers, current, state, strict=True):
        if lever.kind == "instances":
            hourly, more = price(lever.instance_type), int(new) - int(old)
            cost += 0.0 if hourly is None else more * float(hourly)
            unpriced += more if hourly is None else 0
    waited = sum(report.cluster.waited for report in outcome.reports)
    paid = (unpriced, cost, waited)
    return paid if step < 0 else (0.0 if outcome.good else 1.0, outcome.miss, *paid)

"""A search among states by simulation: the same result for the same seed, with any number of workers."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from hpkit_whatif.recommend.goals import Goal
from hpkit_whatif.recommend.levers import Lever, State, moves, per_instance
from hpkit_whatif.simulate.report import Report

__all__ = ["Evaluation", "cheapest", "evaluate_goals", "search"]

_MOST_STEPS: Final = 16
Price = Callable[[str], Decimal | None]
# The number of states that are simulated before the next ones are chosen. It doesn't depend on the number of workers,
# so neither does the result.
_BATCH: Final = 8
_KICK: Final = 3
# What the validator rejects costs little, but not nothing.
_REFUSALS_PER_TRIAL: Final = 6


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


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The result of a state: one report per draw, and its distance from the goals.

    miss: by how much the goals are missed, as a fraction of their limits, on average over the draws; met: number of
    draws that meet all goals. strands: whether a task can never run that can run with the current file; such a state is
    never the answer.
    """

    reports: tuple[Report, ...]
    miss: float
    met: int
    strands: bool = False

    @property
    def good(self) -> bool:
        """Return whether every draw meets every goal, and no task is stranded."""
        return self.met == len(self.reports) and not self.strands


Evaluate = Callable[[Sequence[State]], Sequence[Evaluation | None]]
"""Simulates states, in their order; None for one that the validator rejects."""


@dataclass(frozen=True, slots=True)
class Search:
    """The result of a search: the best state, and how many were simulated and rejected."""

    state: State
    outcome: Evaluation
    tried: int
    refused: int


def evaluate_goals(goals: Sequence[Goal], reports: tuple[Report, ...], before: Sequence[Report] = ()) -> Evaluation:
    """Return how a state's runs relate to the goals; before: the current file's results in the same draws."""
    misses = [sum(goal.missed_by(report) for goal in goals) for report in reports]
    strands = any(_never(after) - _never(before_report) for after, before_report in zip(reports, before, strict=False))
    return Evaluation(reports, sum(misses) / len(misses), sum(not miss for miss in misses), strands)


def _never(report: Report) -> set[str]:
    return {name for team in report.teams for name in team.never_tasks}


def search(levers: Sequence[Lever], evaluate: Evaluate, *, trials: int, seed: int) -> Search:
    """Return the state that meets the goals with the fewest changes, or comes nearest to them.

    The search starts at the current file. It moves to the best of a few neighbors while one is better, and otherwise
    restarts near the best state. trials: maximum number of simulated states, including the current file.
    """
    start: State = tuple(lever.base for lever in levers)
    (first,) = evaluate([start])
    if first is None:
        raise AssertionError("the file as it is was rejected, though nothing was changed")
    return _Walk(levers, evaluate, start, first, trials=trials, seed=seed).run()


class _Walk:
    """A search that is under way."""

    def __init__(
        self, levers: Sequence[Lever], evaluate: Evaluate, start: State, first: Evaluation, *, trials: int, seed: int
    ) -> None:
        self._levers = levers
        self._evaluate = evaluate
        self._chance = random.Random(seed)  # noqa: S311 - not a secret
        self._trials = trials
        self._seen: dict[State, Evaluation | None] = {start: first}
        self._start = start
        self._best = start
        self._here = start

    def run(self) -> Search:
        while self._left() > 0:
            ahead = [each for each in moves(self._levers, self._here) if each not in self._seen]
            if not ahead:
                if self._is_done() or not self._kick():
                    break
                continue
            self._chance.shuffle(ahead)
            self._step(ahead[: min(_BATCH, self._left())])
        outcome = self._seen[self._best]
        assert outcome is not None  # noqa: S101 - the best was simulated
        return Search(self._best, outcome, self._tried(), len(self._seen) - self._tried())

    def _step(self, states: list[State]) -> None:
        self._seen.update(zip(states, self._evaluate(states), strict=True))
        good = [state for state in states if self._may_be(state)]
        if not good:
            return
        nearest = min(good, key=self._score)
        if self._score(nearest) < self._score(self._here):
            self._here = nearest
        if self._score(nearest) < self._score(self._best):
            self._best = nearest

    def _is_done(self) -> bool:
        """Return whether the search is done: the goals are met, and no neighbor has fewer changes."""
        outcome = self._seen[self._best]
        return outcome is not None and outcome.good and self._here == self._best

    def _kick(self) -> bool:
        """Go some steps from the best one, to somewhere new; return whether there is such a place."""
        for _ in range(10 * len(self._levers) + 10):
            state = self._best
            for _ in range(_KICK):
                state = self._chance.choice(moves(self._levers, state) or [state])
            if state not in self._seen:
                self._step([state])
                if self._may_be(state):
                    self._here = state
                    return True
        return False

    def _may_be(self, state: State) -> bool:
        """Return whether a state can be the answer: the validator accepts it, and it strands no task."""
        outcome = self._seen[state]
        return outcome is not None and not outcome.strands

    def _score(self, state: State) -> tuple[float, ...]:
        """Return what to minimize: the distance to the goals, then changes, then the sum of waits."""
        outcome = self._seen[state]
        assert outcome is not None  # noqa: S101 - rejected states have no score
        changes = sum(a != b for a, b in zip(state, self._start, strict=True))
        waited = sum(report.cluster.waited for report in outcome.reports)
        # Far from the goals, a step that only shortens queues can be the first of two that reach them.
        return (0.0, changes, waited) if outcome.good else (1.0 + outcome.miss, waited, changes)

    def _tried(self) -> int:
        return sum(each is not None for each in self._seen.values())

    def _left(self) -> int:
        refused = len(self._seen) - self._tried()
        return min(self._trials - self._tried(), self._trials * _REFUSALS_PER_TRIAL - refused)

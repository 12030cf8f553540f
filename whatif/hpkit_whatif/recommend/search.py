"""A search among states by simulation: the same result for the same seed, with any number of workers."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final, Literal

from hpkit.catalog import find_instance_type
from hpkit.config.reading.document import Document, Path
from hpkit.plan.model import Plan, QuotaResource, TeamPlan
from hpkit_whatif.recommend.model import Goal
from hpkit_whatif.simulate.report import Report

__all__ = [
    "Evaluation",
    "Lever",
    "State",
    "cheapest",
    "evaluate_goals",
    "find_levers",
    "instance_levers",
    "moves",
    "search",
]

Value = int | str
State = tuple[Value, ...]
_MOST_STEPS: Final = 16
Price = Callable[[str], Decimal | None]
# The number of states that are simulated before the next ones are chosen. It doesn't depend on the number of workers,
# so neither does the result.
_BATCH: Final = 8
_KICK: Final = 3
# What the validator rejects costs little, but not nothing.
_REJECTIONS_PER_TRIAL: Final = 6
"""The value of each lever, in their order."""
Kind = Literal["quota", "weight", "borrow limit", "instances"]
_WEIGHTS: Final = (0, 10, 25, 50, 75, 100)
_LIMITS: Final = (1, 25, 50, 100, 150, 200, 300, 500)
_SHARE_STEP: Final = 5
_MOST_PERCENT: Final = 100


@dataclass(frozen=True, slots=True)
class Lever:
    """A value that can change.

    paths: its positions; several if a YAML anchor shares the value. unit: the unit of a quota: `count`, `accelerators`
    or `share`. base: the current value, even if the file omits it.
    """

    label: str
    kind: Kind
    teams: tuple[str, ...]
    instance_type: str
    paths: tuple[Path, ...]
    unit: str
    base: Value
    most: int


def find_levers(plan: Plan, document: Document) -> tuple[Lever, ...]:
    """Return the values that a search can change in a stack's sharing: each position in the file once."""
    levers: dict[object, Lever] = {}
    for lever in _candidates(plan, document.data):
        mark = document.locate(lever.paths[0])
        # A value that the file omits has no place yet; its path identifies it.
        key = (mark, lever.kind) if document.raw(lever.paths[0]) is not None else lever.paths
        existing = levers.get(key)
        if existing is None:
            levers[key] = lever
        else:
            teams = (*existing.teams, *lever.teams)
            label = f"{lever.kind} of {', '.join(teams)}"
            levers[key] = replace(existing, label=label, teams=teams, paths=(*existing.paths, *lever.paths))
    return tuple(levers.values())


def _candidates(plan: Plan, data: Any) -> Iterator[Lever]:
    fair = plan.policy is not None and plan.policy.fair_share == "Enabled"
    positions = {each["name"]: index for index, each in enumerate(data.get("teams") or ()) if isinstance(each, dict)}
    for team in plan.teams:
        if team.is_shared_pool or team.name not in positions:
            continue
        yield from _of_team(team, _homes(plan, data, team.name, positions[team.name]), fair=fair)
        yield from _quotas(plan, team)


def _homes(plan: Plan, data: Any, team: str, position: int) -> dict[str, Path]:
    """Return where a team's weight and sharing are set: in the environment's overrides, or in the team."""
    governance = data["environments"][plan.environment].get("governance") or {}
    override = (governance.get("overrides") or {}).get(team) or {}
    there: Path = ("environments", plan.environment, "governance", "overrides", team)
    return {key: (there if key in override else ("teams", position)) for key in ("fairShareWeight", "sharing")}


def _of_team(team: TeamPlan, homes: dict[str, Path], *, fair: bool) -> Iterator[Lever]:
    if fair:
        label = f"fairShareWeight of {team.name}"
        where: Path = (*homes["fairShareWeight"], "fairShareWeight")
        yield Lever(label, "weight", (team.name,), "", (where,), "", team.spec.fair_share_weight, 100)
    if (
        team.spec.sharing.strategy == "LendAndBorrow"
        and not team.absolute_borrow_limits
        and team.spec.sharing.borrow_limit is not None
    ):
        label = f"borrowLimit of {team.name}"
        where = (*homes["sharing"], "sharing", "borrowLimit")
        yield Lever(label, "borrow limit", (team.name,), "", (where,), "", team.spec.sharing.borrow_limit, _LIMITS[-1])


def _quotas(plan: Plan, team: TeamPlan) -> Iterator[Lever]:
    for resource in team.quota_resources:
        unit_and_value = _unit(resource)
        capacity = plan.capacity.get(resource.instance_type)
        if unit_and_value is None or capacity is None or not resource.path:
            continue
        unit, value = unit_and_value
        most = _MOST_PERCENT if unit == "share" else capacity.permanent * per_instance(resource.instance_type, unit)
        if resource.elastic and isinstance(value, int):
            most = max(most, value)
        label = f"{resource.instance_type} {unit} of {team.name}"
        yield Lever(label, "quota", (team.name,), resource.instance_type, ((*resource.path, unit),), unit, value, most)


def _unit(resource: QuotaResource) -> tuple[str, Value] | None:
    """Return unit and amount of a quota; None if it's set in parts of an instance."""
    if resource.share is not None:
        whole = 100 * resource.share
        return ("share", f"{whole}%") if whole.denominator == 1 else None
    if resource.partition is not None or resource.v_cpu is not None or resource.memory_in_gib is not None:
        return None
    if resource.count is not None:
        return "count", resource.count
    return ("accelerators", resource.accelerators) if resource.accelerators is not None else None


def per_instance(instance_type: str, unit: str) -> int:
    """Return one instance in a quota's unit."""
    kind = find_instance_type(instance_type)
    return (kind.accelerators or 1) if unit == "accelerators" and kind is not None else 1


def instance_levers(plan: Plan, data: Any) -> tuple[Lever, ...]:
    """Return the instance groups whose size can change: those with instance types for which teams have quota."""
    quota_types = {resource.instance_type for team in plan.teams for resource in team.quota_resources}
    place = ("environments", plan.environment, "cluster", "instanceGroups")
    groups = data["environments"][plan.environment]["cluster"].get("instanceGroups") or ()
    levers = []
    for index, group in enumerate(groups):
        instance_type, count = group.get("instanceType"), group.get("instanceCount")
        if instance_type in quota_types and isinstance(count, int):
            path: Path = (*place, index, "instanceCount")
            label = f"instanceCount of {group['name']}"
            levers.append(Lever(label, "instances", (), instance_type, (path,), "", count, 100_000))
    return tuple(levers)


def moves(levers: Sequence[Lever], state: State) -> list[State]:
    """Return the states one step away: a value changed, or changed back, or quota handed from one team to another."""
    states: dict[State, None] = {}
    for index, lever in enumerate(levers):
        for value in _values_up_to(lever, state[index]):
            states.setdefault(_replace_value(state, index, value))
        states.setdefault(_replace_value(state, index, lever.base))
        if lever.kind == "quota":
            for other, giver in enumerate(levers):
                if other != index and giver.kind == "quota" and giver.instance_type == lever.instance_type:
                    states.update(dict.fromkeys(_handed(levers, state, giver=other, taker=index)))
    states.pop(state, None)
    return list(states)


def _replace_value(state: State, index: int, value: Value) -> State:
    return (*state[:index], value, *state[index + 1 :])


def _values_up_to(lever: Lever, value: Value) -> Iterator[Value]:
    if lever.kind == "weight":
        yield from _WEIGHTS
    elif lever.kind == "borrow limit":
        yield from _LIMITS
    else:
        step = _SHARE_STEP if lever.unit == "share" else 1
        now = _number(value)
        for by in (step, -step, 4 * step, -4 * step):
            if 0 < now + by <= lever.most:
                yield _written(lever, now + by)


def _handed(levers: Sequence[Lever], state: State, *, giver: int, taker: int) -> Iterator[State]:
    """Return the states in which one team gives quota to another: one step, or half of its quota."""
    units = (levers[giver].unit, levers[taker].unit)
    if units[0] != units[1]:
        return
    step = _SHARE_STEP if units[0] == "share" else 1
    amount = _number(state[giver])
    for moved in dict.fromkeys((step, amount // 2 // step * step)):
        total = _number(state[taker]) + moved
        if moved > 0 and amount - moved > 0 and total <= levers[taker].most:
            given = _replace_value(state, giver, _written(levers[giver], amount - moved))
            yield _replace_value(given, taker, _written(levers[taker], total))


def _number(value: Value) -> int:
    return value if isinstance(value, int) else int(value.removesuffix("%"))


def _written(lever: Lever, value: int) -> Value:
    return f"{value}%" if lever.unit == "share" else value


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
"""Simulates states, in their order; None for a state that the validator rejects."""


@dataclass(frozen=True, slots=True)
class Search:
    """The result of a search: the best state, and how many were simulated and rejected."""

    state: State
    outcome: Evaluation
    tried: int
    rejected: int


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
        rejected = len(self._seen) - self._tried()
        return min(self._trials - self._tried(), self._trials * _REJECTIONS_PER_TRIAL - rejected)

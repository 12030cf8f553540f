"""Finds values of the file that meet goals, and their effect on each team."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from hpkit.catalog.prices import dated_regions, near_price
from hpkit.checks import Finding
from hpkit.config import parse, read_file
from hpkit.config.reading.document import Path, format_path
from hpkit.config.reading.edit import diff, edited_files, with_values
from hpkit.errors import InputError
from hpkit.plan.model import Plan
from hpkit.project import Loaded
from hpkit_whatif.recommend.model import (
    CapacityChange,
    Confidence,
    Goal,
    GoalResult,
    Recommendation,
    ValueChange,
    cluster_results,
    team_results,
)
from hpkit_whatif.recommend.search import (
    Evaluation,
    Lever,
    State,
    Value,
    cheapest,
    evaluate_goals,
    find_levers,
    instance_levers,
    search,
)
from hpkit_whatif.scenario.read import Source
from hpkit_whatif.simulate.quotas import over_reserved
from hpkit_whatif.simulate.report import Report
from hpkit_whatif.simulate.workers import Cluster, simulate_plans

__all__ = ["recommend"]


def recommend(
    loaded: Loaded,
    source: Source,
    goals: Sequence[Goal],
    *,
    trials: int,
    seeds: int,
    seed: int = 0,
    workers: int | None = None,
    on: Cluster | None = None,
) -> Recommendation:
    """Return the values that meet the goals on a stack with the fewest changes, or come nearest to them.

    loaded: the file, limited to the stack's environment. trials: maximum number of simulated policies, each once per
    seed; the same number of other seeds then tests the result. Raises InputError for a file with format errors or an
    invalid scenario, ToolError if a process dies or the cluster is missing.
    """
    policies = _Policies(loaded, source, goals, workers=workers, on=on)
    drawn = bool(source.scenario.generators)
    draws: list[int | None] = list(range(seed, seed + seeds)) if drawn else [None]
    others: list[int | None] = list(range(seed + seeds, seed + 2 * seeds)) if drawn else []
    before = policies.as_is(draws)
    levers, fixed = policies.editable(find_levers(policies.plan, loaded.document))
    result = search(levers, lambda states: policies.outcomes_for(levers, states, draws), trials=trials, seed=seed)
    values = _values(levers, result.state)
    after = result.outcome
    other_met = 0
    if others:
        (other,) = policies.outcomes([values], others)
        other_met = 0 if other is None else other.met
    texts, patch = policies.edited(values)
    return Recommendation(
        stack=policies.plan.stack,
        scenario=source.file,
        file=loaded.file,
        met=after.good,
        goals=tuple(GoalResult(goal, _figures(goal, before), _figures(goal, after.reports)) for goal in goals),
        changes=policies.changes(levers, result.state),
        teams=team_results(before, after.reports),
        cluster=cluster_results(before, after.reports),
        confidence=Confidence(drawn, after.met, len(draws), other_met, len(others)),
        capacity=policies.capacity(levers, result.state, after, draws),
        tried=result.tried,
        rejected=result.rejected,
        fixed=tuple(fixed),
        warnings=policies.warnings(values),
        texts=texts,
        patch=patch,
    )


def _figures(goal: Goal, reports: Sequence[Report]) -> tuple[float, ...]:
    return tuple(goal.value(report) for report in reports)


def _values(levers: Sequence[Lever], state: State) -> dict[Path, Value]:
    """Return a state's changes to the file."""
    return {
        path: value for lever, value in zip(levers, state, strict=True) if value != lever.base for path in lever.paths
    }


class _Policies:
    """The file with other values.

    Its plan, unless the validator rejects it, and the results of a scenario on that plan.
    """

    def __init__(
        self, loaded: Loaded, source: Source, goals: Sequence[Goal], *, workers: int | None, on: Cluster | None
    ) -> None:
        # Teams are of all environments: a value that suits one stack must not break a rule for another.
        self._whole = replace(loaded, environment=None)
        self._environment = loaded.environment or ""
        self._source = source
        self._goals = goals
        self._workers = workers
        self._on = on
        self._known = {(each.rule, each.path) for each in self._whole.findings}
        self._texts = {
            file: read_file(file or loaded.file).decode("utf-8-sig") for file in loaded.document.parts or [""]
        }
        self._as_is: dict[tuple[int | None, ...], tuple[Report, ...]] = {}
        self._held: frozenset[tuple[str, str]] = frozenset()
        plan = self._plan({})
        if plan is None:
            raise InputError(f"{loaded.file} can't be read: fix the errors that `hpkit validate {loaded.file}` shows")
        self.plan = plan
        self._held = _held(plan)

    def _plan(self, values: Mapping[Path, Value]) -> Plan | None:
        after = self._edited_stack(values)
        if any(each.severity == "error" for each in self._new(after)):
            return None
        plan = after.plans.get(self._environment)
        return None if plan is None or self._lost(plan) else plan

    def _edited_stack(self, values: Mapping[Path, Value]) -> Loaded:
        document = replace(self._whole.document, data=with_values(self._whole.document.data, values))
        return replace(self._whole, document=document, parsed=parse(document))

    def _new(self, after: Loaded) -> list[Finding]:
        return [each for each in after.findings if (each.rule, each.path) not in self._known]

    def _lost(self, plan: Plan) -> bool:
        """Return whether a team loses all its quota of an instance type: a share can be rounded to zero."""
        return bool(self._held - _held(plan))

    def warnings(self, values: Mapping[Path, Value]) -> tuple[str, ...]:
        """Return the validator's warnings with other values that the current file doesn't have, and excess quota."""
        after = self._edited_stack(values)
        new = [f"{each.rule} {each.path}: {each.message}" for each in self._new(after)]
        plan = after.plans.get(self._environment)
        return (*new, *(() if plan is None else over_reserved(plan)))

    def outcomes_for(
        self, levers: Sequence[Lever], states: Sequence[State], seeds: Sequence[int | None]
    ) -> list[Evaluation | None]:
        """Return the result of each state; None if the validator rejects it."""
        return self.outcomes([_values(levers, state) for state in states], seeds)

    def outcomes(
        self, policies: Sequence[Mapping[Path, Value]], seeds: Sequence[int | None]
    ) -> list[Evaluation | None]:
        """Return the result of each set of values; None if the validator rejects it."""
        before = self.as_is(seeds)
        plans = [self._plan(values) for values in policies]
        good = [plan for plan in plans if plan is not None]
        reports = simulate_plans(good, self._source, seeds=seeds, workers=self._workers, on=self._on)
        # In the order of the plans: a rejected one takes no reports.
        return [None if plan is None else evaluate_goals(self._goals, next(reports), before) for plan in plans]

    def as_is(self, seeds: Sequence[int | None]) -> tuple[Report, ...]:
        """Return the result of the current file, simulated once for the same draws."""
        key = tuple(seeds)
        if key not in self._as_is:
            runs = simulate_plans([self.plan], self._source, seeds=seeds, workers=self._workers, on=self._on)
            (self._as_is[key],) = runs
        return self._as_is[key]

    def editable(self, levers: Sequence[Lever]) -> tuple[tuple[Lever, ...], list[str]]:
        """Return the levers whose values can be changed in the file's text, and why the others cannot."""
        good, fixed = [], []
        for lever in levers:
            try:
                # Another value than it has, and one that no file has.
                self.edited(dict.fromkeys(lever.paths, 7919))
            except InputError as error:
                fixed.append(f"{lever.label}: {error}")
            else:
                good.append(lever)
        return tuple(good), fixed

    def edited(self, values: Mapping[Path, Any]) -> tuple[dict[str, str], str]:
        """Return the texts of the files with other values, the changed files, and the patch."""
        texts = edited_files(self._texts, self._whole.document, values, file=self._whole.file)
        named = {file or self._whole.file: text for file, text in texts.items()}
        changes = (diff(self._texts[file], text, file or self._whole.file) for file, text in sorted(texts.items()))
        return named, "".join(changes)

    def changes(self, levers: Sequence[Lever], state: State) -> tuple[ValueChange, ...]:
        """Return a state's changes as text."""
        return tuple(
            ValueChange(_varied(path, self._whole.document.data), lever.label, lever.base, value)
            for lever, value in zip(levers, state, strict=True)
            if value != lever.base
            for path in lever.paths
        )

    def capacity(
        self, levers: Sequence[Lever], state: State, outcome: Evaluation, seeds: Sequence[int | None]
    ) -> CapacityChange | None:
        """Return the least expensive instances that meet the goals; None if no group's size can change."""
        groups, _ = self.editable(instance_levers(self.plan, self._whole.document.data))
        if not groups:
            return None
        prices = {each.instance_type: near_price(each.instance_type, self.plan.spec.region) for each in groups}
        monthly = {kind: None if price is None else price.monthly for kind, price in prices.items()}
        every = (*levers, *groups)
        start: State = (*state, *(group.base for group in groups))
        best, best_outcome = cheapest(
            every, start, outcome, lambda states: self.outcomes_for(every, states, seeds), monthly.__getitem__
        )
        counts = [(lever, int(value)) for lever, value in zip(every, best, strict=True) if lever.kind == "instances"]
        costs = []
        regions = set[str]()
        for lever, value in counts:
            more, price = value - int(lever.base), prices[lever.instance_type]
            if more:
                costs.append(None if price is None else more * price.monthly)
                regions |= set() if price is None else {price.region}
        known_costs = [cost for cost in costs if cost is not None]
        texts, patch = self.edited(_values(every, best))
        return CapacityChange(
            met=best_outcome.good,
            changes=self.changes(every, best),
            teams=team_results(self.as_is(seeds), best_outcome.reports),
            instances=tuple((lever.instance_type, int(lever.base), value) for lever, value in counts),
            monthly=None if len(known_costs) < len(costs) else sum(known_costs, Decimal(0)),
            priced_in=tuple(sorted(regions - {self.plan.spec.region})),
            prices=dated_regions(regions),
            compared=None not in monthly.values(),
            warnings=self.warnings(_values(every, best)),
            texts=texts,
            patch=patch,
        )


def _held(plan: Plan) -> frozenset[tuple[str, str]]:
    """Return which team has something of which instance type."""
    return frozenset(
        (team.name, resource.instance_type)
        for team in plan.teams
        for resource in team.quota_resources
        if resource.count or resource.accelerators or resource.v_cpu or resource.memory_in_gib or resource.partition
    )


def _varied(path: Path, data: Any) -> str:
    """Write a path as `hpkit whatif simulate --vary` takes it: without the stack's environment."""
    text = format_path(path, data)
    return text.removeprefix(f"environments.{path[1]}.") if path[0] == "environments" else text

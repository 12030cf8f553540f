"""Shows how a change affects a scenario's tasks: simulates the same ones at the base and at the head."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from hpkit.changes.plan_diff import Change
from hpkit.changes.review import StackInput, StackVersion
from hpkit.changes.review.model import ScenarioChange, TeamWaits
from hpkit.errors import CatalogError, InputError
from hpkit.plan.model import Plan

if TYPE_CHECKING:
    from hpkit_whatif.scenario import Source
    from hpkit_whatif.simulate import Report

Side = TypeVar("Side")
T = TypeVar("T")
__all__ = ["scenario_changes"]


def scenario_changes(stacks: Iterable[StackInput], file: str) -> dict[str, ScenarioChange]:
    """Return stack → what becomes of the scenario's tasks there, before and after; without stacks that stay the same.

    Raises InputError for a scenario that can't be read. Problems with one stack are in its note.
    """
    from hpkit_whatif.scenario import open_scenario

    source = open_scenario(file)
    changes = {}
    for stack in stacks:
        before, after = _plan(stack.before), _plan(stack.after)
        if before != after:
            changes[stack.stack] = _change(source, before, after)
    return changes


def _plan(version: StackVersion | None) -> Plan | None:
    return None if version is None else version.file.plans.get(version.environment)


def _change(source: Source, before: Plan | None, after: Plan | None) -> ScenarioChange:
    others: list[Counter[str]] = []
    try:
        sides = [None if plan is None else _simulated(plan, source, others) for plan in (before, after)]
    except (InputError, CatalogError) as error:
        return ScenarioChange(source.file, note=str(error))
    if not any(team.submitted for side in sides if side is not None for team in side.teams):
        return ScenarioChange(source.file, note="none of its tasks belongs to a team of this stack")
    team_names = dict.fromkeys(team.name for side in sides if side is not None for team in side.teams)
    return ScenarioChange(
        source.file,
        note=_left_out(others),
        utilization=_both(sides, lambda report: report.cluster.utilization),
        waited_instance_hours=_both(sides, lambda report: report.cluster.waited),
        preemptions=_both(sides, lambda report: report.cluster.preemptions),
        teams=tuple(_team(name, sides) for name in team_names),
    )


def _left_out(others: Sequence[Counter[str]]) -> str:
    """Report tasks of teams that exist on neither side: another stack's, or misspelled ones."""
    nowhere = [team for team in others[0] if all(team in each for each in others)]
    if not nowhere:
        return ""
    count = sum(others[0][team] for team in nowhere)
    tasks = "1 task is left out: it's" if count == 1 else f"{count:,} tasks are left out: they're"
    return f"{tasks} for {', '.join(nowhere)}, which isn't a team of this stack"


def _both(sides: Sequence[Side | None], figure: Callable[[Side], T | None]) -> Change[T]:
    """Return a figure before and after; None on a side that is not there."""
    before, after = (None if side is None else figure(side) for side in sides)
    return Change(before, after)


def _simulated(plan: Plan, source: Source, others: list[Counter[str]]) -> Report:
    """Return the results of tasks whose teams exist; a change can add or remove a team."""
    from hpkit_whatif.scenario import of_teams
    from hpkit_whatif.simulate.run import simulate_tasks

    others.append(Counter())
    tasks = of_teams(source.tasks(), {team.name for team in plan.teams}, others[-1])
    return simulate_tasks(plan, source, tasks, lenient=True, keep=0)


def _team(name: str, sides: Sequence[Report | None]) -> TeamWaits:
    teams = [
        next((team for team in side.teams if team.name == name), None) if side is not None else None for side in sides
    ]
    return TeamWaits(
        name,
        service=_both(teams, lambda team: team.service),
        wait_median=_both(teams, lambda team: team.wait_median),
        wait_p95=_both(teams, lambda team: team.wait_p95),
        preempted=_both(teams, lambda team: team.evicted),
        never=_both(teams, lambda team: team.never),
    )

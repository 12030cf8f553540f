"""What a change does to a scenario's tasks: the same ones simulated at the base and at the head."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from hpkit.errors import CatalogError, InputError
from hpkit.plan.diff import Change
from hpkit.plan.model import Plan
from hpkit.review import StackInput, StackVersion
from hpkit.review.model import ScenarioChange, TeamWaits

if TYPE_CHECKING:
    from hpkit.scenario import Source
    from hpkit.simulate import Report

__all__ = ["scenario_changes"]


def scenario_changes(stacks: Iterable[StackInput], file: str) -> dict[str, ScenarioChange]:
    """Return stack → what becomes of the scenario's tasks there, before and after; without stacks that stay the same.

    InputError for a scenario that cannot be read; what is wrong with it for one stack is that one's note.
    """
    from hpkit.scenario import open_scenario

    source = open_scenario(file)
    found = {}
    for stack in stacks:
        before, after = _plan(stack.before), _plan(stack.after)
        if before != after:
            found[stack.stack] = _change(source, before, after)
    return found


def _plan(version: StackVersion | None) -> Plan | None:
    return None if version is None else version.file.plans.get(version.environment)


def _change(source: Source, before: Plan | None, after: Plan | None) -> ScenarioChange:
    try:
        sides = [None if plan is None else _simulated(plan, source) for plan in (before, after)]
    except (InputError, CatalogError) as error:
        return ScenarioChange(source.file, note=str(error))
    if not any(team.submitted for side in sides if side is not None for team in side.teams):
        return ScenarioChange(source.file, note="no task of it is of a team of this stack")
    first, second = sides
    names = dict.fromkeys(team.name for side in sides if side is not None for team in side.teams)
    return ScenarioChange(
        source.file,
        utilization=Change(first and first.cluster.utilization, second and second.cluster.utilization),
        waited=Change(first and first.cluster.waited, second and second.cluster.waited),
        preemptions=Change(first and first.cluster.preemptions, second and second.cluster.preemptions),
        teams=tuple(_team(name, first, second) for name in names),
    )


def _simulated(plan: Plan, source: Source) -> Report:
    """Return what becomes of the tasks whose teams are there: a change may bring a team, or take one away."""
    from hpkit.simulate.run import simulate_tasks

    teams = {team.name for team in plan.teams}
    tasks = (located for located in source.tasks() if located.spec.team in teams)
    return simulate_tasks(plan, source, tasks, lenient=True, keep=0)


def _team(name: str, before: Report | None, after: Report | None) -> TeamWaits:
    first, second = (
        next((team for team in side.teams if team.name == name), None) if side is not None else None
        for side in (before, after)
    )
    return TeamWaits(
        name,
        service=Change(first and first.service, second and second.service),
        wait_median=Change(first and first.wait_median, second and second.wait_median),
        wait_p95=Change(first and first.wait_p95, second and second.wait_p95),
        preempted=Change(first and first.evicted, second and second.evicted),
        never=Change(first and first.never, second and second.never),
    )

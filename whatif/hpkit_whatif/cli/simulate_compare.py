"""`hpkit whatif simulate --compare A B`: one scenario on two files, stacks or states of the repository."""

import os
import subprocess
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path, PurePosixPath
from typing import Annotated, TypedDict

import click

from hpkit.cli.documents import json_document
from hpkit.cli.formats import Output
from hpkit.cli.tables import grid, paper, plan_of, text_of
from hpkit.config import parse, read_text
from hpkit.config.compose import composed
from hpkit.config.folder import GitFolder
from hpkit.errors import InputError, SelectionError, ToolError
from hpkit.plan.model import Plan
from hpkit.project import Loaded, load, load_stack, project_root
from hpkit.text.formatting import figure, percent, span
from hpkit.text.spelling import hint
from hpkit_whatif.scenario import Source, of_teams
from hpkit_whatif.simulate import Report
from hpkit_whatif.simulate.report import Simulation
from hpkit_whatif.simulate.run import simulate_tasks

__all__ = ["SimulationComparison", "compared"]


class _Side(TypedDict):
    source: Annotated[str, "The file, stack or git reference."]
    tasksOfOtherTeams: Annotated[dict[str, int], "Tasks of teams that this side doesn't have."]
    simulation: Simulation


class SimulationComparison(TypedDict):
    """One scenario on two files, stacks or git references."""

    a: _Side
    b: _Side


_SECONDS = 60


def compared(source: Source, sides: tuple[str, str], stack: str | None, *, seed: int | None) -> Output:
    """Return both reports side by side."""
    plans = [_plan(side, stack) for side in sides]
    team_names = [{team.name for team in plan.teams} for plan in plans]
    others: list[Counter[str]] = [Counter(), Counter()]
    before, after = (
        simulate_tasks(plan, source, of_teams(source.tasks(seed=seed), teams, other_tasks), lenient=True)
        for plan, teams, other_tasks in zip(plans, team_names, others, strict=True)
    )
    _refuse_teams_of_nobody(source, others, team_names[0] | team_names[1])
    a, b = (
        _Side(source=side, tasksOfOtherTeams=dict(other_tasks), simulation=report.as_dict())
        for side, other_tasks, report in zip(sides, others, (before, after), strict=True)
    )
    return Output(
        text=lambda: _table(sides, before, after, others), json=lambda: json_document(SimulationComparison, a=a, b=b)
    )


def _refuse_teams_of_nobody(source: Source, others: Sequence[Counter[str]], teams: Collection[str]) -> None:
    for team, count in others[0].items():
        if team in others[1]:
            tasks = "a task is" if count == 1 else f"{count:,} tasks are"
            raise InputError(
                f"{source.file}: {tasks} for team {team}, which exists on neither side; {hint(team, teams)}"
            )


def _plan(side: str, stack: str | None) -> Plan:
    """Return the plan of a file, of a stack, or of --stack at a git reference."""
    if side.endswith((".yaml", ".yml")) or (os.sep in side and Path(side).is_file()):
        environment = load_stack(stack).environment if stack is not None else None
        return _only(load(side, environment), side)
    try:
        return plan_of(side)
    except SelectionError as error:
        if stack is None:
            raise click.UsageError(f"{side}: {error}; for a git reference, add --stack") from None
    loaded = load_stack(stack)
    return _only(_load_revision(side, loaded), f"{side}:{loaded.file}")


def _only(loaded: Loaded, name: str) -> Plan:
    plans = list(loaded.plans.values())
    if len(plans) == 1:
        return plans[0]
    if plans:
        raise click.UsageError(f"{name} has the environments {', '.join(loaded.plans)}; choose one with --stack")
    said = [f"{each.file}:{each.line}: {each.message}" for each in loaded.findings if each.severity == "error"]
    raise InputError(f"{name} can't be simulated: {said[0] if said else 'it lacks that environment'}")


def _load_revision(reference: str, loaded: Loaded) -> Loaded:
    root = project_root()
    name = Path(loaded.file).resolve().relative_to(root.resolve()).as_posix()
    command = ("git", "-C", str(root), "show", "--end-of-options", f"{reference}:./{name}")
    try:
        result = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False)  # noqa: S603 - no shell
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolError(f"git can't read {name} at {reference}: {error}") from None
    if result.returncode:
        words = result.stderr.decode(errors="replace").strip().splitlines()
        raise InputError(
            f"{reference} isn't a file, a stack, or a git reference with {name}: {words[-1] if words else ''}"
        )
    folder = PurePosixPath(name).parent
    document = composed(
        read_text(result.stdout), GitFolder(root, reference, str(folder)), PurePosixPath(name).name, f"{folder}/"
    )
    return Loaded(loaded.file, document, parse(document), loaded.environment)


def _table(sides: tuple[str, str], before: Report, after: Report, others: Sequence[Counter[str]]) -> str:
    console = paper()
    console.print(f"A: {sides[0]}\nB: {sides[1]}\n{before.scenario}")
    for side, left, report in zip("AB", others, (before, after), strict=True):
        for team, count in left.items():
            console.print(f"{side} has no team {team}: {count:,} of the tasks are left out there")
        for line in report.warnings:
            console.print(f"{side}: warning: {line}")
    table = grid("cluster", "A", "B", title="")
    rows = [
        ("instances in use", percent(before.cluster.utilization), percent(after.cluster.utilization)),
        ("guarantees idle", percent(before.cluster.idle_guarantee), percent(after.cluster.idle_guarantee)),
        ("preemptions", str(before.cluster.preemptions), str(after.cluster.preemptions)),
        ("fairness", f"{before.cluster.fairness:.2f}", f"{after.cluster.fairness:.2f}"),
        ("instance-hours of waiting", figure(before.cluster.waited), figure(after.cluster.waited)),
    ]
    for row in rows:
        table.add_row(*row)
    console.print(table)
    team_names = list(dict.fromkeys(team.name for report in (before, after) for team in report.teams))
    heads = [f"{head} {side}" for head in ("served", "p50", "p95", "evicted", "never") for side in "AB"]
    table = grid("team", *heads, title="")
    for name in team_names:
        cells: list[tuple[str, str, str, str, str]] = []
        for report in (before, after):
            team_report = {team.name: team for team in report.teams}.get(name)
            if team_report is None:
                cells.append(("–",) * 5)
                continue
            got, waits = percent(team_report.service), (span(team_report.wait_median), span(team_report.wait_p95))
            cells.append((got, *waits, str(team_report.evicted), str(team_report.never)))
        table.add_row(name, *(cell for pair in zip(*cells, strict=True) for cell in pair))
    console.print(table)
    return text_of(console)

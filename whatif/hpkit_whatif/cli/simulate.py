"""`hpkit whatif simulate`: what becomes of a scenario's tasks on a stack."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import click
from pydantic import BeforeValidator, Field

from hpkit.cli.common.documents import json_document
from hpkit.cli.common.formats import Output
from hpkit.cli.common.tables import grid, paper, text_of
from hpkit.project import load_stack
from hpkit.text.document import Document
from hpkit.text.formatting import figure, percent, plural, span
from hpkit_whatif.scenario import Source
from hpkit_whatif.simulate.report import ClusterReport, Report, TeamReport
from hpkit_whatif.simulate.vary import Result, sweep, variation
from hpkit_whatif.simulate.vary import grid as combinations
from hpkit_whatif.simulate.workers import Cluster

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
from typing import TYPE_CHECKING

from hpkit.cli.common.completion import stack_option
from hpkit.cli.common.formats import output_options
from hpkit.cli.common.inputs import choose_stack

if TYPE_CHECKING:
    from hpkit_whatif.simulate import Report

__all__ = ["output_of"]


class _Run(Document):
    warnings: list[str]
    cluster: ClusterReport
    teams: list[TeamReport]


class _Variation(Document):
    policy: Annotated[
        dict[str, int | str], BeforeValidator(lambda changes: {change.text: change.value for change in changes})
    ] = Field(validation_alias="changes", description="Values by path.")
    rejected: str | None = Field(description="Why the validator rejects it.")
    run: _Run | None = Field(validation_alias="report", description="The result; null if it is rejected.")


class SimulationList(Document):
    """One scenario under many policies."""

    items: list[_Variation]


_CLUSTER = ("in use", "fairness", "preempted", "never", "waited")
_Row = tuple[list[str], dict[str, str]]


def varied(
    source: Source,
    stack: str,
    variations: Sequence[str],
    *,
    seed: int | None,
    workers: int | None,
    on: Cluster | None = None,
) -> Output:
    """Return the result of every combination; exit code 1 unless any could be simulated."""
    loaded = load_stack(stack)
    policies = combinations([variation(text) for text in variations])
    results = list(sweep(loaded, source, policies, seed=seed, workers=workers, on=on))
    any_ran = any(result.report is not None for result in results)
    if not any_ran:
        click.echo("error: nothing was simulated: the validator rejects every policy, as listed", err=True)
    names = [team.name for result in results for team in (result.report.teams if result.report else ())]
    return Output(
        not any_ran,
        text=lambda: _comparison(f"{stack}, {source.file}", results, list(dict.fromkeys(names))),
        json=lambda: json_document(SimulationList.model_validate({"items": results})),
    )


def _pages(console: "Console", numbers: Sequence[str], rows: Sequence[_Row], teams: Sequence[str]) -> list["Table"]:
    """Return one table, or, where that is wider than the page, one of the cluster and as few as can be of the teams."""

    def new_table(columns: Sequence[str]) -> "Table":
        table = grid(*numbers, *columns, title="")
        for values, figures in rows:
            table.add_row(
                *values, *(figures.get(name, "" if index else "rejected") for index, name in enumerate(columns))
            )
        return table

    def fits(table: "Table") -> bool:
        options = console.options.update(max_width=2 * console.width)
        return console.measure(table, options=options).maximum <= console.width

    waits = [f"p95 {team}" for team in teams]
    whole = new_table((*_CLUSTER, *waits))
    if fits(whole):
        return [whole]
    pages = [new_table(_CLUSTER)]
    page: list[str] = []
    for name in waits:
        if page and not fits(new_table((*page, name))):
            pages.append(new_table(page))
            page = []
        page.append(name)
    return [*pages, new_table(page)]


def _figures(report: Report, teams: Sequence[str]) -> dict[str, str]:
    """Return the cells of a policy by the heads of their columns."""
    cluster = report.cluster
    return {
        "in use": percent(cluster.utilization),
        "fairness": f"{cluster.fairness:.2f}",
        "preempted": figure(cluster.preemptions),
        "never": figure(sum(team.never for team in report.teams)),
        "waited": f"{figure(cluster.waited)} h",
        **{f"p95 {team}": span(report.team(team).wait_p95) for team in teams},
    }


def _comparison(title: str, results: Sequence[Result], teams: Sequence[str]) -> str:
    console = paper()
    console.print(f"{title}: {plural(len(results), 'policy')}")
    keys = [change.text for change in results[0].changes]
    for number, key in enumerate(keys, 1):
        console.print(f"{number}: {key}")
    numbers = [str(number) for number, _ in enumerate(keys, 1)]
    rows = [
        ([str(change.value) for change in result.changes], _figures(result.report, teams) if result.report else {})
        for result in results
    ]
    for table in _pages(console, numbers, rows, teams):
        console.print(table)
    for line in dict.fromkeys(line for result in results if result.report for line in result.report.warnings):
        console.print(f"warning: {line}")
    for result in results:
        if result.rejected is not None:
            policy = ", ".join(f"{change.text}={change.value}" for change in result.changes)
            console.print(f"rejected: {policy}: {result.rejected}")
    return text_of(console)


_MOST_ROWS = 40
_MOST_REASONS = 10
_MOST_ITEMS = 3


@click.command("simulate")
@click.argument("scenario", metavar="SCENARIO")
@stack_option("Stack whose teams share capacity, such as handson-dev")
@output_options(
    "text", "json", documents=("hpkit_whatif.simulate.report:Simulation", "hpkit_whatif.cli.simulate:SimulationList")
)
@click.option("--seed", type=int, metavar="N", help="Random seed of the scenario's generators.")
@click.option("--skip-impossible", is_flag=True, help="Skip tasks that can never run, and list them.")
@click.option(
    "--vary",
    "variations",
    multiple=True,
    metavar="PATH=V,V",
    help="Compare these values, such as teams[smith].fairShareWeight=0,50. Repeatable: every combination is simulated.",
)
@click.option(
    "--workers", type=click.IntRange(1), metavar="N", help="Number of processes of --vary. Default: one per core."
)
@click.option("--on", metavar="dask://HOST:PORT", help="Dask cluster for --vary, instead of this machine.")
def command(
    scenario: str,
    stack: str | None,
    seed: int | None,
    skip_impossible: bool,
    variations: tuple[str, ...],
    workers: int | None,
    on: str | None,
) -> Output:
    """Simulate a scenario's tasks on a stack.

    SCENARIO is a YAML file of tasks and generators, or a CSV of tasks in order of submission. Tasks are admitted,
    preempted and finished as in Kueue. Nothing is deployed, and no API is called.
    """
    from hpkit_whatif.scenario import open_scenario
    from hpkit_whatif.simulate import simulate

    if stack is None:
        raise click.UsageError("Missing option '--stack'")
    if variations:
        from hpkit_whatif.simulate.workers import cluster

        if skip_impossible:
            raise click.UsageError(
                "--skip-impossible can't be combined with --vary, where a task that can't run counts as waiting until "
                "the end"
            )
        where = cluster(on) if on else None
        return varied(open_scenario(scenario), stack, variations, seed=seed, workers=workers, on=where)
    for option, value in (("--workers", workers), ("--on", on)):
        if value is not None:
            raise click.UsageError(f"{option} requires --vary")
    return output_of(simulate(choose_stack(stack), open_scenario(scenario), seed=seed, skip_impossible=skip_impossible))


def output_of(report: "Report", code: int = 0) -> Output:
    """Return a report in each format."""
    from hpkit_whatif.simulate.report import Simulation

    return Output(code, text=lambda: _table(report), json=lambda: json_document(Simulation.model_validate(report)))


def _table(report: "Report") -> str:
    from hpkit.text.formatting import borrowed, figure, percent, span

    console = paper()
    cluster = report.cluster
    cost = "unknown price"
    if cluster.wait_cost is not None:
        about, of = "about " if cluster.priced_in else "", f" of {cluster.prices}" if cluster.prices else ""
        cost = f"{about}${cluster.wait_cost:,.0f} at list price{of}"
    waited = figure(cluster.waited)
    console.print(f"{report.stack}, {report.scenario}: {span(report.end)}")
    console.print(
        f"{percent(cluster.utilization)} of {figure(cluster.capacity)} instances in use, "
        f"{percent(cluster.idle_quota)} of the quotas idle, {plural(cluster.preemptions, 'preemption')}, "
        f"fairness {cluster.fairness:.2f}\n{waited} instance-hour{'' if waited == '1' else 's'} of waiting ({cost})"
    )
    for line in report.warnings:
        console.print(f"warning: {line}")
    console.print()
    if cluster.flapping:
        console.print(f"preempted repeatedly: {', '.join(cluster.flapping)}")
    teams = grid(
        "team", "quota", "used", "borrowed", "lent", "served", "tasks",
        "waits p50", "p95", "preempted", "preempts", "lost", title="Teams, in instances and instance-hours",
    )  # fmt: skip
    for team in report.teams:
        teams.add_row(
            team.name, figure(team.quota), figure(team.used), figure(team.borrowed), figure(team.lent),
            percent(team.service), str(team.submitted), span(team.wait_median), span(team.wait_p95),
            str(team.evicted), str(team.evicts), figure(team.lost),
        )  # fmt: skip
    console.print(teams)
    instance_types = {task.instance_type for task in report.tasks}
    title = f"Tasks, in {instance_types.pop()}" if len(instance_types) == 1 else "Tasks"
    tasks = grid(
        "task", "team", "asks", "submitted", "admitted", "finished", "waited", "borrowed", "preempted", title=title
    )
    for task in report.tasks[:_MOST_ROWS]:
        tasks.add_row(
            task.name,
            task.team,
            figure(task.instances) + (f" {task.instance_type.removeprefix('ml.')}" if instance_types else ""),
            span(task.submit),
            "never" if task.never and not task.admissions else _last([span(each.time) for each in task.admissions]),
            span(task.finished),
            span(task.wait),
            _last([borrowed(each.borrowed) for each in task.admissions])
            if any(each.borrowed for each in task.admissions)
            else "",
            _last([f"{span(e.time)} by {e.by} ({e.reason})" for e in task.evictions]),
        )
    console.print(tasks)
    held = [f"{task.name} {task.why}" for task in report.tasks if task.why]
    for line in held[:_MOST_REASONS]:
        console.print(line)
    if len(held) > _MOST_REASONS:
        console.print(
            f"{len(held) - _MOST_REASONS:,} more are waiting or never run; for the reasons, use --format json"
        )
    unlisted = len(report.tasks) - _MOST_ROWS
    if unlisted > 0:
        console.print(
            f"only the first {_MOST_ROWS} tasks are listed; --format json has {unlisted:,} more"
            + (f", and {report.omitted:,} are only included in totals" if report.omitted else "")
        )
    return text_of(console)


def _last(items: Sequence[str]) -> str:
    """Return the last few items of a list."""
    return ("… " if len(items) > _MOST_ITEMS else "") + "; ".join(items[-_MOST_ITEMS:])

"""`hpkit whatif simulate --vary`: one scenario under many policies, a line for each."""

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

__all__ = ["SimulationList", "varied"]


class _Run(Document):
    warnings: list[str]
    cluster: ClusterReport
    teams: list[TeamReport]


class _Variation(Document):
    policy: Annotated[
        dict[str, int | str], BeforeValidator(lambda changes: {change.text: change.value for change in changes})
    ] = Field(validation_alias="changes", description="Values by path.")
    refused: str | None = Field(description="Why the validator rejects it.")
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
        text=lambda: _table(f"{stack}, {source.file}", results, list(dict.fromkeys(names))),
        json=lambda: json_document(SimulationList.model_validate({"items": results})),
    )


def _pages(console: "Console", numbers: Sequence[str], rows: Sequence[_Row], teams: Sequence[str]) -> list["Table"]:
    """Return one table, or, where that is wider than the page, one of the cluster and as few as can be of the teams."""

    def new_table(columns: Sequence[str]) -> "Table":
        table = grid(*numbers, *columns, title="")
        for values, figures in rows:
            table.add_row(
                *values, *(figures.get(name, "" if index else "refused") for index, name in enumerate(columns))
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


def _table(title: str, results: Sequence[Result], teams: Sequence[str]) -> str:
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
        if result.refused is not None:
            policy = ", ".join(f"{change.text}={change.value}" for change in result.changes)
            console.print(f"refused: {policy}: {result.refused}")
    return text_of(console)

"""`hpkit whatif recommend`: finds quotas, weights and borrow limits that meet goals for a scenario."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from hpkit.cli.common.completion import stack_option
from hpkit.cli.common.documents import json_document
from hpkit.cli.common.formats import Output, output_options
from hpkit.cli.common.tables import grid, paper, text_of
from hpkit.errors import InputError
from hpkit.text.formatting import plural

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from hpkit_whatif.recommend import Recommendation
    from hpkit_whatif.recommend.model import CapacityChange, TeamResult

__all__ = ["command"]

Figure = TypeVar("Figure")


@click.command("recommend")
@click.argument("scenario", metavar="SCENARIO")
@stack_option("Stack whose teams share capacity", required=True)
@click.option(
    "--goal",
    "goals",
    multiple=True,
    required=True,
    metavar="GOAL",
    help="Goal, such as 'p95 wait of serving < 10m'. Repeatable: all goals must be met.",
)
@click.option(
    "--trials",
    default=200,
    show_default=True,
    type=click.IntRange(1, 100_000),
    metavar="N",
    help="Number of policies to simulate.",
)
@click.option(
    "--seeds",
    default=3,
    show_default=True,
    type=click.IntRange(1, 50),
    metavar="N",
    help="Number of random draws of the scenario per policy.",
)
@click.option(
    "--seed",
    default=0,
    show_default=True,
    type=click.IntRange(0),
    metavar="N",
    help="Random seed of the search and its draws.",
)
@click.option("--workers", type=click.IntRange(1), metavar="N", help="Number of processes. Default: one per core.")
@click.option("--on", metavar="dask://HOST:PORT", help="Simulate on a Dask cluster instead of this machine.")
@output_options("text", "json", "patch", documents=("hpkit_whatif.recommend.model:Recommendation",))
@click.option("--capacity", is_flag=True, help="Change the instance groups too, at the lowest cost.")
@click.option("--write", is_flag=True, help="Change the organization file if the goals are met.")
def command(
    scenario: str,
    stack: str,
    goals: tuple[str, ...],
    trials: int,
    seeds: int,
    seed: int,
    workers: int | None,
    on: str | None,
    capacity: bool,
    write: bool,
) -> Output:
    """Find quotas, weights and borrow limits that meet goals for a scenario.

    Each candidate policy passes the validator and is simulated. The result is a patch of the organization file, with
    what each team gains and gives up. Goals: `p50|p95|max wait of TEAM|all < 10m`, `preemptions of TEAM|all < 5`, `lost
    work of TEAM|all < 2` (instance-hours), `utilization > 80%`, `fairness > 0.9`. If no policy meets
    all goals, shows the closest one and exits 1.
    """
    from hpkit.cli.common.inputs import choose_stack
    from hpkit.project import load_stack
    from hpkit_whatif.recommend import parse_goal, recommend
    from hpkit_whatif.scenario import open_scenario
    from hpkit_whatif.simulate.workers import cluster

    teams = [team.name for team in choose_stack(stack).teams]
    parsed_goals = [parse_goal(goal, teams) for goal in goals]
    where = cluster(on) if on else None
    loaded = load_stack(stack)
    recommendation = recommend(
        loaded, open_scenario(scenario), parsed_goals, trials=trials, seeds=seeds, seed=seed, workers=workers, on=where
    )
    patch, met = _chosen(recommendation, capacity=capacity)
    if not met:
        click.echo(f"no simulated policy meets the goals; this is the nearest of {recommendation.tried}", err=True)
    if write:
        _write(recommendation, met=met, capacity=capacity)
    return Output(
        not met,
        text=lambda: _table(recommendation, capacity=capacity),
        json=lambda: json_document(recommendation),
        patch=lambda: patch,
    )


def _chosen(recommendation: Recommendation, *, capacity: bool) -> tuple[str, bool]:
    """Return the requested patch, and whether it meets the goals."""
    if not capacity:
        return recommendation.patch, recommendation.met
    if recommendation.capacity is None:
        raise InputError(
            f"{recommendation.file} has no instance group that teams share, so --capacity can't change anything"
        )
    return recommendation.capacity.patch, recommendation.capacity.met


def _write(recommendation: Recommendation, *, met: bool, capacity: bool) -> None:
    if not met:
        click.echo(f"{recommendation.file} wasn't changed: the goals aren't met", err=True)
        return
    texts = recommendation.capacity.texts if capacity and recommendation.capacity is not None else recommendation.texts
    if not texts:
        click.echo(f"{recommendation.file} wasn't changed: it meets the goals", err=True)
    for name, text in texts.items():
        file = Path(name)
        try:
            bom = file.read_bytes().startswith(b"\xef\xbb\xbf")
            file.write_bytes((b"\xef\xbb\xbf" if bom else b"") + text.encode())
        except OSError as error:
            raise InputError(f"{os.fspath(file)} can't be written: {error.strerror}") from None
        click.echo(f"wrote {name}", err=True)


def _table(recommendation: Recommendation, *, capacity: bool) -> str:
    console = paper()
    console.print(
        f"{recommendation.stack}, {recommendation.scenario}: {plural(recommendation.tried, 'policy')} simulated, "
        f"{recommendation.rejected} rejected by the validator"
    )
    console.print(_verdict(recommendation) + "\n")
    table = grid("goal", "now", "then", "met in", title="Goals")
    for result in recommendation.goals:
        before, after = (sum(side) / len(side) for side in (result.before, result.after))
        table.add_row(
            result.goal.text,
            result.goal.shown(before),
            result.goal.shown(after),
            f"{result.met} of {len(result.after)}",
        )
    console.print(table)
    if recommendation.changes:
        table = grid("value", "now", "then", title="Changes")
        for change in recommendation.changes:
            table.add_row(change.path, str(change.before), str(change.after))
        console.print(table)
        console.print(_teams("Teams: what each gains and gives up", recommendation.teams))
    for line in recommendation.fixed:
        console.print(f"not varied: {line}")
    for line in recommendation.warnings:
        console.print(f"warning: {line}")
    if recommendation.capacity is not None:
        _print_capacity(console, recommendation.capacity)
    patch, _ = _chosen(recommendation, capacity=capacity)
    return text_of(console) + (f"\n{patch}" if patch else "")


def _teams(title: str, teams: Iterable[TeamResult]) -> Table:
    from hpkit.text.formatting import figure, percent, span

    table = grid("team", "quota", "served", "never", "p50", "p95", "preempted", "lost", title=title)
    for team in teams:
        table.add_row(
            team.name, _pair(team.quota, figure), _pair(team.service, percent), _pair(team.never, figure),
            _pair(team.wait_median, span), _pair(team.wait_p95, span), _pair(team.preempted, figure),
            _pair(team.lost, figure),
        )  # fmt: skip
    return table


def _verdict(recommendation: Recommendation) -> str:
    sure = recommendation.confidence
    if not sure.drawn:
        confidence_text = "the scenario has no random draws, so one run is enough"
    else:
        confidence_text = (
            f"in {sure.met} of {sure.draws} draws of the search, and {sure.other_met} of {sure.other_draws} others"
        )
    if not recommendation.met:
        nearest = f"All are met {confidence_text}." if sure.drawn else f"T{confidence_text[1:]}."
        return f"No simulated policy meets the goals; this is the nearest. {nearest}"
    if not recommendation.changes:
        return f"The file already meets the goals; {confidence_text}."
    count = len(recommendation.changes)
    return f"Changing {count} value{'s' * (count > 1)} meets the goals; {confidence_text}."


def _print_capacity(console: Console, capacity: CapacityChange) -> None:
    if not capacity.changes or all(before == after for _, before, after in capacity.instances):
        said = "fewer instances don't meet the goals" if capacity.met else "more instances don't help"
        console.print(f"Capacity: {said}.")
        return
    settings = ", ".join(
        f"{after} × {kind} instead of {before}" for kind, before, after in capacity.instances if before != after
    )
    if capacity.monthly is None:
        money = "at an unknown price"
    else:
        of = f" at the prices of {capacity.prices}" if capacity.prices else ""
        about, more = "about " if capacity.priced_in else "", "more" if capacity.monthly > 0 else "less"
        money = f"{about}${abs(capacity.monthly):,.0f} per month {more}, on demand{of}"
    best = "Cheapest that meets the goals" if capacity.compared else "Fewest that meet the goals"
    verdict = best if capacity.met else "Nearest, but it doesn't meet the goals"
    console.print(f"Capacity: {verdict}: {settings}, {money}, with:")
    for change in capacity.changes:
        console.print(f"  {change.path}: {change.before} → {change.after}")
    for line in capacity.warnings:
        console.print(f"  new warning: {line}")
    console.print(_teams("\nTeams with these instances", capacity.teams))
    console.print("To write these changes as a patch, add `--capacity`.")


def _pair(pair: tuple[Figure, Figure], write: Callable[[Figure], str]) -> str:
    """Write a figure now and then, once where it stays."""
    now, then = map(write, pair)
    return now if now == then else f"{now} → {then}"

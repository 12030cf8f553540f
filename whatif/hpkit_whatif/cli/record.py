"""`hpkit whatif record`: what a cluster or a public trace ran, as a scenario."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpkit.cli.formats import output_option
from hpkit.cli.live_common import choose_stack, observe, platform_options, rights
from hpkit.errors import SelectionError
from hpkit.text.plural import plural
from hpkit.text.spelling import hint

if TYPE_CHECKING:
    from hpkit.plan.model import Plan
    from hpkit_whatif.scenario.traces import Shape

__all__ = ["command"]

_NO_PLACES = "a CSV says nothing of placement and topology"
_TRACES = ("alibaba-2023",)


@click.command("record", epilog=rights("whatif record"))
@click.argument("files", nargs=-1, type=click.Path(path_type=Path), metavar="[FILE]...")
@platform_options
@click.option("--since", default="7d", show_default=True, metavar="DURATION", help="How far back, of a cluster.")
@click.option("--trace", type=click.Choice(_TRACES), help="FILEs are of this public trace.")
@click.option(
    "--team",
    "given",
    multiple=True,
    metavar="GROUP=TEAM",
    help="Whose a group of the trace becomes; others are dealt out in turn.",
)
@click.option("--instance-type", metavar="TYPE", help="What the trace's tasks run on; needed where teams have several.")
@click.option("--seed", type=int, help="Another draw of a scenario's generators.")
@output_option("Write to this file, *.yaml or *.csv", required=True)
@click.option("--force", is_flag=True, help="Replace a file that is there.")
def command(
    files: tuple[Path, ...],
    stack: str | None,
    profile: str | None,
    since: str,
    trace: str | None,
    given: tuple[str, ...],
    instance_type: str | None,
    seed: int | None,
    output: Path,
    force: bool,
) -> None:
    """Write a scenario of what teams asked for: on a cluster, in a public trace, or in another scenario.

    Without FILE, of the running platform: Kueue's Workloads of the last days. With --trace, of FILEs as they are
    published: openb_pod_list_*.csv. With one scenario as FILE, its tasks and
    generators drawn, as CSV. What is left out or changed is said on standard error.
    """
    to = output
    if to.suffix not in (".yaml", ".yml", ".csv"):
        raise click.UsageError(f"--output {to}: name a file that ends in .yaml or .csv")
    if to.exists() and not force:
        raise click.UsageError(f"{to} is there already; name another file, or add --force")
    if trace and not files:
        raise click.UsageError("--trace needs the trace's FILE")
    if not trace and (given or instance_type):
        raise click.UsageError("--team and --instance-type belong to --trace")
    if not files:
        _from_cluster(choose_stack(stack), profile, since, to)
        return
    if to.suffix != ".csv":
        raise click.UsageError(f"--output {to}: it may be long, and is written as CSV: name a file that ends in .csv")
    if trace:
        _from_trace(trace, files, choose_stack(stack), given, instance_type, to)
    else:
        _from_scenario(files, seed, to)


def _from_cluster(plan: Plan, profile: str | None, since: str, to: Path) -> None:
    from hpkit_whatif.record import Yaml, recorded, writing
    from hpkit_whatif.scenario.model import duration
    from hpkit_whatif.scenario.read import write_csv

    try:
        seconds = duration(since)
    except ValueError as error:
        raise click.UsageError(f"--since: {error}") from None
    if not seconds:
        raise click.UsageError("--since 0: nothing happens in no time")
    observed = observe(plan, profile, aws=())
    found = recorded(observed, plan, since=seconds)
    said = [*found.said]
    if not found.tasks:
        _say(said)
        raise SelectionError(f"{plan.stack} has no Workload of a team in the last {since}: nothing to record")
    with writing(to) as file:
        if to.suffix == ".csv":
            count = write_csv(found.tasks, file)
            if any(task.placement for task in found.tasks):
                said.append(_NO_PLACES)
            said.append(f"a CSV has no `until`: simulate it with one ({seconds:g}s), as tasks without an end never end")
        else:
            description = f"What {plan.stack} was asked for in {since} up to {observed.time:%Y-%m-%d %H:%M} UTC."
            count = Yaml(description, found.until, found.tasks, found.topology).write(file)
    _done(count, to, said)


def _from_trace(
    trace: str, files: tuple[Path, ...], plan: Plan, given: tuple[str, ...], instance_type: str | None, to: Path
) -> None:
    from hpkit_whatif.record import writing
    from hpkit_whatif.scenario import Tasks, model_for
    from hpkit_whatif.scenario.read import write_csv
    from hpkit_whatif.scenario.traces import TRACES, Tally, Teams, tasks_of

    names = [team.name for team in plan.teams if not team.is_shared_pool]
    teams, tally = Teams(names, _groups(given, names, plan.stack)), Tally()
    shape = _shape(plan, instance_type)
    tasks = chain.from_iterable(TRACES[trace](file, tally) for file in files)
    with writing(to) as file:
        count = write_csv(tasks_of(tasks, shape, teams, tally, of=Tasks(plan, model_for(plan))), file)
        if not count:
            _say(tally.lines())
            raise SelectionError(f"no task is left of {', '.join(map(str, files))}: nothing to record")
    unmet = [
        f"--team {group}=…: no task that is left is of group {group}; {hint(group, teams.of)}"
        for group in teams.unmet()
    ]
    _done(count, to, [*tally.lines(), *_dealt(teams.of), *unmet])


def _dealt(teams: dict[str, str]) -> list[str]:
    groups: dict[str, list[str]] = {}
    for group, team in teams.items():
        groups.setdefault(team, []).append(group)
    return [
        f"{team} is {len(found):,} group{'s' * (len(found) > 1)} of the trace: {', '.join(found[:5])}"
        + (", …" if len(found) > 5 else "")
        for team, found in groups.items()
    ]


def _groups(given: tuple[str, ...], teams: list[str], stack: str) -> dict[str, str]:
    found = {}
    for text in given:
        group, equals, team = text.rpartition("=")
        if not equals or not group:
            raise click.UsageError(f"--team {text}: write GROUP=TEAM")
        if team not in teams:
            raise click.UsageError(f"--team {text}: {stack} has no team {team}; {hint(team, teams)}")
        found[group] = team
    if not teams:
        raise click.UsageError(f"{stack} has no team that could ask for anything")
    return found


def _shape(plan: Plan, wanted: str | None) -> Shape:
    """Return what the trace's tasks run on; SelectionError where that is not plain, or has no accelerator."""
    from hpkit.catalog import find_instance_type
    from hpkit_whatif.scenario.traces import Shape

    kinds = {}
    for name in dict.fromkeys(each.instance_type for team in plan.teams for each in team.quota_resources):
        known = find_instance_type(name)
        if known is not None and known.accelerators:
            kinds[name] = known.accelerators
    if wanted is None and len(kinds) == 1:
        (wanted,) = kinds
    if wanted is None:
        if not kinds:
            raise SelectionError(f"no team of {plan.stack} has quota of accelerators, for which a trace's tasks ask")
        raise SelectionError(
            f"teams of {plan.stack} have accelerators of {', '.join(kinds)}: say by --instance-type on which the "
            "trace's tasks run"
        )
    if wanted not in kinds:
        raise SelectionError(f"no team of {plan.stack} has accelerators of {wanted}; {hint(wanted, kinds)}")
    return Shape(wanted, kinds[wanted])


def _from_scenario(files: tuple[Path, ...], seed: int | None, to: Path) -> None:
    from hpkit_whatif.record import writing
    from hpkit_whatif.scenario import open_scenario
    from hpkit_whatif.scenario.read import write_csv

    if len(files) > 1:
        raise click.UsageError("one scenario at a time; for public traces say which by --trace")
    source = open_scenario(files[0])
    lost: dict[str, None] = {}
    if source.scenario.until is not None:
        lost["a CSV has no `until`"] = None
    if source.scenario.topology or any(task.placement for task in source.scenario.tasks):
        lost[_NO_PLACES] = None
    with writing(to) as file:
        count = write_csv((located.spec for located in source.tasks(seed=seed)), file)
        if not count:
            raise SelectionError(f"{files[0]} has no task: nothing to record")
    _done(count, to, list(lost))


def _done(count: int, to: Path, said: list[str]) -> None:
    _say(said)
    click.echo(f"wrote {plural(count, 'task')} to {to}")


def _say(lines: list[str]) -> None:
    for line in lines:
        click.echo(f"note: {line}", err=True)

"""`hpkit whatif record`: writes the tasks of a cluster or a public trace as a scenario."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpkit.cli.documents import acted
from hpkit.cli.formats import acts, output_option
from hpkit.cli.live_common import choose_stack, observe, platform_options, rights
from hpkit.errors import SelectionError
from hpkit.text.plural import plural
from hpkit.text.spelling import hint

if TYPE_CHECKING:
    from hpkit.plan.model import Plan
    from hpkit_whatif.scenario.traces import Shape

__all__ = ["command"]

_NO_PLACES = "a CSV has no placement and topology"
_TRACES = ("alibaba-2023",)


@click.command("record", epilog=rights("whatif record"))
@click.argument("files", nargs=-1, type=click.Path(path_type=Path), metavar="[FILE]...")
@platform_options
@click.option("--since", default="7d", show_default=True, metavar="DURATION", help="How far to look back on a cluster.")
@click.option("--trace", type=click.Choice(_TRACES), help="Name of the public trace that FILEs belong to.")
@click.option(
    "--team",
    "assignments",
    multiple=True,
    metavar="GROUP=TEAM",
    help="Map a trace group to a team. Other groups are assigned to teams in turn.",
)
@click.option(
    "--instance-type", metavar="TYPE", help="Instance type for the trace's tasks; required if teams have several."
)
@click.option("--seed", type=int, help="Random seed of the scenario's generators.")
@output_option("Write to this file, *.yaml or *.csv", required=True)
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@acts
def command(
    files: tuple[Path, ...],
    stack: str | None,
    profile: str | None,
    since: str,
    trace: str | None,
    assignments: tuple[str, ...],
    instance_type: str | None,
    seed: int | None,
    output: Path,
    force: bool,
) -> None:
    """Record the tasks of a cluster, a public trace, or another scenario as a scenario.

    Without FILE, records the running platform: Kueue's Workloads of the last days. With --trace, reads FILEs as
    published: openb_pod_list_*.csv. With one scenario as FILE, writes all its tasks as CSV, including generated
    ones. Omitted and changed tasks are reported on standard error.
    """
    to = output
    if to.suffix not in (".yaml", ".yml", ".csv"):
        raise click.UsageError(f"--output {to}: name a file that ends in .yaml or .csv")
    if to.exists() and not force:
        raise click.UsageError(f"{to} already exists; name another file, or add --force")
    if trace and not files:
        raise click.UsageError("--trace requires the trace's FILE")
    if not trace and (assignments or instance_type):
        raise click.UsageError("--team and --instance-type require --trace")
    if not files:
        _from_cluster(choose_stack(stack), profile, since, to)
        return
    if to.suffix != ".csv":
        raise click.UsageError(
            f"--output {to}: a drawn scenario can be long and is written as CSV; name a file that ends in .csv"
        )
    if trace:
        _from_trace(trace, files, choose_stack(stack), assignments, instance_type, to)
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
        raise click.UsageError("--since 0: use a duration above zero")
    observed = observe(plan, profile, aws=())
    recording = recorded(observed, plan, since=seconds)
    notes = [*recording.notes]
    if not recording.tasks:
        _say(notes)
        raise SelectionError(
            f"teams of {plan.stack} have no Workloads in the last {since}, so there is nothing to record"
        )
    with writing(to) as file:
        if to.suffix == ".csv":
            count = write_csv(recording.tasks, file)
            if any(task.placement for task in recording.tasks):
                notes.append(_NO_PLACES)
            notes.append(
                f"a CSV has no `until`; set it when you simulate ({seconds:g}s), because tasks without an end never "
                "finish"
            )
        else:
            description = f"Tasks of {plan.stack} in the {since} before {observed.time:%Y-%m-%d %H:%M} UTC."
            count = Yaml(description, recording.until, recording.tasks, recording.topology).write(file)
    _done(count, to, notes)


def _from_trace(
    trace: str, files: tuple[Path, ...], plan: Plan, assignments: tuple[str, ...], instance_type: str | None, to: Path
) -> None:
    from hpkit_whatif.record import writing
    from hpkit_whatif.scenario import Tasks, scenario_model
    from hpkit_whatif.scenario.read import write_csv
    from hpkit_whatif.scenario.traces import TRACES, Tally, Teams, convert_tasks

    team_names = [team.name for team in plan.teams if not team.is_shared_pool]
    teams, tally = Teams(team_names, _groups(assignments, team_names, plan.stack)), Tally()
    shape = _shape(plan, instance_type)
    tasks = chain.from_iterable(TRACES[trace](file, tally) for file in files)
    with writing(to) as file:
        count = write_csv(convert_tasks(tasks, shape, teams, tally, plan_tasks=Tasks(plan, scenario_model(plan))), file)
        if not count:
            _say(tally.lines())
            raise SelectionError(f"no tasks remain of {', '.join(map(str, files))}, so there is nothing to record")
    unmet = [
        f"--team {group}=…: no remaining task is in group {group}; {hint(group, teams.team_by_group)}"
        for group in teams.unmet()
    ]
    _done(count, to, [*tally.lines(), *_dealt(teams.team_by_group), *unmet])


def _dealt(teams: dict[str, str]) -> list[str]:
    groups: dict[str, list[str]] = {}
    for group, team in teams.items():
        groups.setdefault(team, []).append(group)
    return [
        f"{team} has {len(group_names):,} group{'s' * (len(group_names) > 1)} of the trace: "
        f"{', '.join(group_names[:5])}" + (", …" if len(group_names) > 5 else "")
        for team, group_names in groups.items()
    ]


def _groups(assignments: tuple[str, ...], teams: list[str], stack: str) -> dict[str, str]:
    teams_by_group = {}
    for text in assignments:
        group, equals, team = text.rpartition("=")
        if not equals or not group:
            raise click.UsageError(f"--team {text}: use GROUP=TEAM")
        if team not in teams:
            raise click.UsageError(f"--team {text}: {stack} has no team {team}; {hint(team, teams)}")
        teams_by_group[group] = team
    if not teams:
        raise click.UsageError(f"{stack} has no team that can request capacity")
    return teams_by_group


def _shape(plan: Plan, instance_type: str | None) -> Shape:
    """Return the instance type for the trace's tasks. Raises SelectionError if it's ambiguous or has no accelerator."""
    from hpkit.catalog import find_instance_type
    from hpkit_whatif.scenario.traces import Shape

    accelerators = {}
    for name in dict.fromkeys(each.instance_type for team in plan.teams for each in team.quota_resources):
        known = find_instance_type(name)
        if known is not None and known.accelerators:
            accelerators[name] = known.accelerators
    if instance_type is None and len(accelerators) == 1:
        (instance_type,) = accelerators
    if instance_type is None:
        if not accelerators:
            raise SelectionError(f"no team of {plan.stack} has quota of accelerators, which the trace's tasks request")
        raise SelectionError(
            f"teams of {plan.stack} have accelerators of {', '.join(accelerators)}; choose the type for the trace's "
            "tasks "
            "with --instance-type"
        )
    if instance_type not in accelerators:
        raise SelectionError(
            f"no team of {plan.stack} has accelerators of {instance_type}; {hint(instance_type, accelerators)}"
        )
    return Shape(instance_type, accelerators[instance_type])


def _from_scenario(files: tuple[Path, ...], seed: int | None, to: Path) -> None:
    from hpkit_whatif.record import writing
    from hpkit_whatif.scenario import open_scenario
    from hpkit_whatif.scenario.read import write_csv

    if len(files) > 1:
        raise click.UsageError("name one scenario; for a public trace, add --trace")
    source = open_scenario(files[0])
    lost: dict[str, None] = {}
    if source.scenario.until is not None:
        lost["a CSV has no `until`"] = None
    if source.scenario.topology or any(task.placement for task in source.scenario.tasks):
        lost[_NO_PLACES] = None
    with writing(to) as file:
        count = write_csv((located.spec for located in source.tasks(seed=seed)), file)
        if not count:
            raise SelectionError(f"{files[0]} has no tasks, so there is nothing to record")
    _done(count, to, list(lost))


def _done(count: int, to: Path, said: list[str]) -> None:
    _say(said)
    acted("write", to, detail=plural(count, "task"))
    click.echo(f"wrote {plural(count, 'task')} to {to}")


def _say(lines: list[str]) -> None:
    for line in lines:
        click.echo(f"note: {line}", err=True)

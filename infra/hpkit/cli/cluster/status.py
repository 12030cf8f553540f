"""`hpkit cluster status`: usage, tasks by team, failures, and differences from the organization file."""

from __future__ import annotations

import io
import os
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from contextlib import redirect_stdout, suppress
from typing import TYPE_CHECKING

import click

from hpkit.cli.common.aws_session import aws_session
from hpkit.cli.common.documents import json_document
from hpkit.cli.common.formats import Output, folded, output_options, width
from hpkit.cli.common.inputs import choose_stack
from hpkit.cli.common.live import observe, platform_options, rights
from hpkit.cli.common.tables import columns, console, grid
from hpkit.errors import HpkitError, ToolError
from hpkit.plan.model import NAMESPACE_PREFIX, Plan
from hpkit.text.formatting import plural, span

if TYPE_CHECKING:
    from rich.console import Console

    from hpkit.cluster.live.status import Status, TaskStatus, TeamStatus

__all__ = ["command"]


_TASKS = 5
# Below it a table of eight columns would break its words.
_NARROW = 60
_MANY = 200


@click.command("status", epilog=rights("cluster status"))
@platform_options
@output_options("text", "json", documents=("hpkit.cluster.live.as_json:ClusterStatus",))
@click.option("--topology", is_flag=True, help="Show the nodes by network layer instead.")
@click.option("--watch", is_flag=True, help="Show the page on the full terminal, and refresh it until Ctrl-C.")
@click.option(
    "--every",
    type=click.FloatRange(1),
    default=5,
    show_default=True,
    metavar="SECONDS",
    help="Seconds between refreshes, with --watch.",
)
def command(stack: str | None, profile: str | None, topology: bool, watch: bool, every: float) -> Output | None:
    """Show a running platform: instance groups, teams with their quotas and tasks, nodes, recent events.

    Reads SageMaker, EKS and the Kubernetes API, and changes nothing. Differences from the organization file are marked.
    If something can't be read, its part is empty, and a warning explains why.

    --topology shows the labels `topology.k8s.aws/network-node-layer-1` to `-3` of each node, its use, and its tasks.
    """
    from hpkit.cluster.live.as_json import ClusterStatus
    from hpkit.cluster.live.differences import differences
    from hpkit.cluster.live.status import status_of
    from hpkit.cluster.live.tables import topology_table

    plan = choose_stack(stack)
    if watch:
        if topology:
            raise click.UsageError("--topology can't be combined with --watch")
        _watch(plan, profile, click.get_current_context().params["form"], every)
        return None
    observed = observe(plan, profile, settings=True)
    if topology and "nodes" in observed.unread:
        raise ToolError("the nodes couldn't be read. Use a role that can list nodes, such as one in eks.viewers")
    status, differs = status_of(observed), differences(observed, plan)
    return Output(
        text=lambda: columns(topology_table(status)) if topology else _print(plan, status, differs),
        json=lambda: json_document(
            ClusterStatus.model_validate(status).model_copy(update={"stack": plan.stack, "differences": list(differs)})
        ),
    )


def _watch(plan: Plan, profile: str | None, form: str, every: float) -> None:
    """Show the page on the whole terminal and read again every so many seconds, until Ctrl-C.

    If a read fails, the reason is shown above the last page.
    """
    if form != "text" or not sys.stdout.isatty():
        raise click.UsageError(
            "--watch requires a terminal; elsewhere, run `hpkit cluster status --format json` repeatedly"
        )
    from rich.live import Live
    from rich.text import Text

    from hpkit.cluster.live.differences import differences
    from hpkit.cluster.live.read import read
    from hpkit.cluster.live.status import status_of
    from hpkit.text.printable import printable_lines

    session = aws_session(profile, plan.spec.region)
    namespaces = [team.namespace for team in plan.teams]
    page, head = "", "reading …"
    with suppress(KeyboardInterrupt), Live(Text(head), screen=True, auto_refresh=False) as live:
        while True:
            try:
                observed = read(session, cluster=plan.spec.cluster.name, settings=True, namespaces=namespaces)
                page = _captured(plan, status_of(observed), differences(observed, plan))
                head = f"{observed.time:%H:%M:%S} UTC, every {every:g} s; Ctrl-C to stop"
            except HpkitError as error:
                head = printable_lines(f"not read: {error}")
            live.update(Text.from_ansi(f"{head}\n{page}"), refresh=True)
            time.sleep(every)


def _captured(plan: Plan, status: Status, differs: Iterable[str]) -> str:
    """Return the output of `hpkit cluster status`, with its colors on a terminal."""
    with redirect_stdout(io.StringIO()) as text:
        _print(plan, status, differs, terminal=True)
    return text.getvalue()


def _print(plan: Plan, status: Status, differs: Iterable[str], *, terminal: bool | None = None) -> None:
    """Print the page. terminal: whether a terminal shows it; None detects that."""
    from hpkit.cluster.live.status import policy_words
    from hpkit.cluster.live.tables import groups_table, limit_words, nodes_table, teams_table

    paper = console(color_system=None if os.environ.get("NO_COLOR") else "auto", force_terminal=terminal)
    platform = status.observed.platform
    state = "not read" if platform is None else platform.status
    paper.print(f"[bold]{plan.stack}[/]: cluster {plan.spec.cluster.name} in {plan.spec.region} is {state}")
    _section("needs attention", status.problems)
    _section("differs from the organization file", differs)
    _table(paper, groups_table(status), (0, 1, 4))
    for pool in status.pools:
        click.echo(folded(f"NodePool {pool.name}: {', '.join(limit_words(pool)) or 'without limits'}", "    ", "  "))
    if platform is not None:
        click.echo(folded(f"cluster policy: {policy_words(platform)}", "  ", ""))
    _table(paper, teams_table(status), (0, 1))
    for team in status.teams:
        _tasks(team)
    rows, available = nodes_table(status)
    if len(rows) > 1:
        click.echo(columns(rows))
    if available:
        click.echo(f"{plural(available, 'more node')} available")
    if platform is not None and platform.events:
        click.echo("last events")
        for event in platform.events[:_TASKS]:
            since = span(max(0.0, (status.observed.time - event.time).total_seconds()))
            click.echo(folded(f"{since} ago, {event.about}: {event.description}", "    ", "  "))


def _section(title: str, lines: Iterable[str]) -> None:
    for number, line in enumerate(lines):
        if not number:
            click.echo(title)
        click.echo(folded(line, "    ", "  "))


def _table(paper: Console, rows: Sequence[Sequence[str]], names: Collection[int]) -> None:
    """Print a table; on a narrow terminal each row is a block of lines. names: columns that aren't values.

    Many are plain columns: a grid takes two milliseconds for each row.
    """
    head, *others = rows
    if not others:
        return
    if width() < _NARROW or len(others) > _MANY:
        click.echo(columns(rows))
        return
    table = grid(*head, names=[head[index] for index in names])
    for row in others:
        table.add_row(*row)
    paper.print(table)


def _tasks(team: TeamStatus) -> None:
    from hpkit.cluster.live.model import main_resource
    from hpkit.cluster.live.waiting import counted

    states = Counter(running.state for running in team.running)
    counts = [f"{count} {state}" for state, count in sorted(states.items(), key=lambda each: -each[1])]
    counts += [f"{len(team.waiting)} waiting"] if team.waiting else []
    if counts:
        click.echo(f"{team.team}: {', '.join(counts)}")
    for running in team.running[:_TASKS]:
        resource = main_resource(running.requests)
        pods = plural(running.pods, "pod")
        if running.pods_running not in (None, running.pods):
            pods = f"{running.pods_running} of {pods}"
        parts = [
            *([] if running.state == "running" else [running.state]),
            pods,
            *([counted(running.requests[resource], resource)] if resource in running.requests else []),
        ]
        why = f": {running.reason}" if running.state in ("blocked", "ending") else ""
        click.echo(folded(f"{_about(running)}: {', '.join(parts)}{why}", "    ", "  "))
    for waiting in team.waiting[:_TASKS]:
        click.echo(folded(f"{_about(waiting)}: {waiting.reason}", "    ", "  "))
    more = sum(max(0, len(tasks) - _TASKS) for tasks in (team.running, team.waiting))
    if more:
        click.echo(f"  and {more} more: kubectl get workloads -n {NAMESPACE_PREFIX}{team.team}")


def _about(task: TaskStatus) -> str:
    return f"{task.name} ({task.kind}, priority {task.priority}, {span(max(0, task.seconds))})"

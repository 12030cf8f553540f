"""`hpkit cluster status`: who uses what, what waits and why, what fails, and what differs from the stack file."""

from __future__ import annotations

import io
import os
import sys
import time
from collections.abc import Collection, Iterable
from contextlib import redirect_stdout, suppress
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, TypedDict

import click
from click.core import ParameterSource

from hpkit.cli.aws_session import aws_session
from hpkit.cli.documents import json_document
from hpkit.cli.formats import folded, output_options, width
from hpkit.cli.live_common import age, choose_stack, observe, platform_options, rights
from hpkit.cli.tables import columns, console, grid
from hpkit.plan.model import Plan
from hpkit.text.formatting import json_number

if TYPE_CHECKING:
    from rich.console import Console

    from hpkit.cluster.live.model import SchedulerPolicy
    from hpkit.cluster.live.sections import Section
    from hpkit.cluster.live.status import Status, TeamStatus, WaitingTask


class _Cluster(TypedDict):
    name: str
    status: str


class _Policy(TypedDict):
    name: str
    status: str
    message: str | None
    fairShare: str | None
    idleResourceSharing: str | None
    priorityClasses: dict[str, int]


class _Group(TypedDict):
    name: str
    instanceTypes: list[str]
    target: int
    current: int
    running: int
    others: Annotated[dict[str, int], "Instances in other states."]
    reasons: Annotated[list[str], "Why instances are missing."]


class _NodePool(TypedDict):
    name: str
    ready: bool
    limits: dict[str, int | float]
    used: dict[str, int | float]


class _Share(TypedDict):
    instanceType: str
    resource: str
    quota: int | float
    used: int | float
    borrowed: int | float
    borrowLimit: Annotated[int | float | None, "null: no limit."]
    lenders: list[str]
    moreLenders: int
    lentAtLeast: int | float
    lentAtMost: int | float


class _Task(TypedDict):
    kind: str
    name: str
    team: str
    priority: int
    seconds: int
    reason: str


class _Team(TypedDict):
    team: str
    shares: list[_Share]
    running: Annotated[int | None, "null: you may not read its tasks."]
    waiting: Annotated[list[_Task] | None, "null: you may not read its tasks."]
    problem: str | None


class _Addon(TypedDict):
    name: str
    version: str
    status: str
    issues: list[str]


class _Event(TypedDict):
    time: str
    level: str
    about: str
    description: str


class ClusterStatus(TypedDict):
    """State of a running platform."""

    stack: str
    time: str
    cluster: _Cluster | None
    policy: _Policy | None
    instanceGroups: list[_Group]
    nodePools: list[_NodePool]
    teams: list[_Team]
    waitingInNoQueue: list[_Task]
    addons: list[_Addon]
    events: list[_Event]
    problems: list[str]
    differences: Annotated[list[str], "What differs from the stack file."]
    unknown: Annotated[list[str], "What couldn't be read."]


_WAITING = 5
# Below it a table of eight columns would break its words.
_NARROW = 60
_MANY = 200


@click.command("status", epilog=rights("cluster status"))
@platform_options
@output_options("text", "json", "html")
@click.option("--all", "every_stack", is_flag=True, help="Show one row per stack of the project.")
@click.option("--watch", is_flag=True, help="Show the page on the full terminal, and refresh it until Ctrl-C.")
@click.option(
    "--every",
    type=click.FloatRange(1),
    default=5,
    show_default=True,
    metavar="SECONDS",
    help="Seconds between refreshes, with --watch.",
)
def command(stack: str | None, profile: str | None, form: str, every_stack: bool, watch: bool, every: float) -> None:
    """Show a running platform: instance groups, teams and quotas, waiting tasks, add-ons, recent events.

    Reads SageMaker, EKS and the Kubernetes API, and changes nothing. Differences from the stack file are marked. If
    something can't be read, its part is empty, and a warning explains why.

    --all reads the stacks at the same time, each with the `aws:profile` of its settings. If none can be read, the exit
    code is 1.
    """
    if every_stack:
        typed = click.get_current_context().get_parameter_source("stack") is ParameterSource.COMMANDLINE
        if typed or watch or form == "html":
            raise click.UsageError("--all can't be combined with --stack, --watch or --format html")
        _show_all(profile, form)
        return
    from hpkit.cluster.live.differences import differences
    from hpkit.cluster.live.status import status_of

    plan = choose_stack(stack)
    if watch:
        _watch(plan, profile, form, every)
        return
    observed = observe(plan, profile, settings=True)
    status, differs = status_of(observed), differences(observed, plan)
    if form == "json":
        click.echo(json_document(ClusterStatus, **_as_dict(plan, status, differs)))
    elif form == "html":
        from hpkit.cluster.live.as_html import status_html

        click.echo(status_html(f"{plan.stack} in {plan.spec.region}", status, differs))
    else:
        _print(plan, status, differs)


def _show_all(profile: str | None, form: str) -> None:
    from hpkit.cli.status_all import ClusterStatusList, document_of, read_all, rows_table

    rows = read_all(profile)
    if form == "json":
        click.echo(json_document(ClusterStatusList, **document_of(rows)))
    else:
        click.echo(rows_table(rows), nl=False)
    if not any(row.status for row in rows):
        sys.exit(1)


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
    from hpkit.errors import HpkitError
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
    """Return what `hpkit cluster status` prints, with the colors that it has on a terminal."""
    with redirect_stdout(io.StringIO()) as text:
        _print(plan, status, differs, terminal=True)
    return text.getvalue()


def _as_dict(plan: Plan, status: Status, differs: Iterable[str]) -> ClusterStatus:
    observed = status.observed
    platform = observed.platform
    return {
        "stack": plan.stack,
        "time": observed.time.isoformat(),
        "cluster": None if platform is None else {"name": platform.name, "status": platform.status},
        "policy": None if platform is None or platform.policy is None else _policy(platform.policy),
        "instanceGroups": [
            {
                "name": each.group.name,
                "instanceTypes": list(each.group.instance_types),
                "target": each.group.target,
                "current": each.group.current,
                "running": each.running,
                "others": dict(each.others),
                "reasons": list(each.reasons),
            }
            for each in status.groups
        ],
        "nodePools": [
            {
                "name": each.name,
                "ready": each.ready,
                "limits": _numbers(each.limits.items()),
                "used": _numbers(each.used.items()),
            }
            for each in status.pools
        ],
        "teams": [_team(each) for each in status.teams],
        "waitingInNoQueue": [_task(each) for each in status.unserved],
        "addons": []
        if platform is None
        else [
            {"name": each.name, "version": each.version, "status": each.status, "issues": list(each.issues)}
            for each in platform.addons
        ],
        "events": []
        if platform is None
        else [
            {"time": each.time.isoformat(), "level": each.level, "about": each.about, "description": each.description}
            for each in platform.events
        ],
        "problems": list(status.problems),
        "differences": list(differs),
        "unknown": list(observed.unknown),
    }


def _policy(policy: SchedulerPolicy) -> _Policy:
    return {
        "name": policy.name,
        "status": policy.status,
        "message": policy.message or None,
        "fairShare": policy.fair_share or None,
        "idleResourceSharing": policy.idle_sharing or None,
        "priorityClasses": dict(policy.priority_classes),
    }


def _numbers(amounts: Iterable[tuple[str, Decimal]]) -> dict[str, int | float]:
    return {name: json_number(each) for name, each in amounts}


def _team(team: TeamStatus) -> _Team:
    return {
        "team": team.team,
        "shares": [
            {
                "instanceType": share.flavor,
                "resource": share.resource,
                "quota": json_number(share.quota),
                "used": json_number(share.used),
                "borrowed": json_number(share.borrowed),
                "borrowLimit": None if share.borrowing_limit is None else json_number(share.borrowing_limit),
                "lenders": list(share.lenders),
                "moreLenders": share.more_lenders,
                "lentAtLeast": json_number(share.lent[0]),
                "lentAtMost": json_number(share.lent[1]),
            }
            for share in team.shares
        ],
        "running": team.running if team.seen else None,
        "waiting": [_task(each) for each in team.waiting] if team.seen else None,
        "problem": team.problem or None,
    }


def _task(task: WaitingTask) -> _Task:
    return {
        "kind": task.kind,
        "name": task.name,
        "team": task.team,
        "priority": task.priority,
        "seconds": task.seconds,
        "reason": task.reason,
    }


def _print(plan: Plan, status: Status, differs: Iterable[str], *, terminal: bool | None = None) -> None:
    """Print the page. terminal: whether a terminal shows it; None detects that."""
    from hpkit.cluster.live.sections import groups_section, limit_words, teams_section
    from hpkit.cluster.live.status import policy_words

    paper = console(color_system=None if os.environ.get("NO_COLOR") else "auto", force_terminal=terminal)
    platform = status.observed.platform
    state = "not read" if platform is None else platform.status
    paper.print(f"[bold]{plan.stack}[/]: cluster {plan.spec.cluster.name} in {plan.spec.region} is {state}")
    _section("needs attention", status.problems)
    _section("differs from the stack file", differs)
    _table(paper, groups_section(status), (0, 1, 4))
    for pool in status.pools:
        click.echo(folded(f"NodePool {pool.name}: {', '.join(limit_words(pool)) or 'without limits'}", "    ", "  "))
    if platform is not None:
        click.echo(folded(f"cluster policy: {policy_words(platform)}", "  ", ""))
    _table(paper, teams_section(status), (0, 1))
    for team in status.teams:
        _waiting(team, plan.stack)
    if platform is not None and platform.events:
        click.echo("last events")
        for event in platform.events[:_WAITING]:
            since = age(int((status.observed.time - event.time).total_seconds()))
            click.echo(folded(f"{since} ago, {event.about}: {event.description}", "    ", "  "))


def _section(title: str, lines: Iterable[str]) -> None:
    for number, line in enumerate(lines):
        if not number:
            click.echo(title)
        click.echo(folded(line, "    ", "  "))


def _table(paper: Console, section: Section, names: Collection[int]) -> None:
    """Print a section's rows; on a narrow terminal each row is a block of lines. names: columns that aren't figures.

    Many are plain columns: a grid takes two milliseconds for each row.
    """
    if not section.rows:
        return
    if width() < _NARROW or len(section.rows) > _MANY:
        click.echo(columns([section.head, *section.rows]))
        return
    table = grid(*section.head, names=[section.head[index] for index in names])
    for row in section.rows:
        table.add_row(*row)
    paper.print(table)


def _waiting(team: TeamStatus, stack: str) -> None:
    if not team.waiting:
        return
    click.echo(f"{team.team}: {len(team.waiting)} waiting")
    for task in team.waiting[:_WAITING]:
        click.echo(
            folded(
                f"{task.name} ({task.kind}, priority {task.priority}, {age(task.seconds)}): {task.reason}", "    ", "  "
            )
        )
    if len(team.waiting) > _WAITING:
        click.echo(f"  and {len(team.waiting) - _WAITING} more: hpkit job list --stack {stack} --team {team.team}")

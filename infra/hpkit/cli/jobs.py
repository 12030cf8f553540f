"""`hpkit job list`: Kueue's tasks, by team."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypedDict

import click

from hpkit.cli.completion import complete_teams
from hpkit.cli.documents import json_document
from hpkit.cli.formats import Output, output_options
from hpkit.cli.live_common import age, choose_stack, observe, platform_options, rights
from hpkit.cli.tables import columns
from hpkit.errors import ToolError
from hpkit.plan.model import Plan
from hpkit.text.formatting import amount

if TYPE_CHECKING:
    from hpkit.cluster.live.model import Observed, Task

__all__ = ["JobList", "command"]


class _Job(TypedDict):
    team: str
    kind: str
    name: str
    workload: str
    state: str
    priority: int
    priorityClass: str | None
    pods: int
    requests: Annotated[dict[str, str], "Total of each resource."]
    ageSeconds: int


class JobList(TypedDict):
    """Tasks in Kueue."""

    items: list[_Job]


_ENDED = ("succeeded", "failed")


@click.command("list", epilog=rights("job list"))
@platform_options
@click.option("--team", metavar="T", shell_complete=complete_teams, help="Only list this team's tasks.")
@click.option("--all", "everything", is_flag=True, help="List completed tasks too.")
@output_options("text", "json", documents=("hpkit.cli.jobs:JobList",))
def command(stack: str | None, profile: str | None, team: str | None, everything: bool) -> Output:
    """List tasks with the capacity that they hold or request.

    To see why one is waiting, run `hpkit job why NAME`.
    """
    plan = choose_stack(stack)
    known = [each.name for each in plan.teams]
    if team is not None and team not in known:
        raise click.UsageError(f"{plan.stack} has no team {team}; it has {', '.join(known) or 'none'}")
    observed = observe(plan, profile, aws=(), quotas=False)
    _require_read(plan, observed, team)
    tasks = [
        task
        for task in observed.tasks
        if (team is None or task.team == team) and (everything or task.state not in _ENDED)
    ]
    tasks.sort(key=lambda task: (task.namespace, task.state != "running", -task.priority, task.created))
    where = "" if observed.namespaces is None or team is not None else f" in {', '.join(observed.namespaces)}"
    nothing = f"no task{'' if everything else ' is running or waiting'}{where}"
    return Output(
        text=lambda: _print(observed, tasks) if tasks else nothing,
        json=lambda: json_document(JobList, items=[_as_dict(observed, task) for task in tasks]),
    )


def _require_read(plan: Plan, observed: Observed, team: str | None) -> None:
    """Raise ToolError if none of the requested data could be read: an empty list would mean that nothing runs."""
    namespaces = [each.namespace for each in plan.teams if team in (None, each.name)]
    if "workloads" in observed.unread or not any(map(observed.sees, namespaces or ("",))):
        whose = f"of team {team}" if team else "of the cluster"
        raise ToolError(
            f"the tasks {whose} couldn't be read. Use a role that can list workloads.kueue.x-k8s.io, in all "
            "namespaces or in the team's"
        )


def _as_dict(observed: Observed, task: Task) -> _Job:
    return {
        "team": task.team,
        "kind": task.owner_kind,
        "name": task.owner_name,
        "workload": task.name,
        "state": task.state,
        "priority": task.priority,
        "priorityClass": task.priority_class,
        "pods": task.pods,
        "requests": {name: str(value) for name, value in task.requests.items()},
        "ageSeconds": int((observed.time - task.created).total_seconds()),
    }


def _print(observed: Observed, tasks: list[Task]) -> None:
    from hpkit.cluster.live.status import main_resource

    head = ("team", "name", "kind", "state", "priority", "pods", "requests", "age")
    rows = []
    for task in tasks:
        resource = main_resource(task.requests)
        requested = (
            f"{amount(task.requests[resource])} {resource.rpartition('/')[2]}" if resource in task.requests else ""
        )
        rows.append(
            (
                task.team,
                task.owner_name,
                task.owner_kind,
                task.state,
                str(task.priority),
                str(task.pods),
                requested,
                age(int((observed.time - task.created).total_seconds())),
            )
        )
    click.echo(columns([head, *rows]))

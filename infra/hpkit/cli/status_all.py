"""`hpkit cluster status --all`: one row per stack of the project, read at the same time."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TypedDict

import click

from hpkit.cli.aws_session import aws_session, session_at
from hpkit.cli.inputs import plans_of
from hpkit.cli.tables import grid, paper, text_of
from hpkit.errors import HpkitError
from hpkit.extensions import extension, is_installed
from hpkit.plan.model import Plan
from hpkit.project import is_local, project_root, select, stack_config
from hpkit.text.plural import plural

if TYPE_CHECKING:
    from boto3 import Session

__all__ = ["ClusterStatusList", "document_of", "read_all", "rows_table"]

# A stack takes about ten calls at the same time.
_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class StackRow:
    """A stack; running and waiting are None if they couldn't be read, and reason says why the stack couldn't."""

    stack: str
    region: str
    cluster: str
    status: str = ""
    running: int | None = None
    target: int | None = None
    tasks: int | None = None
    waiting: int | None = None
    problems: tuple[str, ...] = ()
    differences: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


class _Row(TypedDict):
    stack: str
    region: str
    cluster: str
    status: Annotated[str | None, "null: the stack couldn't be read; `unknown` has the reason."]
    runningInstances: int | None
    targetInstances: int | None
    runningTasks: int | None
    waitingTasks: int | None
    problems: list[str]
    differences: Annotated[list[str], "What differs from the organization file."]
    unknown: Annotated[list[str], "What couldn't be read."]


class ClusterStatusList(TypedDict):
    """State of all running platforms of the project."""

    items: list[_Row]


def read_all(profile: str | None) -> list[StackRow]:
    """Return the rows of all stacks of the project, in the project's order."""
    plans = plans_of(select((), ()))
    with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
        return list(pool.map(lambda plan: _row(plan, profile), plans))


def _row(plan: Plan, profile: str | None) -> StackRow:
    from hpkit.cluster.live.differences import differences
    from hpkit.cluster.live.read import read
    from hpkit.cluster.live.status import status_of

    identity = (plan.stack, plan.spec.region, plan.spec.cluster.name)
    try:
        session = _session_of(plan, profile)
        namespaces = [team.namespace for team in plan.teams]
        observed = read(session, cluster=plan.spec.cluster.name, settings=True, namespaces=namespaces)
    except (HpkitError, click.UsageError) as error:
        return StackRow(*identity, unknown=(str(error),))
    status = status_of(observed)
    seen = all(team.seen for team in status.teams)
    return StackRow(
        *identity,
        status=observed.platform.status if observed.platform else "",
        running=None
        if any(each.running is None for each in status.groups)
        else sum(each.running or 0 for each in status.groups),
        target=sum(each.group.target for each in status.groups),
        tasks=sum(len(team.running) for team in status.teams) if seen else None,
        waiting=sum(len(team.waiting) for team in status.teams) if seen else None,
        problems=status.problems,
        differences=tuple(differences(observed, plan)),
        unknown=observed.unknown,
    )


def _session_of(plan: Plan, profile: str | None) -> Session:
    """Return the session to read a stack with; on the local cloud, it leads to the instance that has the stack."""
    if is_local(os.environ) and is_installed("stack-environment"):
        own = extension("stack-environment")(project_root(), plan.stack, os.environ)
        return session_at(own["AWS_ENDPOINT_URL"], plan.spec.region)
    return aws_session(profile or _profile_of(plan.stack), plan.spec.region)


def _profile_of(stack: str) -> str | None:
    """Return the profile with which Pulumi deploys a stack, if its settings name one."""
    profile = stack_config(stack).get("aws:profile")
    return profile if isinstance(profile, str) else None


def document_of(rows: Sequence[StackRow]) -> ClusterStatusList:
    """Return the rows as a document."""
    return {
        "items": [
            {
                "stack": row.stack,
                "region": row.region,
                "cluster": row.cluster,
                "status": row.status or None,
                "runningInstances": row.running,
                "targetInstances": row.target,
                "runningTasks": row.tasks,
                "waitingTasks": row.waiting,
                "problems": list(row.problems),
                "differences": list(row.differences),
                "unknown": list(row.unknown),
            }
            for row in rows
        ]
    }


def rows_table(rows: Sequence[StackRow]) -> str:
    """Return the table of the rows."""
    table = grid(
        *("stack", "region", "status", "instances", "tasks", "waiting", "attention"),
        names=("stack", "region", "status", "attention"),
    )
    for row in rows:
        counts = ("", "", "")
        if row.status:
            counts = (f"{_number(row.running)} of {row.target}", _number(row.tasks), _number(row.waiting))
        table.add_row(row.stack, row.region, row.status or "not read", *counts, _attention(row))
    sheet = paper()
    sheet.print(table)
    return text_of(sheet)


def _number(value: int | None) -> str:
    return "?" if value is None else str(value)


def _attention(row: StackRow) -> str:
    if not row.status:
        return row.unknown[0] if row.unknown else ""
    counts = ((row.problems, "problem"), (row.differences, "difference"), (row.unknown, "unread part"))
    return ", ".join(plural(len(found), word) for found, word in counts if found)

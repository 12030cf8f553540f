"""`hpkit local status` and `list`: running parts, their stacks, and their resource use."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from pydantic import Field

from hpkit.cli.common.documents import json_document
from hpkit.cli.common.formats import Output, output_options
from hpkit.cli.common.output import called
from hpkit.text.document import Document
from hpkit.text.formatting import aligned
from hpkit_local.cli.local_common import in_repository, local_cloud_of, root_of, to_start, where

if TYPE_CHECKING:
    from hpkit_local.cloud import LocalCloud, Overview, Usage

__all__ = ["LocalCloudList", "LocalCloudStatus", "list_all", "status"]


class _Usage(Document):
    memory_bytes: int
    cpu_seconds: float


class _Part(_Usage):
    part: str
    state: str
    pid: int
    port: int
    ports: dict[str, int] = Field(description="All ports, by name: etcd's are etcd, etcd-peer and etcd-metrics.")
    restarts: int
    problem: str


class _Supervisor(_Usage):
    pid: int


class _Stack(Document):
    name: str
    resources: int
    region: str


class LocalCloudStatus(Document):
    """A local cloud, with its parts."""

    name: str
    running: bool
    stacks: list[_Stack]
    parts: list[_Part]
    supervisor: _Supervisor | None = Field(description="null: the local cloud isn't running.")
    total: _Usage


class _LocalCloud(_Usage):
    name: str
    state: str
    stacks: list[str]


class LocalCloudList(Document):
    """Local clouds of the repository."""

    items: list[_LocalCloud]


_MEBIBYTE = 1 << 20


@click.command("status")
@where
@output_options(
    "text",
    "json",
    documents=("hpkit_local.cli.local_status:LocalCloudStatus", "hpkit_local.cli.local_status:LocalCloudList"),
)
def status(name: str | None, root: Path | None) -> Output:
    """Show the stack on a local cloud, and the state and resource use of its parts.

    Without --name, lists the local clouds if several run. Exits 1 if a part isn't healthy.
    """
    from hpkit_local.cloud import Usage, candidates, control, stacks_up, usage_of

    if name is None and len(candidates(root_of(root))) > 1:
        return _listed(root)
    cloud = local_cloud_of(name, root, command="status")
    state = control.running(cloud)
    rows: list[_Part] = []
    # All parts are its children.
    total = usage_of(state.supervisor, family=False) if state else Usage()
    supervisor: _Supervisor | None = _Supervisor(pid=state.supervisor.pid, **_taken(total)) if state else None
    for part, record in (state.parts if state else {}).items():
        usage = usage_of(record.identity)
        total += usage
        row = _Part(
            part=part,
            state=record.state,
            pid=record.pid,
            port=next(iter(cloud.ports_of(part).values()), 0),
            ports=cloud.ports_of(part),
            restarts=record.restarts,
            problem=record.problem,
            **_taken(usage),
        )
        rows.append(row)
    stacks = [_Stack.model_validate(each) for each in stacks_up(cloud)]
    return Output(
        state is None or not state.ready,
        text=lambda: "\n".join(_page(cloud, stacks, rows, supervisor, total)),
        json=lambda: json_document(
            LocalCloudStatus(
                name=cloud.name,
                running=state is not None,
                stacks=stacks,
                parts=rows,
                supervisor=supervisor,
                total=_Usage(**_taken(total)),
            )
        ),
    )


def _page(
    cloud: LocalCloud, stacks: list[_Stack], rows: list[_Part], supervisor: _Supervisor | None, total: Usage
) -> list[str]:
    name = cloud.name
    on_it = ", ".join(f"{each.name} ({each.resources} resources, {each.region})" for each in stacks)
    if supervisor is None:
        start = f"{name} isn't running. To start it: {to_start(cloud)}"
        return [start, *([f"It contains {on_it}."] if stacks else [])]
    head = ("part", "state", "pid", "port", "restarts", "memory", "cpu", "")
    table = [head]
    for row in rows:
        numbers = str(row.pid), str(row.port), str(row.restarts)
        table.append((row.part, row.state, *numbers, *_numbers(row), row.problem))
    table.append(("supervisor", "", str(supervisor.pid), "", "", *_numbers(supervisor), ""))
    table.append(("total", "", "", "", "", *_numbers(_Usage(**_taken(total))), ""))
    return [f"{name}: {on_it or 'no stack'}", *aligned(table, numbers=range(2, 7))]


def _taken(usage: Usage) -> dict[str, Any]:
    return {"memory_bytes": usage.memory, "cpu_seconds": round(usage.cpu_seconds, 2)}


def _numbers(row: _Usage) -> tuple[str, str]:
    return f"{row.memory_bytes / _MEBIBYTE:.0f} MiB", f"{row.cpu_seconds:.1f} s"


@click.command("list")
@in_repository
@output_options("text", "json", documents=("hpkit_local.cli.local_status:LocalCloudList",))
def list_all(root: Path | None) -> Output:
    """List all local clouds of the repository, with their stacks."""
    return _listed(root)


def _listed(root: Path | None) -> Output:
    from hpkit_local.cloud import Usage, overviews, usage_of

    rows: list[_LocalCloud] = []
    for overview in overviews(root_of(root)):
        total = usage_of(overview.state.supervisor) if overview.state else Usage()
        stacks = [stack.name for stack in overview.stacks]
        rows.append(_LocalCloud(name=overview.cloud.name, state=_state(overview), stacks=stacks, **_taken(total)))
    return Output(text=lambda: _table(rows), json=lambda: json_document(LocalCloudList(items=rows)))


def _table(rows: list[_LocalCloud]) -> str:
    if not rows:
        return f"no local clouds. To start one: {called()} local up --stack STACK"
    table = [("local cloud", "state", "memory", "cpu", "stack")]
    table += [(row.name, row.state, *_numbers(row), ", ".join(row.stacks) or "-") for row in rows]
    return "\n".join(aligned(table, numbers=(2, 3)))


def _state(overview: Overview) -> str:
    if overview.problem:
        return "damaged"
    if overview.state is None:
        return "stopped"
    return "healthy" if overview.state.ready else "starting"

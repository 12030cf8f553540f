"""`hpkit local status` and `list`: what runs, what is on it, and what it takes of the machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hpkit.cli.formats import output_options
from hpkit.cli.shells import called
from hpkit.text.formatting import json_text
from hpkit_local.cli.local_common import in_repository, instance_of, root_of, where

if TYPE_CHECKING:
    from hpkit_local.cloud import Overview, Usage

__all__ = ["list_all", "status"]

_MEBIBYTE = 1 << 20
_FORMAT = output_options("text", "json")


@click.command("status")
@where
@_FORMAT
def status(name: str | None, root: Path | None, form: str) -> None:
    """Show which stack is on an instance, and its parts with what they take; exit 1 if not all are healthy."""
    from hpkit_local.cloud import Usage, control, stacks_up, usage_of

    instance = instance_of(name, root, command="status")
    state = control.running(instance)
    ports = instance.ports()
    rows = []
    # All parts are its children.
    total = usage_of(state.supervisor, family=False) if state else Usage()
    supervisor = {"pid": state.supervisor.pid, **_taken(total)} if state else None
    for part, record in (state.parts if state else {}).items():
        usage = usage_of(record.identity)
        total += usage
        row = {"part": part, "state": record.state, "pid": record.pid, "port": ports.get(_port_of(part), 0)}
        rows.append({**row, "restarts": record.restarts, "problem": record.problem, **_taken(usage)})
    stacks = [{"name": each.name, "resources": each.resources, "region": each.region} for each in stacks_up(instance)]
    if form == "json":
        told = {"name": instance.name, "running": state is not None, "stacks": stacks, "parts": rows}
        click.echo(json_text({**told, "supervisor": supervisor, "total": _taken(total)}))
    else:
        click.echo("\n".join(_page(instance.name, stacks, rows, supervisor, total)))
    if state is None or not state.ready:
        raise SystemExit(1)


def _page(
    name: str,
    stacks: list[dict[str, Any]],
    rows: list[dict[str, Any]],
    supervisor: dict[str, Any] | None,
    total: Usage,
) -> list[str]:
    on_it = ", ".join(f"{each['name']} ({each['resources']} resources, {each['region']})" for each in stacks)
    if supervisor is None:
        start = f"{name} is not running. Start it: {called()} local start --name {name}"
        return [start, *([f"It keeps {on_it}."] if stacks else [])]
    lines = [f"{name}: {on_it or 'no stack'}"]
    width = max(len(str(row["part"])) for row in [*rows, {"part": "supervisor"}]) + 2
    lines.append(f"{'part':<{width}}{'state':<10}{'pid':>7}{'port':>7}{'restarts':>10}{'memory':>10}{'cpu':>9}")
    for row in rows:
        start = f"{row['part']:<{width}}{row['state']:<10}{row['pid']:>7}{row['port']:>7}{row['restarts']:>10}"
        lines.append(f"{start}{_numbers(row)}  {row['problem']}".rstrip())
    lines.append(f"{'supervisor':<{width}}{'':<10}{supervisor['pid']:>7}{'':<17}{_numbers(supervisor)}")
    lines.append(f"{'total':<{width}}{'':<34}{_numbers(_taken(total))}")
    return lines


def _taken(usage: Usage) -> dict[str, Any]:
    return {"memoryBytes": usage.memory, "cpuSeconds": round(usage.cpu_seconds, 2)}


def _numbers(row: dict[str, Any]) -> str:
    return f"{row['memoryBytes'] / _MEBIBYTE:>6.0f} MiB{row['cpuSeconds']:>7.1f} s"


def _port_of(part: str) -> str:
    return "kueue-webhook" if part == "kueue" else part


@click.command("list")
@in_repository
@_FORMAT
def list_all(root: Path | None, form: str) -> None:
    """Show all instances of the repository, and what is on them."""
    from hpkit_local.cloud import Usage, overviews, usage_of

    rows = []
    for each in overviews(root_of(root)):
        total = usage_of(each.state.supervisor) if each.state else Usage()
        stacks = [stack.name for stack in each.stacks]
        rows.append({"name": each.instance.name, "state": _state(each), "stacks": stacks, **_taken(total)})
    if form == "json":
        click.echo(json_text(rows))
        return
    if not rows:
        click.echo(f"no instance is here. Start one: {called()} local start")
        return
    width = max(len(str(row["name"])) for row in [*rows, {"name": "instance"}]) + 2
    click.echo(f"{'instance':<{width}}{'state':<10}{'memory':>10}{'cpu':>9}  stack")
    for row in rows:
        click.echo(f"{row['name']:<{width}}{row['state']:<10}{_numbers(row)}  {', '.join(row['stacks']) or '-'}")


def _state(overview: Overview) -> str:
    if overview.problem:
        return "damaged"
    if overview.state is None:
        return "stopped"
    return "healthy" if overview.state.ready else "starting"

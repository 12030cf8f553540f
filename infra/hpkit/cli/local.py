"""`hpkit local`: start, stop and look at the local cloud."""

import json
import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from hpkit.errors import ToolError

__all__ = ["command"]

_FOLLOW_SECONDS = 0.3


@click.group("local")
def command() -> None:
    """Start, stop and look at the local cloud: AWS endpoint, kube-apiserver, Kueue; all on loopback, without root."""


def _of_instance(function: Callable[..., None]) -> Callable[..., None]:
    folder = click.Path(file_okay=False, exists=True, path_type=Path)
    where = click.option("--dir", "root", type=folder, help="The repository, if not this folder or above it.")
    name = click.option("--name", default="default", show_default=True, help="Which instance; several can run.")
    return name(where(function))


def _instance(name: str, root: Path | None) -> Any:
    from local.supervisor.control import find_root
    from local.supervisor.instance import Instance

    return Instance.named(name, root=root or find_root(Path.cwd()))


@command.command("start")
@_of_instance
@click.option("--latency-factor", type=float, help="0: AWS changes are immediate; 1: they take as long as on AWS.")
@click.option("--effects", metavar="MODULE:FACTORY", help="What follows changes at the AWS endpoint.")
def start(name: str, root: Path | None, latency_factor: float | None, effects: str | None) -> None:
    """Start an instance, or go on with it; returns when every part is healthy."""
    from local.supervisor import control
    from local.supervisor.parts import TOOL_NAMES
    from local.toolchain import TOOLS, get_all

    instance = _instance(name, root)
    said = _to_stderr
    get_all([tool for tool in TOOLS if tool.name in TOOL_NAMES], say=said)
    given = [("--latency-factor", latency_factor), ("--effects", effects)]
    arguments = [text for flag, value in given if value is not None for text in (flag, str(value))]
    if arguments and control.running(instance) is not None:
        raise ToolError(f"{name} runs already, with settings of its own. Stop it first: hpkit local stop --name {name}")
    if arguments:
        instance.write_aws_arguments(arguments)
    before = time.monotonic()
    control.start(instance, say=said)
    click.echo(f'{name} is up after {time.monotonic() - before:.1f} s; use it with: eval "$(hpkit local env)"')


def _to_stderr(line: str) -> None:
    click.echo(line, err=True)


@command.command("stop")
@_of_instance
def stop(name: str, root: Path | None) -> None:
    """Stop an instance; its state stays."""
    from local.supervisor import control

    click.echo(f"{name} is stopped" if control.stop(_instance(name, root)) else f"{name} was not running")


@command.command("reset")
@_of_instance
@click.option("--yes", is_flag=True, help="Do not ask.")
def reset(name: str, root: Path | None, yes: bool) -> None:
    """Stop an instance and delete all that it keeps."""
    from local.supervisor import control

    instance = _instance(name, root)
    if not yes:
        click.confirm(f"Delete {instance.folder} with everything in it?", abort=True)
    control.reset(instance)
    click.echo(f"{name} is deleted")


@command.command("env")
@_of_instance
def env(name: str, root: Path | None) -> None:
    """Print shell exports that point AWS, Kubernetes and Pulumi at an instance."""
    from local.supervisor import control

    for key, value in control.environment(_instance(name, root)).items():
        click.echo(f"export {key}={shlex.quote(value)}")


@command.command("status")
@_of_instance
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
def status(name: str, root: Path | None, form: str) -> None:
    """Show an instance's parts; exit 1 if not all are healthy."""
    from local.supervisor import control

    instance = _instance(name, root)
    state = control.running(instance)
    ports = instance.ports()
    rows = [
        {"part": part, "state": record.state, "pid": record.pid, "port": ports.get(_port_of(part), 0)}
        | {"restarts": record.restarts, "problem": record.problem}
        for part, record in (state.parts if state else {}).items()
    ]
    if form == "json":
        click.echo(json.dumps({"name": name, "running": state is not None, "parts": rows}, indent=2))
    elif not rows:
        click.echo(f"{name} is not running. Start it: hpkit local start --name {name}")
    for row in rows if form == "table" else []:
        line = f"{row['part']:<16}{row['state']:<10}pid {row['pid']:<9}port {row['port']:<7}restarts {row['restarts']}"
        click.echo(f"{line}  {row['problem']}".rstrip())
    if state is None or not state.ready:
        raise SystemExit(1)


def _port_of(part: str) -> str:
    return "kueue-webhook" if part == "kueue" else part


@command.command("logs")
@_of_instance
@click.argument("part", required=False)
@click.option("-f", "--follow", is_flag=True, help="Go on with what is added, until Ctrl-C.")
def logs(name: str, root: Path | None, part: str | None, follow: bool) -> None:
    """Print the log of PART, or of all parts."""
    folder = _instance(name, root).folder / "logs"
    known = sorted(file.stem for file in folder.glob("*.log"))
    if part is not None and part not in known:
        raise ToolError(f"no log of {part}; there are: {', '.join(known) or 'none, it was never started'}")
    files = {each: folder / f"{each}.log" for each in known if part in {None, each}}
    read = dict.fromkeys(files, 0)
    while True:
        for each, file in files.items():
            with file.open("rb") as log:
                log.seek(read[each])
                added = log.read()
            read[each] += len(added)
            for line in added.decode(errors="replace").splitlines():
                click.echo(line if part else f"{each}: {line}")
        if not follow:
            return
        time.sleep(_FOLLOW_SECONDS)

"""`hpkit local`: start, stop and look at the local cloud."""

import json
import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import click

from hpkit.cli.extras import need
from hpkit.cli.local_stack import COMMANDS
from hpkit.errors import ToolError

__all__ = ["command"]

_FOLLOW_SECONDS = 0.3


@click.group("local")
def command() -> None:
    """Start, stop and look at the local cloud: AWS endpoint, kube-apiserver, Kueue; all on loopback, without root."""


for _each in COMMANDS:
    command.add_command(_each)


def _of_instance(function: Callable[..., None]) -> Callable[..., None]:
    folder = click.Path(file_okay=False, exists=True, path_type=Path)
    where = click.option("--dir", "root", type=folder, help="The repository, if not this folder or above it.")
    name = click.option("--name", default="default", show_default=True, help="Which instance; several can run.")

    @wraps(function)
    def checked(**given: Any) -> None:
        need("local", what="the local cloud")
        function(**given)

    return name(where(checked))


def _instance(name: str, root: Path | None) -> Any:
    from local.cloud import Instance, control

    return Instance.named(name, root=control.find_root(root or Path.cwd()))


@command.command("start")
@_of_instance
@click.option(
    "--latency-factor",
    type=click.FloatRange(min=0),
    help="0: AWS changes are immediate; 1: they take as long as on AWS. Without it, 0.01.",
)
@click.option(
    "--controllers",
    "--effects",
    metavar="MODULE:FACTORY",
    help="What acts in the cluster after changes at the AWS endpoint.",
)
def start(name: str, root: Path | None, latency_factor: float | None, controllers: str | None) -> None:
    """Start an instance, or go on with it; returns when every part is healthy."""
    from local.cloud import TOOL_NAMES, TOOLS, control, get_all

    instance = _instance(name, root)
    get_all([tool for tool in TOOLS if tool.name in TOOL_NAMES], say=_to_stderr)
    given = [("--latency-factor", latency_factor), ("--controllers", controllers)]
    arguments = [text for flag, value in given if value is not None for text in (flag, str(value))]
    has = instance.aws_arguments()
    if arguments and arguments != has and control.running(instance) is not None:
        settings = f"with {' '.join(has)}" if has else "without options"
        raise ToolError(f"{name} runs already, {settings}. Stop it first: hpkit local stop{_option(name)}")
    if arguments:
        instance.write_aws_arguments(arguments)
    before = time.monotonic()
    control.start(instance, say=_to_stderr)
    use = f'eval "$(hpkit local env{_option(name)})"'
    click.echo(f"{name} is up after {time.monotonic() - before:.1f} s; use it with: {use}")


def _option(name: str) -> str:
    """Return what a command needs in order to mean this instance."""
    return "" if name == "default" else f" --name {name}"


def _to_stderr(line: str) -> None:
    click.echo(line, err=True)


@command.command("stop")
@_of_instance
def stop(name: str, root: Path | None) -> None:
    """Stop an instance; its state stays."""
    from local.cloud import control

    click.echo(f"{name} is stopped" if control.stop(_instance(name, root)) else f"{name} was not running")


@command.command("reset")
@_of_instance
@click.option("--yes", is_flag=True, help="Do not ask.")
def reset(name: str, root: Path | None, yes: bool) -> None:
    """Stop an instance and delete all that it keeps."""
    from local.cloud import control

    instance = _instance(name, root)
    if not yes:
        click.confirm(f"Delete {instance.folder} with everything in it?", abort=True)
    control.reset(instance)
    click.echo(f"{name} is deleted")


@command.command("env")
@_of_instance
def env(name: str, root: Path | None) -> None:
    """Print shell exports that point AWS, Kubernetes and Pulumi at an instance."""
    from local.cloud import control

    instance = _instance(name, root)
    variables = control.environment(instance)
    if control.running(instance) is None:
        _to_stderr(f"{name} is not running. Start it: hpkit local start{_option(name)}")
    for key, value in variables.items():
        click.echo(f"export {key}={shlex.quote(value)}")


@command.command("status")
@_of_instance
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
def status(name: str, root: Path | None, form: str) -> None:
    """Show an instance's parts; exit 1 if not all are healthy."""
    from local.cloud import control

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
        click.echo(f"{name} is not running. Start it: hpkit local start{_option(name)}")
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
    if not known:
        raise ToolError(f"{name} was never started, so it has no logs. Start it: hpkit local start{_option(name)}")
    if part is not None and part not in known:
        raise ToolError(f"no log of {part}; there are: {', '.join(known)}")
    logs = [_Log(folder / f"{each}.log", "" if part else f"{each}: ") for each in known if part in {None, each}]
    try:
        while True:
            for log in logs:
                log.print_added(whole_lines=follow)
            if not follow:
                return
            time.sleep(_FOLLOW_SECONDS)
    except KeyboardInterrupt:
        return


@dataclass
class _Log:
    """A log file that is printed as it grows."""

    file: Path
    prefix: str
    read: int = 0

    def print_added(self, *, whole_lines: bool) -> None:
        """Print what was added since the last time, up to the last line's end if only whole lines are wanted."""
        try:
            # A log that is shorter than before belongs to an instance that was reset and started again.
            self.read = self.read if self.file.stat().st_size >= self.read else 0
            with self.file.open("rb") as log:
                log.seek(self.read)
                added = log.read()
        except FileNotFoundError:
            return
        if whole_lines:
            added = added[: added.rfind(b"\n") + 1]
        self.read += len(added)
        for line in added.decode(errors="replace").splitlines():
            click.echo(f"{self.prefix}{line}")

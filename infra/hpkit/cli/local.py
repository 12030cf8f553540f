"""`hpkit local`: start, stop and look at the local cloud."""

import ipaddress
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click

from hpkit.cli.local_common import called, force_option, instance_of, root_of, to_stderr, wait_option, where
from hpkit.cli.local_env import env, line_to_use
from hpkit.cli.local_stack import COMMANDS
from hpkit.cli.local_status import list_all, status
from hpkit.errors import ToolError

__all__ = ["command"]

_FOLLOW_SECONDS = 0.3


@click.group("local")
def command() -> None:
    """Start, stop and look at the local cloud: AWS endpoint, Kubernetes that runs pods, Kueue; on loopback, no root."""


for _each in (*COMMANDS, env, status, list_all):
    command.add_command(_each)


@command.command("start")
@partial(where, name_help="Which instance; several can run.", default="default")
@wait_option
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
@click.option(
    "--from",
    "address",
    metavar="ADDRESS",
    help="Where you are, as the networks see it: whether the Kubernetes API admits you depends on it. An address in a "
    "VPC, or in a network connected with it, such as 10.20.0.5; without it, one on the internet (203.0.113.10).",
)
def start(
    name: str,
    root: Path | None,
    wait: bool,
    latency_factor: float | None,
    controllers: str | None,
    address: str | None,
) -> None:
    """Start an instance, or go on with it; returns when every part is healthy."""
    from local.cloud import TOOL_NAMES, TOOLS, Instance, control, exclusive, get_all

    instance = Instance.named(name, root=root_of(root))
    _check_address(address)
    get_all([tool for tool in TOOLS if tool.name in TOOL_NAMES], say=to_stderr)
    given = [("--latency-factor", latency_factor), ("--controllers", controllers), ("--from", address)]
    arguments = [text for flag, value in given if value is not None for text in (flag, str(value))]
    before = time.monotonic()
    with exclusive(instance, f"hpkit local start --name {name}", wait=wait, say=to_stderr):
        has = instance.aws_arguments()
        if arguments and arguments != has and control.running(instance) is not None:
            settings = f"with {' '.join(has)}" if has else "without options"
            raise ToolError(f"{name} runs already, {settings}. Stop it first: {called()} local stop --name {name}")
        if arguments:
            instance.write_aws_arguments(arguments)
        control.start(instance, say=to_stderr)
    click.echo(f"{name} is up after {time.monotonic() - before:.1f} s; use it with: {line_to_use(name)}")


def _check_address(address: str | None) -> None:
    """Raise ToolError for what is no IPv4 address: the part that would refuse it is started again and again."""
    if address is None:
        return
    try:
        ipaddress.IPv4Address(address)
    except ValueError:
        raise ToolError(f"--from {address}: not an IPv4 address, such as 10.20.0.5") from None


@command.command("stop")
@where
@wait_option
@force_option
def stop(name: str | None, root: Path | None, wait: bool, force: bool) -> None:
    """Stop an instance; its state stays."""
    from local.cloud import control

    instance = instance_of(name, root, command="stop")
    stopped = control.stop(instance, say=to_stderr, wait=wait, force=force)
    click.echo(f"{instance.name} {'is stopped' if stopped else 'was not running'}")


@command.command("reset")
@where
@wait_option
@force_option
@click.option("--yes", is_flag=True, help="Do not ask.")
def reset(name: str | None, root: Path | None, wait: bool, force: bool, yes: bool) -> None:
    """Stop an instance and delete all that it keeps."""
    from local.cloud import control

    instance = instance_of(name, root, command="reset")
    if not yes:
        click.confirm(f"Delete {instance.folder} with everything in it?", abort=True)
    control.reset(instance, say=to_stderr, wait=wait, force=force)
    click.echo(f"{instance.name} is deleted")


@command.command("logs")
@where
@click.argument("part", required=False)
@click.option("-f", "--follow", is_flag=True, help="Go on with what is added, until Ctrl-C.")
def logs(name: str | None, root: Path | None, part: str | None, follow: bool) -> None:
    """Print the log of PART, or of all parts."""
    instance = instance_of(name, root, command="logs")
    folder = instance.folder / "logs"
    known = sorted(file.stem for file in folder.glob("*.log"))
    if not known:
        raise ToolError(
            f"{instance.name} was never started, so it has no logs. "
            f"Start it: {called()} local start --name {instance.name}"
        )
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

"""`hpkit local`: starts, stops and shows the local cloud."""

import ipaddress
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click

from hpkit.cli.common.documents import acted, json_line
from hpkit.cli.common.formats import acts, format_option
from hpkit.cli.common.output import WholeLines, called, confirm, line_to_use
from hpkit.errors import ToolError
from hpkit.text.document import Document
from hpkit_local.cli.doctor import command as doctor
from hpkit_local.cli.local_common import force_option, instance_of, root_of, to_stderr, wait_option, where
from hpkit_local.cli.local_env import env
from hpkit_local.cli.local_stack import COMMANDS
from hpkit_local.cli.local_status import list_all, status

__all__ = ["LogLine", "command"]


class LogLine(Document):
    """A line of the log of an instance's part."""

    part: str
    line: str


_FOLLOW_SECONDS = 0.3
# The value of an option that restores the stack's default.
_OF_STACK = "stack"


@click.group("local", cls=WholeLines)
def command() -> None:
    """Run a local cloud: an AWS endpoint, a Kubernetes that runs pods, and Kueue; loopback only, no root."""


for _each in (*COMMANDS, env, status, list_all, doctor):
    command.add_command(_each)


@command.command("start")
@partial(where, name_help="Name of the instance; several can run.", default="default")
@wait_option
@click.option(
    "--latency-factor",
    type=click.FloatRange(min=0),
    help="Duration of AWS changes: 0 is immediate, 1 as long as on AWS. The default is 0.0002. To watch states "
    "change, use 0.05.",
)
@click.option(
    "--from",
    "address",
    metavar="ADDRESS",
    help="For testing rejections: your address as networks see it, such as 198.51.100.7 or 10.20.0.5. By default, "
    f"every stack's Kubernetes API admits you. `{_OF_STACK}` restores the default.",
)
@click.option(
    "--account",
    metavar="ACCOUNT",
    help="For testing rejections: the account of your credentials, 12 digits. By default, `up` uses the stack's "
    f"`account`. `{_OF_STACK}` restores the default.",
)
@acts
def start(
    name: str,
    root: Path | None,
    wait: bool,
    latency_factor: float | None,
    address: str | None,
    account: str | None,
) -> None:
    """Start an instance, and wait until all its parts are healthy.

    Options are kept until a later start changes them. A running instance restarts to apply new options; its contents
    are kept.
    """
    from hpkit_local.cloud import TOOL_NAMES, TOOLS, Instance, control, exclusive, get_all

    instance = Instance.named(name, root=root_of(root))
    _check(address, account)
    get_all([tool for tool in TOOLS if tool.name in TOOL_NAMES], say=to_stderr)
    options = {"--latency-factor": latency_factor, "--from": address, "--account": account}
    flags = {flag: str(value) for flag, value in options.items() if value is not None}
    before = time.monotonic()
    with exclusive(instance, f"hpkit local start --name {name}", wait=wait, say=to_stderr):
        words = [text for item in flags.items() if item[1] != _OF_STACK for text in item]
        # The endpoint's --account is the stack's; the caller's account is separate.
        arguments = ["--caller-account" if text == "--account" else text for text in words]
        if flags and arguments != instance.aws_arguments():
            if control.running(instance) is not None:
                to_stderr(f"{name} restarts with {' '.join(words) or 'no options'}")
                control.stop(instance, say=to_stderr)
            instance.write_aws_arguments(arguments)
        control.start(instance, say=to_stderr)
    acted("start", name)
    click.echo(f"{name} is up after {time.monotonic() - before:.1f} s; to use it: {line_to_use(name)}")


def _check(address: str | None, account: str | None) -> None:
    """Raise ToolError for a malformed address or account: the part that would reject it starts again and again."""
    if account not in {None, _OF_STACK} and not re.fullmatch(r"\d{12}", account or ""):
        raise ToolError(f"--account {account}: an AWS account ID has 12 digits")
    if address in {None, _OF_STACK}:
        return
    try:
        ipaddress.IPv4Address(address or "")
    except ValueError:
        raise ToolError(f"--from {address}: use an IPv4 address, such as 10.20.0.5") from None


@command.command("stop")
@where
@wait_option
@force_option
@acts
def stop(name: str | None, root: Path | None, wait: bool, force: bool) -> None:
    """Stop an instance and keep its state."""
    from hpkit_local.cloud import control

    instance = instance_of(name, root, command="stop")
    stopped = control.stop(instance, say=to_stderr, wait=wait, force=force)
    acted("stop", instance.name, done=stopped, detail=None if stopped else "was not running")
    click.echo(f"{instance.name} {'is stopped' if stopped else 'was not running'}")


@command.command("reset")
@where
@wait_option
@force_option
@click.option("--yes", is_flag=True, help="Skip the confirmation.")
@acts
def reset(name: str | None, root: Path | None, wait: bool, force: bool, yes: bool) -> None:
    """Stop an instance and delete its state."""
    from hpkit_local.cloud import control

    instance = instance_of(name, root, command="reset")
    existed = instance.folder.is_dir()
    if existed and not yes:
        confirm(f"Delete {instance.folder} and everything in it?")
    control.reset(instance, say=to_stderr, wait=wait, force=force)
    acted("delete", instance.name, done=existed, detail=None if existed else "did not exist")
    click.echo(f"{instance.name} {'is deleted' if existed else 'did not exist'}")


@command.command("logs")
@where
@click.argument("part", required=False)
@click.option("-f", "--follow", is_flag=True, help="Follow the log until Ctrl-C.")
@format_option(("text", "json"), ("hpkit_local.cli.local:LogLine",))
def logs(name: str | None, root: Path | None, part: str | None, follow: bool, form: str) -> None:
    """Print the log of PART, or of all parts."""
    instance = instance_of(name, root, command="logs")
    folder = instance.folder / "logs"
    log_names = sorted(file.stem for file in folder.glob("*.log"))
    if not log_names:
        raise ToolError(
            f"{instance.name} was never started, so it has no logs. To start it: {called()} local start --name "
            f"{instance.name}"
        )
    if part is not None and part not in log_names:
        raise ToolError(f"{part} has no log. Parts with logs: {', '.join(log_names)}")
    write = {"json": _json_line, "text": _text_line if part is None else lambda _part, line: line}[form]
    logs = [_Log(folder / f"{each}.log", write) for each in log_names if part in {None, each}]
    try:
        while True:
            for log in logs:
                log.print_added(whole_lines=follow)
            if not follow:
                return
            time.sleep(_FOLLOW_SECONDS)
    except KeyboardInterrupt:
        return


def _json_line(part: str, line: str) -> str:
    return json_line(LogLine(part=part, line=line))


def _text_line(part: str, line: str) -> str:
    return f"{part}: {line}"


@dataclass
class _Log:
    """A log file that is printed as it grows; write: returns the text for a line of a part."""

    file: Path
    write: Callable[[str, str], str]
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
            click.echo(self.write(self.file.stem, line))

"""`hpkit local`: starts, stops and shows the local cloud."""

import ipaddress
import platform
import re
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import click
from pydantic import Field

from hpkit.cli.common.documents import acted, json_document
from hpkit.cli.common.formats import Output, acts, folded, output_options
from hpkit.cli.common.output import WholeLines, confirm, line_to_use
from hpkit.cli.common.tables import grid, lines_of
from hpkit.errors import ToolError
from hpkit.text.document import Document
from hpkit_local.cli.local_common import force_option, local_cloud_of, root_of, to_stderr, wait_option, where
from hpkit_local.cli.local_env import env
from hpkit_local.cli.local_stack import COMMANDS
from hpkit_local.cli.local_status import list_all, status

__all__: list[str] = []


class _Tool(Document):
    tool: str
    version: str
    source: str = Field(serialization_alias="from")
    path: str
    purpose: str
    get: str
    note: str


class ToolList(Document):
    """Tools that the local cloud and `pulumi up` need."""

    items: list[_Tool]


_LEAST_PYTHON = (3, 11)
_REMEDY = "hpkit local doctor --fix"


@click.command("doctor")
@click.argument("names", metavar="[TOOL]...", nargs=-1)
@click.option("--fix", is_flag=True, help="Install missing tools. Builds take minutes, once per machine.")
@output_options("text", "json", documents=("hpkit_local.cli.local:ToolList",))
def doctor(names: tuple[str, ...], fix: bool) -> Output:
    """Check which tools for the local cloud and `pulumi up` are installed.

    Exits 1 if a required tool is missing. --fix installs missing tools, including those that only some charts and tests
    need.
    """
    from hpkit_local.cloud import GO, TOOLS, get_all, locate

    tool_names = [tool.name for tool in TOOLS]
    for name in names:
        if name not in tool_names:
            raise click.UsageError(f"no tool {name}. Known tools: {', '.join(tool_names)}")
    chosen_tools = [tool for tool in TOOLS if not names or tool.name in names]
    rows = [_row(locate(tool)) for tool in TOOLS]
    if fix and {row.tool for row in rows if row.source == "missing"} & {tool.name for tool in chosen_tools}:
        get_all(chosen_tools, say=_reporter())
        rows = [_row(locate(tool)) for tool in TOOLS]
    needed = {tool.name for tool in TOOLS if tool.name in names or not tool.on_demand}
    missing = [row.tool for row in rows if row.source == "missing" and row.tool in needed]
    go = _row(locate(GO))
    if go.source == "missing" and not missing:
        go.get = "not needed, because nothing must be built"
    rows = [_python(), go, *rows]
    # While something has to be built, Go is not optional.
    needed |= {"go"} if missing else set()
    optional = [row.tool for row in rows if row.source == "missing" and row.tool not in needed]
    return Output(
        bool(missing) or not _python_fits(),
        text=lambda: _table(rows, missing, optional),
        json=lambda: json_document(ToolList(items=rows)),
    )


def _reporter() -> Any:
    """Return a writer of progress lines to stderr; builds run side by side, so a line is written whole."""
    lock = threading.Lock()

    def say(line: str) -> None:
        with lock:
            click.echo(line, err=True)

    return say


def _row(located: Any) -> _Tool:
    return _Tool(
        tool=located.tool.name,
        version=located.version or located.tool.version,
        source=located.source,
        path=str(located.path or ""),
        purpose=located.tool.purpose,
        get=_REMEDY if located.source == "missing" else "",
        note=located.passed_over,
    )


def _python_fits() -> bool:
    return sys.version_info[:2] >= _LEAST_PYTHON


def _python() -> _Tool:
    least = ".".join(str(number) for number in _LEAST_PYTHON)
    return _Tool(
        tool="python",
        version=platform.python_version(),
        source="PATH",
        path=sys.executable,
        purpose="runs hpkit",
        get="" if _python_fits() else f"install Python {least} or newer",
        note="",
    )


def _table(rows: list[_Tool], missing: list[str], optional: list[str]) -> str:
    head = ("tool", "version", "from", "purpose")
    table = grid(*head, names=head)
    for row in rows:
        style = "red" if row.tool in missing else ""
        source = "optional" if row.tool in optional else row.source
        table.add_row(row.tool, row.version, source, row.purpose, style=style)
    lines = lines_of(table)
    lines += [folded(f"{row.tool}: skipped: {row.note}", "    ", "") for row in rows if row.note]
    lines += ["", *_where_kept(rows), *_charts(), _summary(rows, missing, optional)]
    return "\n".join(lines)


def _where_kept(rows: list[_Tool]) -> list[str]:
    from hpkit.cache import cache_root

    return [f"cache: {cache_root()}"] if any(row.source == "cache" for row in rows) else []


def _charts() -> list[str]:
    """Return that `up` would download the dependencies chart, or install a substitute."""
    from hpkit.catalog import dependencies_chart
    from hpkit.errors import ToolError
    from hpkit.program.charts.package import kept_package
    from hpkit.project import project_root
    from hpkit_local.plugins.kubernetes.release import FETCH_ELSEWHERE

    pin = dependencies_chart()
    try:
        problem = (
            ""
            if kept_package(pin, project_root())
            else "`up` downloads it, or installs a substitute for its training operator"
        )
    except ToolError as error:
        problem = str(error)
    advice = f"To install it without a network: {FETCH_ELSEWHERE}"
    return [folded(f"chart {pin.name}: {problem}. {advice}", "  ", "")] if problem else []


def _summary(rows: list[_Tool], missing: list[str], optional: list[str]) -> str:
    old = next((row.get for row in rows if row.tool == "python" and row.get), "")
    if missing:
        what = f"{len(missing)} of {len(rows)} missing: {', '.join(missing)}. To install them: {_REMEDY}"
        return folded(f"{what}; {old}" if old else what, "")
    if old or not optional:
        return old or "all tools are installed"
    return folded(f"all required tools are installed; optional and not installed: {', '.join(optional)}", "")


# The value of an option that restores the stack's default.
_OF_STACK = "stack"


@click.group("local", cls=WholeLines)
def command() -> None:
    """Run a local cloud: an AWS endpoint, a Kubernetes that runs pods, and Kueue; loopback only, no root."""


for _each in (*COMMANDS, env, status, list_all, doctor):
    command.add_command(_each)


@command.command("start")
@partial(where, name_help="Name of the local cloud; several can run.", default="default")
@wait_option
@click.option(
    "--latency-factor",
    type=click.FloatRange(min=0),
    metavar="FACTOR",
    help="Duration of AWS changes: 0 is immediate, 1 as long as on AWS. The default is 0.0002. To watch states "
    "change, use 0.05.",
)
@click.option(
    "--from",
    "address",
    metavar="ADDRESS",
    help="Source IP of your calls, to test rejected connections, such as 198.51.100.7 or 10.20.0.5. By default, "
    f"every stack's Kubernetes API accepts you. `{_OF_STACK}` restores the default.",
)
@click.option(
    "--account",
    metavar="ACCOUNT",
    help="Account of your credentials, to test rejected calls, 12 digits. By default, `up` uses the stack's "
    f"`account`. `{_OF_STACK}` restores the default.",
)
@acts
def start(
    name: str, root: Path | None, wait: bool, latency_factor: float | None, address: str | None, account: str | None
) -> None:
    """Start a local cloud, and wait until all its parts are healthy.

    Options are kept until a later start changes them. A running local cloud restarts to apply new options; its contents
    are kept.
    """
    from hpkit_local.cloud import TOOL_NAMES, TOOLS, LocalCloud, control, exclusive, get_all

    cloud = LocalCloud.named(name, root=root_of(root))
    _check(address, account)
    get_all([tool for tool in TOOLS if tool.name in TOOL_NAMES], say=to_stderr)
    options = {"--latency-factor": latency_factor, "--from": address, "--account": account}
    flags = {flag: str(value) for flag, value in options.items() if value is not None}
    before = time.monotonic()
    with exclusive(cloud, f"hpkit local start --name {name}", wait=wait, say=to_stderr):
        words = [text for item in flags.items() if item[1] != _OF_STACK for text in item]
        # The endpoint's --account is the stack's; the caller's account is separate.
        arguments = ["--caller-account" if text == "--account" else text for text in words]
        if flags and arguments != cloud.aws_arguments():
            if control.running(cloud) is not None:
                to_stderr(f"{name} restarts with {' '.join(words) or 'no options'}")
                control.stop(cloud, say=to_stderr)
            cloud.write_aws_arguments(arguments)
        control.start(cloud, say=to_stderr)
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
    """Stop a local cloud and keep its state."""
    from hpkit_local.cloud import control

    cloud = local_cloud_of(name, root, command="stop")
    stopped = control.stop(cloud, say=to_stderr, wait=wait, force=force)
    acted("stop", cloud.name, done=stopped, detail=None if stopped else "was not running")
    click.echo(f"{cloud.name} {'is stopped' if stopped else 'was not running'}")


@command.command("reset")
@where
@wait_option
@force_option
@click.option("--yes", is_flag=True, help="Skip the confirmation.")
@acts
def reset(name: str | None, root: Path | None, wait: bool, force: bool, yes: bool) -> None:
    """Stop a local cloud and delete its state."""
    from hpkit_local.cloud import control

    cloud = local_cloud_of(name, root, command="reset")
    existed = cloud.folder.is_dir()
    if existed and not yes:
        confirm(f"Delete {cloud.folder} and everything in it?")
    control.reset(cloud, say=to_stderr, wait=wait, force=force)
    acted("delete", cloud.name, done=existed, detail=None if existed else "did not exist")
    click.echo(f"{cloud.name} {'is deleted' if existed else 'did not exist'}")

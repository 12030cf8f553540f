"""`hpkit local doctor`: which outside tools are here, from where, and how to get the rest."""

import platform
import sys
import threading
from typing import Any

import click
from pydantic import Field

from hpkit.cli.common.documents import json_document
from hpkit.cli.common.formats import Output, folded, output_options
from hpkit.cli.common.tables import grid, lines_of
from hpkit.text.document import Document

__all__ = ["ToolList", "command"]


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
@output_options("text", "json", documents=("hpkit_local.cli.doctor:ToolList",))
def command(names: tuple[str, ...], fix: bool) -> Output:
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
    """Return that `up` would download the dependencies chart, or run without it."""
    from hpkit.catalog import dependencies_chart
    from hpkit.errors import ToolError
    from hpkit.program.charts.package import MIRROR, kept_package
    from hpkit.project import project_root

    pin = dependencies_chart()
    try:
        problem = "" if kept_package(pin, project_root()) else "`up` downloads it, or runs without it"
    except ToolError as error:
        problem = str(error)
    advice = f"Without a network: `hpkit catalog fetch-chart --to FOLDER` elsewhere, then set {MIRROR} to FOLDER"
    return [folded(f"chart {pin.name}: {problem}. {advice}", "  ", "")] if problem else []


def _summary(rows: list[_Tool], missing: list[str], optional: list[str]) -> str:
    old = next((row.get for row in rows if row.tool == "python" and row.get), "")
    if missing:
        what = f"{len(missing)} of {len(rows)} missing: {', '.join(missing)}. To install them: {_REMEDY}"
        return folded(f"{what}; {old}" if old else what, "")
    if old or not optional:
        return old or "all tools are installed"
    return folded(f"all required tools are installed; optional and not installed: {', '.join(optional)}", "")

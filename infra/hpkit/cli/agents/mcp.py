"""`hpkit mcp`: read-only commands for agents, over the Model Context Protocol.

Each tool runs its command in a separate process: a changed file is read again, and no output of the command can reach
the protocol. Tools don't write or run Pulumi, and return only the command's JSON document and its notes.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from pydantic.alias_generators import to_camel

from hpkit.cli.common.documents import Error, documents_of, schema_of
from hpkit.config import MAX_BYTES, read_file, read_text
from hpkit.errors import InputError, ToolError
from hpkit.project import project_root

if TYPE_CHECKING:
    from mcp import types
    from mcp.shared._stream_protocols import ReadStream, WriteStream
    from mcp.shared.message import SessionMessage
    from mcp.types import JSONRPCError

__all__ = ["command"]

_SECONDS: Final = 300
_AT_ONCE: Final = 2
_MOST_BYTES: Final = 8 << 20
_MOST_CHARACTERS: Final = 1_000
_INSTRUCTIONS: Final = (
    "Tools for an hpkit project: organization files in stacks/ describe Amazon SageMaker HyperPod clusters and the "
    "quota of each team. All tools only read. A stack is <organization>-<environment>, such as acme-dev. After you "
    "edit an organization file, call validate, then review."
)


@dataclass(frozen=True, slots=True)
class _Tool:
    """A command as a tool. inputs: the command's parameters that it takes, and what to say of those without help."""

    words: str
    inputs: Mapping[str, str]
    network: bool = False


_FILES: Final = "Organization files inside the project, such as stacks/acme.yaml. Default: all."
_SCENARIO: Final = "Scenario file inside the project, such as stacks/scenarios/acme.yaml."
_TOOLS: Final[Mapping[str, _Tool]] = {
    "validate": _Tool("validate", {"files": _FILES, "stacks": "", "policies": ""}),
    "quota": _Tool("quota", {"files": _FILES, "stacks": "", "team": ""}),
    "job_why": _Tool("job why", {"task": "Name of the job.", "stack": "", "team": ""}, network=True),
    "simulate": _Tool("whatif simulate", {"scenario": _SCENARIO, "stack": "", "seed": "", "skip_impossible": ""}),
    "review": _Tool("review", {"ref": "", "stacks": "", "scenario": _SCENARIO}),
}
# Parameters that name files.
_PATHS: Final = ("files", "scenario")


@click.command("mcp")
@click.option(
    "--project",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Folder of the project. Default: the current folder's project.",
)
def command(project: Path | None) -> None:
    """Serve read-only commands to agents, over standard input and output (Model Context Protocol).

    Tools: validate, quota, job_why, simulate, and review. They read files of the project
    only, and write nothing. Only job_why uses the network: it reads the cluster, as `hpkit job why` does.
    """
    root = (project or project_root()).resolve()
    if not (root / "Pulumi.yaml").is_file():
        raise InputError(f"{root} has no Pulumi.yaml, so it isn't a project; name one with --project")
    try:
        import anyio
        import mcp  # noqa: F401 - whether it is there
    except ModuleNotFoundError as error:
        raise ToolError(f"{error.name} isn't installed; run `pip install 'hpkit[mcp]'`") from None
    anyio.run(_serve, root)


async def _serve(root: Path) -> None:
    import anyio
    from mcp import types
    from mcp.server.lowlevel import Server
    from mcp.server.stdio import stdio_server

    tools = {name: _definition(name, tool) for name, tool in _TOOLS.items() if _is_available(tool)}
    at_once = anyio.Semaphore(_AT_ONCE)

    async def list_tools(_context: object, _request: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=list(tools.values()))

    async def call_tool(_context: object, request: types.CallToolRequestParams) -> types.CallToolResult:
        if request.name not in tools:
            return _failed(f"no tool {request.name}; tools: {', '.join(tools)}")
        try:
            words = _words(root, request.name, request.arguments or {}, tools[request.name].input_schema)
            async with at_once:
                return await _run(root, request.name, words)
        except InputError as error:
            return _failed(str(error))

    server = Server(
        "hpkit",
        version=importlib.metadata.version("hpkit"),
        instructions=_INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    async with stdio_server() as (reading, writing), _patient(reading, writing) as (requests, answers):
        await server.run(requests, answers, server.create_initialization_options())


@asynccontextmanager
async def _patient(
    reading: ReadStream[SessionMessage | Exception], writing: WriteStream[SessionMessage]
) -> AsyncIterator[tuple[ReadStream[SessionMessage | Exception], WriteStream[SessionMessage]]]:
    """Yield streams for the server: it answers unreadable lines, and sees the end of input after its last answer."""
    import anyio
    from mcp.shared.message import SessionMessage
    from mcp.types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

    to_server, requests = anyio.create_memory_object_stream[SessionMessage | Exception]()
    answers, from_server = anyio.create_memory_object_stream[SessionMessage]()
    unanswered: set[object] = set()
    answered = anyio.Event()

    async def read() -> None:
        async with to_server:
            async for line in reading:
                if isinstance(line, Exception):
                    await writing.send(SessionMessage(_unreadable(line)))
                    continue
                message = line.message
                if isinstance(message, JSONRPCRequest):
                    unanswered.add(message.id)
                elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
                    unanswered.discard((message.params or {}).get("requestId"))
                await to_server.send(line)
            while unanswered:
                await answered.wait()

    async def write() -> None:
        nonlocal answered
        async with writing, from_server:
            async for line in from_server:
                await writing.send(line)
                if isinstance(line.message, JSONRPCResponse | JSONRPCError):
                    unanswered.discard(line.message.id)
                    answered.set()
                    answered = anyio.Event()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        tasks.start_soon(write)
        yield requests, answers


def _unreadable(error: Exception) -> JSONRPCError:
    """Return the answer to a line that is no request; JSON-RPC has it without an id."""
    from mcp import types
    from pydantic import ValidationError

    is_json = not isinstance(error, ValidationError) or error.errors()[0]["type"] != "json_invalid"
    code, message = (
        (types.INVALID_REQUEST, "the line isn't a JSON-RPC 2.0 message")
        if is_json
        else (types.PARSE_ERROR, "the line isn't valid JSON")
    )
    return types.JSONRPCError(jsonrpc="2.0", id=None, error=types.ErrorData(code=code, message=message))


def _is_available(tool: _Tool) -> bool:
    """Return whether the package with its command is installed."""
    try:
        _command_of(tool)
    except ToolError:
        return False
    return True


def _command_of(tool: _Tool) -> click.Command:
    from hpkit.cli import SECTIONS

    first, *others = tool.words.split()
    loaded = next(section[first] for section in SECTIONS.values() if first in section).load(first)
    for word in others:
        assert isinstance(loaded, click.Group)  # noqa: S101 - the table above names a command in a group
        inner = loaded.get_command(click.Context(loaded), word)
        assert inner is not None  # noqa: S101
        loaded = inner
    return loaded


def _parameters(tool: _Tool) -> Iterator[tuple[str, click.Parameter]]:
    """Yield the parameters of the command that the tool takes, with their names in its input."""
    for parameter in _command_of(tool).params:
        if parameter.name in tool.inputs:
            is_ref = parameter.name == "ref"
            yield ("base" if is_ref else to_camel(parameter.name)), parameter


def _definition(name: str, tool: _Tool) -> types.Tool:
    """Return a tool as clients see it: the command's help, its parameters, and the schema of its document."""
    from mcp import types

    parameters = list(_parameters(tool))
    help_text = _command_of(tool).help or ""
    return types.Tool(
        name=name,
        title=f"hpkit {tool.words}",
        description=_in_parameters(" ".join(help_text.split()), tool),
        input_schema={
            "type": "object",
            "properties": {key: _property(each, tool) for key, each in parameters},
            "required": [key for key, each in parameters if each.required],
            "additionalProperties": False,
        },
        output_schema=schema_of(documents_of(_command_of(tool))[0]),
        annotations=types.ToolAnnotations(
            read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=tool.network
        ),
    )


def _property(parameter: click.Parameter, tool: _Tool) -> dict[str, Any]:
    text = tool.inputs[str(parameter.name)] or getattr(parameter, "help", None) or ""
    described = {"description": text}
    if getattr(parameter, "is_flag", False):
        return {"type": "boolean", **described}
    if isinstance(parameter.type, click.types.IntParamType):
        return {"type": "integer", **described}
    text_schema = {"type": "string", "minLength": 1, "maxLength": _MOST_CHARACTERS}
    if parameter.multiple or parameter.nargs == -1:
        return {"type": "array", "items": text_schema, "maxItems": 100, **described}
    return {**text_schema, **described}


def _words(root: Path, name: str, values_given: Mapping[str, Any], schema: Mapping[str, Any]) -> list[str]:
    """Return the command line of a call; raises InputError for input that the schema or the project doesn't allow."""
    import jsonschema

    for error in jsonschema.Draft202012Validator(schema).iter_errors(dict(values_given)):
        raise InputError(f"{error.json_path}: {error.message}")
    tool = _TOOLS[name]
    options, arguments = [], []
    _require_inside(root, *sorted((root / "stacks").rglob("*")))
    for key, parameter in _parameters(tool):
        value = values_given.get(key)
        values = value if isinstance(value, list) else [] if value is None or value is False else [value]
        if parameter.name in _PATHS:
            _require_files(root, values)
        if isinstance(parameter, click.Argument):
            arguments += values
        else:
            options += [parameter.opts[-1] if value is True else f"{parameter.opts[-1]}={each}" for each in values]
    return [*tool.words.split(), "--format=json", *options, "--", *arguments]


def _require_files(root: Path, names: list[str]) -> None:
    """Raise InputError if a file is outside the project, or refers to files outside, as a scenario can."""
    for name in names:
        _require_inside(root, root / name)
        if (root / name).is_file() and (root / name).stat().st_size > MAX_BYTES:
            raise InputError(f"{name} is larger than {MAX_BYTES >> 20} MiB")
        if name.endswith((".yaml", ".yml")) and (root / name).is_file():
            data = read_text(read_file(root / name)).data
            others = data.get("files") if isinstance(data, dict) else None
            if isinstance(others, (list, tuple)):
                _require_inside(root, *((root / name).parent / str(other) for other in others))


def _require_inside(root: Path, *files: Path) -> None:
    for file in files:
        resolved = file.resolve()
        if not resolved.is_relative_to(root):
            raise InputError(f"{file} is outside the project {root}")
        if resolved.exists() and not (resolved.is_file() or resolved.is_dir()):
            raise InputError(f"{file} isn't a regular file")


async def _run(root: Path, name: str, words: list[str]) -> types.CallToolResult:
    """Return the document that a command prints, as text and as data; its notes are a second text."""
    import subprocess

    import anyio
    from mcp import types

    # -P: no module of the project's folder is imported. -B: no compiled module is written.
    process = [sys.executable, "-P", "-B", "-c", "from hpkit.cli import main; main()", *words]
    try:
        with anyio.fail_after(_SECONDS):
            done = await anyio.run_process(process, cwd=root, stdin=subprocess.DEVNULL, check=False)
    except TimeoutError:
        return _failed(f"it took longer than {_SECONDS} seconds")
    if len(done.stdout) > _MOST_BYTES:
        return _failed(f"the document is larger than {_MOST_BYTES >> 20} MiB; ask for one stack")
    notes = done.stderr.decode(errors="replace").splitlines()
    if not done.stdout:
        return _failed(_in_parameters(_message(notes, done.returncode), _TOOLS[name]))
    text = done.stdout.decode()
    content: list[types.ContentBlock] = [types.TextContent(text=text)]
    if notes:
        content.append(types.TextContent(text="\n".join(notes)))
    return types.CallToolResult(content=content, structured_content=json.loads(text))


def _in_parameters(text: str, tool: _Tool) -> str:
    """Return a text of the command with the tool's parameters in place of options, except within commands to run."""
    names = {option: f"`{key}`" for key, parameter in _parameters(tool) for option in parameter.opts}
    text = re.sub(r"`[^`]* [^`]*`|'?(--[a-z][a-z-]*)'?", lambda found: names.get(found[1], found[0]), text)
    # An option that the tool doesn't take is no way out.
    return re.sub(r" \(or --[a-z-]+\)", "", text)


def _message(notes: list[str], code: int) -> str:
    """Return the message of the error document; a traceback stays on this side."""
    try:
        error = json.loads(notes[-1])
        if error["kind"] == Error.__name__:
            return str(error["message"])
    except (IndexError, ValueError, TypeError, KeyError):
        sys.stderr.write("\n".join([*notes, ""]))
    return f"hpkit failed with exit code {code}; its output is on the server's standard error"


def _failed(message: str) -> types.CallToolResult:
    from mcp import types

    return types.CallToolResult(content=[types.TextContent(text=message)], is_error=True)

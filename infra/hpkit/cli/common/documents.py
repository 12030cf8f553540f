"""The JSON documents that commands print: their envelope, their kinds, and a schema of each.

A kind is a TypedDict of the module that fills it, so that the type checker compares the two; its schema is derived.
Each command names its kinds in `output_options`.
"""

import dataclasses
import datetime
import pkgutil
import types
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NotRequired,
    ParamSpec,
    TypedDict,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import click

from hpkit.checks import Finding
from hpkit.errors import HpkitError, ToolError
from hpkit.text.formatting import camel_case, json_text

__all__ = [
    "API_VERSION",
    "Error",
    "FormatOption",
    "Outcome",
    "acted",
    "documents_of",
    "error_document",
    "json_document",
    "json_line",
    "outcome_document",
    "schema_of",
]

API_VERSION: Final = "hpkit/v1"
Fields = ParamSpec("Fields")
_MISUSE: Final = 2
_PLAIN: Final = {
    str: "string",
    int: "integer",
    float: "number",
    Fraction: "number",
    Decimal: "number",
    datetime.datetime: "string",
    bool: "boolean",
    types.NoneType: "null",
}


class Error(TypedDict):
    """Why a command failed."""

    reason: Annotated[
        Literal["Usage", "Input", "Tool"],
        "Usage: wrong arguments, or a stack or file that doesn't exist. Input: a file or value that is invalid. "
        "Tool: a tool or service is missing or failed.",
    ]
    exitCode: int
    message: str
    findings: Annotated[list[Finding], "What is wrong with organization files."]


class _Action(TypedDict):
    action: Annotated[str, "A verb, such as `write`, `create`, `delete` or `start`."]
    target: Annotated[str, "File, resource, node, stack, or instance."]
    done: Annotated[bool, "false: a dry run, a preview, or an action that was refused or not necessary."]
    detail: str | None


class Outcome(TypedDict):
    """What a command did."""

    items: list[_Action]


class FormatOption(click.Option):
    """The option `--format` of a command, with the kinds of JSON documents that the command prints."""

    def __init__(self, *args: Any, documents: tuple[str, ...] = (), **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.documents = documents


def documents_of(command: click.Command) -> tuple[str, ...]:
    """Return the kinds that a command prints as JSON, each as `module:TypedDict`."""
    return tuple(
        document for option in command.params if isinstance(option, FormatOption) for document in option.documents
    )


def json_document(
    document_type: Callable[Fields, Mapping[str, object]], *arguments: Fields.args, **fields: Fields.kwargs
) -> str:
    """Return a document as text: its kind, a TypedDict, and the fields of it."""
    return json_text(_versioned(document_type.__name__, document_type(*arguments, **fields)))


def json_line(
    document_type: Callable[Fields, Mapping[str, object]], *arguments: Fields.args, **fields: Fields.kwargs
) -> str:
    """Return a document as text in one line."""
    return json_text(_versioned(document_type.__name__, document_type(*arguments, **fields)), indent=None)


def _versioned(kind: str, body: Mapping[str, object]) -> dict[str, object]:
    return {"apiVersion": API_VERSION, "kind": kind, **body}


def acted(action: str, target: object, *, done: bool = True, detail: str | None = None) -> None:
    """Add an action to the outcome of the running command."""
    actions: list[_Action] = click.get_current_context().meta.setdefault(__name__, [])
    actions.append({"action": action, "target": str(target), "done": done, "detail": detail})


def outcome_document() -> str:
    """Return the outcome of the running command as a document."""
    return json_document(Outcome, items=click.get_current_context().meta.get(__name__, []))


def error_document(error: HpkitError | click.ClickException, exit_code: int) -> str:
    """Return an error as a document, in one line: other lines may come before it."""
    return json_line(
        Error,
        reason="Usage" if exit_code == _MISUSE else "Tool" if isinstance(error, ToolError) else "Input",
        exitCode=exit_code,
        message=error.format_message() if isinstance(error, click.ClickException) else str(error),
        findings=[each for each in getattr(error, "findings", ()) if isinstance(each, Finding)],
    )


def schema_of(document: str) -> dict[str, Any]:
    """Return the JSON Schema of a kind, given as `module:TypedDict`; later versions of hpkit/v1 may add fields."""
    kind = document.partition(":")[2]
    definitions: dict[str, Any] = {}
    _schema(pkgutil.resolve_name(document), definitions)
    body = definitions.pop(kind)
    envelope = {"apiVersion": {"const": API_VERSION}, "kind": {"const": kind}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": kind,
        **body,
        "properties": envelope | body["properties"],
        "required": [*envelope, *body["required"]],
        **({"$defs": definitions} if definitions else {}),
    }


def _schema(type_: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a type; objects are added to the definitions, so that they can contain themselves."""
    origin, arguments = get_origin(type_), get_args(type_)
    if origin is Annotated:
        return {**_schema(arguments[0], definitions), "description": arguments[1]}
    if origin is NotRequired:
        return _schema(arguments[0], definitions)
    if origin in (Union, types.UnionType):
        return _union([_schema(each, definitions) for each in arguments])
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (list, tuple):
        return {"type": "array", "items": _schema(arguments[0], definitions)}
    if origin in (dict, Mapping):
        return {"type": "object", "additionalProperties": _schema(arguments[1], definitions)}
    if origin is not None:
        return _object(origin, definitions, dict(zip(origin.__parameters__, arguments, strict=True)))
    if not is_typeddict(type_) and not dataclasses.is_dataclass(type_):
        return {"type": _PLAIN[type_]}
    name = type_.__name__.lstrip("_")
    if name not in definitions:
        definitions[name] = {}  # an object may hold others of its type
        definitions[name] |= _object(type_, definitions, {})
    return {"$ref": f"#/$defs/{name}"}


def _union(parts: list[dict[str, Any]]) -> dict[str, Any]:
    names = [part["type"] for part in parts if part.keys() == {"type"}]
    if len(names) < len(parts):
        return {"anyOf": parts}
    names = names if "number" not in names else [name for name in names if name != "integer"]
    return {"type": names if len(names) > 1 else names[0]}


def _object(class_: Any, definitions: dict[str, Any], bound: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the schema of a TypedDict or a dataclass; bound: the types that a generic one is given."""
    fields = get_type_hints(class_, include_extras=True)
    if dataclasses.is_dataclass(class_):
        fields = {camel_case(name): type_ for name, type_ in fields.items()}
    for name, type_ in fields.items():
        parameters = getattr(type_, "__parameters__", ())
        fields[name] = type_[tuple(bound[each] for each in parameters)] if parameters else bound.get(type_, type_)
    return {
        "type": "object",
        **({"description": class_.__doc__.partition("\n")[0]} if class_.__doc__ else {}),
        "properties": {name: _schema(type_, definitions) for name, type_ in fields.items()},
        "required": [name for name, type_ in fields.items() if get_origin(type_) is not NotRequired],
    }

"""The JSON documents that commands print: their envelope, their kinds, and a schema of each.

A kind is a class of the module that fills it, and pydantic derives its JSON and its schema.
Each command names its kinds in `output_options`.
"""

import pkgutil
from typing import Any, Final, Literal

import click
from pydantic import Field
from pydantic.json_schema import GenerateJsonSchema

from hpkit.checks import Finding
from hpkit.errors import HpkitError, ToolError
from hpkit.text.document import Document
from hpkit.text.formatting import json_text

__all__ = [
    "API_VERSION",
    "Error",
    "FormatOption",
    "Outcome",
    "acted",
    "documents_of",
    "error_document",
    "json_document",
    "outcome_document",
    "schema_of",
]

API_VERSION: Final = "hpkit/v1"
_MISUSE: Final = 2


class Error(Document):
    """Why a command failed."""

    reason: Literal["Usage", "Input", "Tool"] = Field(
        description="Usage: wrong arguments, or a stack or file that doesn't exist. Input: a file or value that is "
        "invalid. Tool: a tool or service is missing or failed."
    )
    exit_code: int
    message: str
    findings: list[Finding] = Field(description="What is wrong with organization files.")


class _Action(Document):
    action: str = Field(description="A verb, such as `write`, `create`, `delete` or `start`.")
    target: str = Field(description="File, resource, node, stack, or local cloud.")
    done: bool = Field(description="false: a dry run, a preview, or an action that was rejected or not necessary.")
    detail: str | None


class Outcome(Document):
    """What a command did."""

    items: list[_Action]


class FormatOption(click.Option):
    """The option `--format` of a command, with the kinds of JSON documents that the command prints."""

    def __init__(self, *args: Any, documents: tuple[str, ...] = (), **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.documents = documents


def documents_of(command: click.Command) -> tuple[str, ...]:
    """Return the kinds that a command prints as JSON, each as `module:class`."""
    return tuple(
        document for option in command.params if isinstance(option, FormatOption) for document in option.documents
    )


def json_document(document: Document) -> str:
    """Return a document as text, with its kind."""
    return json_text(_versioned(document))


def _versioned(document: Document) -> dict[str, object]:
    return {"apiVersion": API_VERSION, "kind": type(document).__name__, **document.model_dump(mode="json")}


def acted(action: str, target: object, *, done: bool = True, detail: str | None = None) -> None:
    """Add an action to the outcome of the running command."""
    actions: list[_Action] = click.get_current_context().meta.setdefault(__name__, [])
    actions.append(_Action(action=action, target=str(target), done=done, detail=detail))


def outcome_document() -> str:
    """Return the outcome of the running command as a document."""
    return json_document(Outcome(items=click.get_current_context().meta.get(__name__, [])))


def error_document(error: HpkitError | click.ClickException, exit_code: int) -> str:
    """Return an error as a document, in one line: other lines may come before it."""
    document = Error(
        reason="Usage" if exit_code == _MISUSE else "Tool" if isinstance(error, ToolError) else "Input",
        exit_code=exit_code,
        message=error.format_message() if isinstance(error, click.ClickException) else str(error),
        findings=[each for each in getattr(error, "findings", ()) if isinstance(each, Finding)],
    )
    return json_text(_versioned(document), indent=None)


def schema_of(document: str) -> dict[str, Any]:
    """Return the JSON Schema of a kind, given as `module:class`; later versions of hpkit/v1 may add fields."""
    body = pkgutil.resolve_name(document).model_json_schema(mode="serialization", schema_generator=_Schema)
    envelope = {"apiVersion": {"const": API_VERSION}, "kind": {"const": body["title"]}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **body,
        "properties": envelope | body["properties"],
        "required": [*envelope, *body["required"]],
    }


class _Schema(GenerateJsonSchema):
    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - the signature of pydantic
        """Return that names of fields are not repeated as titles."""
        return False

    def field_is_required(self, field: Any, total: bool) -> bool:  # noqa: ARG002 - the signature of pydantic
        """Return that every field is printed, even if it has its default."""
        return True

"""`hpkit catalog schema`: the JSON Schemas of files and of what commands print."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass

import click

from hpkit.cli import commands
from hpkit.cli.common.documents import Error, documents_of, schema_of
from hpkit.cli.common.formats import output_options
from hpkit.config.schema.reference import schema_text
from hpkit.errors import SelectionError
from hpkit.extensions import extension
from hpkit.text.formatting import json_text
from hpkit.text.spelling import hint

__all__ = ["Kind", "command", "kinds"]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of document: the commands that print it, and its class, as `module:class`."""

    commands: tuple[str, ...]
    document: str


@functools.cache
def kinds() -> Mapping[str, Kind]:
    """Return every kind that a command of an installed package prints, by name, and `Error`."""
    printed: dict[str, list[str]] = {}
    for name, command in commands():
        for document in documents_of(command):
            printed.setdefault(document, []).append(name)
    printed[f"{Error.__module__}:{Error.__name__}"] = []
    return {document.partition(":")[2]: Kind(tuple(names), document) for document, names in printed.items()}


@click.command("schema")
@output_options()
@click.option("--scenario", is_flag=True, help="Write the schema of scenario files instead.")
@click.option(
    "--kind",
    metavar="KIND",
    help="Write the schema of a JSON document that a command prints instead, such as QuotaList.",
    shell_complete=lambda _context, _parameter, begun: [name for name in kinds() if name.startswith(begun)],
)
def command(scenario: bool, kind: str | None) -> None:
    """Write the JSON Schema of organization files, for editors; the examples expect it in stacks/schema.json."""
    if kind is not None:
        if kind not in kinds():
            raise SelectionError(f"no kind {kind}; {hint(kind, kinds())}")
        click.echo(json_text(schema_of(kinds()[kind].document)))
    else:
        click.echo(extension("scenario-schema")() if scenario else schema_text(), nl=False)

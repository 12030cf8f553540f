"""`hpkit catalog schema`: the JSON Schemas of files and of what commands print."""

import click

from hpkit.cli.documents import KINDS, schema_of
from hpkit.cli.formats import output_options
from hpkit.config.reference import schema_text
from hpkit.extensions import extension
from hpkit.text.formatting import json_text

__all__ = ["command"]


@click.command("schema")
@output_options()
@click.option("--scenario", is_flag=True, help="Write the schema of scenario files instead.")
@click.option(
    "--kind",
    metavar="KIND",
    help="Write the schema of a JSON document that a command prints instead, such as QuotaList.",
    shell_complete=lambda _context, _parameter, begun: [name for name in KINDS if name.startswith(begun)],
)
def command(scenario: bool, kind: str | None) -> None:
    """Write the JSON Schema of organization files, for editors; the examples expect it in stacks/schema.json."""
    if kind is not None:
        click.echo(json_text(schema_of(kind)))
    else:
        click.echo(extension("scenario-schema")() if scenario else schema_text(), nl=False)

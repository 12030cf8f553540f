"""`hpkit catalog schema`: the JSON Schema that editors read."""

import click

from hpkit.cli.formats import output_options
from hpkit.config.reference import schema_text
from hpkit.extensions import extension

__all__ = ["command"]


@click.command("schema")
@output_options()
@click.option("--scenario", is_flag=True, help="Write the schema of scenario files instead.")
def command(scenario: bool) -> None:
    """Write the JSON Schema for editors; the examples expect it in stacks/schema.json."""
    click.echo(extension("scenario-schema")() if scenario else schema_text(), nl=False)

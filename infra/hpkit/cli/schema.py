"""`hpkit catalog schema`: the JSON Schema that editors read."""

import click

from hpkit.cli.formats import output_options
from hpkit.config.reference import schema_text
from hpkit.extensions import extension

__all__ = ["command"]


@click.command("schema")
@output_options()
@click.option("--scenario", is_flag=True, help="Write that of scenario files instead of organization files.")
def command(scenario: bool) -> None:
    """Write the JSON Schema that editors read; the examples look for it in stacks/schema.json."""
    click.echo(extension("scenario-schema")() if scenario else schema_text(), nl=False)

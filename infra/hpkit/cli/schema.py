"""`hpkit catalog schema`: the JSON Schema that editors read."""

import os
from pathlib import Path

import click

from hpkit.config.reference import schema_text
from hpkit.extensions import extension

__all__ = ["command"]


@click.command("schema")
@click.option(
    "--write",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write it there (stacks/schema.json is where the examples look) instead of printing it.",
)
@click.option("--scenario", is_flag=True, help="Of scenario files instead of organization files.")
def command(file: Path | None, scenario: bool) -> None:
    """Write the JSON Schema that editors read."""
    text = extension("scenario-schema")() if scenario else schema_text()
    if file is None:
        click.echo(text, nl=False)
        return
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"{os.fspath(file)}: {error.strerror}") from None
    click.echo(f"wrote {os.fspath(file)}")

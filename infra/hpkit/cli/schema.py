"""`hpkit schema`: the JSON Schema that editors read."""

import json
import os
from pathlib import Path

import click

from hpkit.config.reference import json_schema

__all__ = ["command", "schema_text"]


def schema_text() -> str:
    """Return the schema as the file holds it."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


@click.command("schema")
@click.option(
    "--write",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write it there (stacks/schema.json is where the examples look) instead of printing it.",
)
def command(file: Path | None) -> None:
    """Write the JSON Schema that editors read."""
    if file is None:
        click.echo(schema_text(), nl=False)
        return
    try:
        file.write_text(schema_text(), encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"{os.fspath(file)}: {error.strerror}") from None
    click.echo(f"wrote {os.fspath(file)}")

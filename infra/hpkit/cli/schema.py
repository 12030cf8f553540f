"""`hpkit schema`: the JSON Schema that editors read."""

import os
from pathlib import Path

import click

from hpkit.config.reference import schema_text

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
    text = _scenario() if scenario else schema_text()
    if file is None:
        click.echo(text, nl=False)
        return
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"{os.fspath(file)}: {error.strerror}") from None
    click.echo(f"wrote {os.fspath(file)}")


def _scenario() -> str:
    from hpkit_whatif.scenario.schema import schema_text as scenario_text

    return scenario_text()

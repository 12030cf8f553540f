"""`hpkit catalog hash-chart`: what `cluster.dependencies.sha256` has to be."""

import click

from hpkit.cli.formats import output_options
from hpkit.config.chart import chart_hash

__all__ = ["command"]


@click.command("hash-chart")
@click.argument("path", metavar="PATH")
@output_options()
def command(path: str) -> None:
    """Print the sha256 of a chart: a .tgz file, or the paths and contents of a folder.

    For a folder, it's the output of this command in the folder:

    \b
    find -L . -path ./.git -prune -o -type f -print0 |
      LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum
    """  # noqa: D301 - click takes the character itself for "keep these lines", and would print a raw one
    click.echo(chart_hash(path))

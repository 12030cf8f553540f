"""`hpkit catalog hash-chart`: what `cluster.dependencies.sha256` has to be."""

import click

from hpkit.config.chart import chart_hash

__all__ = ["command"]


@click.command("hash-chart")
@click.argument("path", metavar="PATH")
def command(path: str) -> None:
    """Print the sha256 of a chart: of the file for a .tgz, of all files' paths and contents for a folder.

    Of a folder it is what this prints in it:

    \b
    find -L . -path ./.git -prune -o -type f -print0 |
      LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum
    """  # noqa: D301 - click takes the character itself for "keep these lines", and would print a raw one
    click.echo(chart_hash(path))

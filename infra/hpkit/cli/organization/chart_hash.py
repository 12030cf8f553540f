"""`hpkit catalog hash-chart`: what `cluster.dependencies.sha256` has to be."""

import click

from hpkit.cli.common.documents import json_document
from hpkit.cli.common.formats import Output, output_options
from hpkit.config.reading.chart import chart_hash
from hpkit.text.document import Document

__all__ = ["ChartHash", "command"]


class ChartHash(Document):
    """The hash of a chart, for `dependencies.sha256`."""

    path: str
    sha256: str


@click.command("hash-chart")
@click.argument("path", metavar="PATH")
@output_options("text", "json", documents=("hpkit.cli.organization.chart_hash:ChartHash",))
def command(path: str) -> Output:
    """Print the sha256 of a chart: a .tgz file, or the paths and contents of a folder.

    For a folder, it's the output of this command in the folder:

    \b
    find -L . -path ./.git -prune -o -type f -print0 |
      LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum
    """  # noqa: D301 - click takes the character itself for "keep these lines", and would print a raw one
    sha256 = chart_hash(path)
    return Output(text=lambda: sha256, json=lambda: json_document(ChartHash(path=path, sha256=sha256)))

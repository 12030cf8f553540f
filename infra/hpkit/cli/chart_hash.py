"""`hpkit chart-hash`: what `cluster.dependencies.sha256` has to be."""

from pathlib import Path

import click

from hpkit.config.chart import chart_hash, problems_of
from hpkit.config.cluster import Dependencies

__all__ = ["chart_hash", "command", "mismatch"]


def mismatch(root: Path, wanted: Dependencies) -> str:
    """Return why the program does not take a chart, empty when it does: one without a hash is refused too."""
    path = ("cluster", "dependencies")
    for problem in problems_of(root, wanted, path):
        return f"cluster.dependencies: {problem.message}. {problem.fix}"
    if wanted.is_in_repository and wanted.sha256 is None:
        found = chart_hash(root / wanted.chart)
        return f"cluster.dependencies has no sha256. Write `sha256: {found}`, which is what {wanted.chart} has now"
    return ""


@click.command("chart-hash")
@click.argument("path", metavar="PATH")
def command(path: str) -> None:
    r"""Print the sha256 of a chart: of the file for a .tgz, of all files' paths and contents for a folder.

    Of a folder it is what this prints in it:

    \b
    find -L . -path ./.git -prune -o -type f -print0 |
      LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum
    """
    click.echo(chart_hash(path))

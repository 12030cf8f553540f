"""`hpkit catalog fetch-chart`: the charts that hpkit pins, as packages."""

from pathlib import Path

import click

from hpkit.cli.common.documents import acted
from hpkit.cli.common.formats import acts

__all__ = ["command"]


@click.command("fetch-chart")
@click.option(
    "--to",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Save the charts here, named as HPKIT_MIRROR expects, for a machine without network access.",
)
@acts
def command(folder: Path | None) -> None:
    """Download and verify the charts that hpkit pins: HyperPod's dependencies, KEDA, and operators.

    `pulumi up` downloads what a stack needs automatically. Charts that are already in the cache aren't downloaded
    again.
    """
    from hpkit.catalog import PinnedChart, PublishedChart, dependencies_chart, keda_chart, operator_charts
    from hpkit.program.charts import ensure_package
    from hpkit.project import project_root

    pins: list[PinnedChart | PublishedChart] = [dependencies_chart(), keda_chart(), *operator_charts()]
    for pin in pins:
        place = None if folder is None else folder / pin.published_file
        package = ensure_package(pin, project_root(), to=place, say=lambda text: click.echo(text, err=True))
        acted("fetch", package.path)
        click.echo(package.path)
        if not package.is_pinned:
            click.echo(
                f"{pin.published_file} differs from hpkit's pin, so AWS deployments reject it: in the HPKIT_MIRROR "
                f"folder, its content hash is {package.contents}; the pin is {pin.package}",
                err=True,
            )

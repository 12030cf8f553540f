"""`hpkit catalog fetch-chart`: the charts that the kit pins, as packages."""

from pathlib import Path

import click

__all__ = ["command"]


@click.command("fetch-chart")
@click.option(
    "--to",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Put it there, named as HPKIT_MIRROR wants it, for a machine without a network.",
)
def command(folder: Path | None) -> None:
    """Fetch the charts that the kit pins (what HyperPod expects on EKS, and KEDA), and verify their contents.

    `pulumi up` fetches what a stack needs by itself. Packages that are kept already are not fetched again.
    """
    from hpkit.catalog import dependencies_chart, keda_chart
    from hpkit.program.charts import ensure_package
    from hpkit.project import project_root

    for pin in (dependencies_chart(), keda_chart()):
        place = None if folder is None else folder / pin.published_file
        package = ensure_package(pin, project_root(), to=place, say=lambda text: click.echo(text, err=True))
        click.echo(package.path)
        if not package.is_pinned:
            click.echo(
                f"{pin.published_file} is not what the kit pins, and no run on AWS takes it: in the folder of "
                f"HPKIT_MIRROR it has the contents {package.contents}, and the pin is {pin.package}",
                err=True,
            )

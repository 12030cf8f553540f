"""`hpkit chart-fetch`: the dependencies chart that the kit pins, as a package."""

from pathlib import Path

import click

__all__ = ["command"]


@click.command("chart-fetch")
@click.option(
    "--to",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Put it there, named as HPKIT_MIRROR wants it, for a machine without a network.",
)
def command(folder: Path | None) -> None:
    """Fetch the chart of what HyperPod expects on EKS, at the kit's pin: each part is verified by its contents.

    `pulumi up` does this by itself. What is kept already is not fetched again.
    """
    from hpkit.catalog import dependencies_chart
    from hpkit.charts import ensure_package
    from hpkit.project import project_root

    pin = dependencies_chart()
    place = None if folder is None else folder / pin.published_file
    package = ensure_package(pin, project_root(), to=place, say=lambda text: click.echo(text, err=True))
    click.echo(package.path)
    if not package.is_pinned:
        click.echo(
            f"this is what the folder in HPKIT_MIRROR holds: contents {package.contents}, pinned {pin.package}",
            err=True,
        )

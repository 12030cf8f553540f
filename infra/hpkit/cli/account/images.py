"""`hpkit aws images`: what nodes of a stack pull, and where a mirror has it."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import click

from hpkit.cli.common.completion import stack_option
from hpkit.cli.common.documents import json_document
from hpkit.cli.common.formats import Output, output_options
from hpkit.cli.common.inputs import choose_file, record_plan
from hpkit.cli.common.output import stdout_to_stderr
from hpkit.errors import ToolError
from hpkit.extensions import extension
from hpkit.plan.model import Plan
from hpkit.program.charts import MirroredImage
from hpkit.project import Loaded, project_root
from hpkit.text.document import Document

__all__ = ["ImageList", "command"]


class ImageList(Document):
    """Images that the nodes of a stack pull."""

    stack: str
    read_from: str
    images: list[MirroredImage]


_ACCOUNT = "ACCOUNT"


@click.command("images")
@stack_option("The stack", required=True)
@click.option(
    "--registry",
    metavar="REGISTRY",
    help="Registry of the mirror. Default: dependencies.imageRegistry, or the account's ECR.",
)
@click.option("--account", metavar="ID", help="Account of the ECR registry, if no registry is set.")
@click.option(
    "--mirror",
    "copying",
    is_flag=True,
    help="Copy the images with crane or skopeo; without either, print the commands.",
)
@output_options("text", "json", documents=("hpkit.cli.account.images:ImageList",))
def command(stack: str, registry: str | None, account: str | None, *, copying: bool) -> Output:
    """List the images that a stack's nodes pull, with their names in a mirror.

    The list comes from the rendered chart or, if the chart or helm isn't available, from the list that hpkit pins
    with it. Images of EKS add-ons come from AWS registries in the stack's region, which nodes in a closed network reach
    through its endpoints.
    """
    from hpkit.program.charts import mirrored

    loaded, plan = choose_file(stack)
    stated = registry or plan.spec.cluster.dependencies.image_registry
    place = stated or f"{account or _ACCOUNT}.dkr.ecr.{plan.spec.region}.amazonaws.com"
    sources, read_from = _sources(plan, loaded)
    rows = mirrored(sources, registry=place, region=plan.spec.region)
    remaining: list[str] = []
    if copying:
        if stated is None and account is None:
            raise click.UsageError("set the mirror with --account, --registry, or dependencies.imageRegistry")
        remaining = _copy(rows)
    return Output(
        bool(remaining),
        text=lambda: "\n".join(remaining) if copying else _print(plan, rows, read_from),
        json=lambda: json_document(ImageList(stack=plan.stack, read_from=read_from, images=list(rows))),
    )


def _print(plan: Plan, rows: "Sequence[MirroredImage]", read_from: str) -> None:
    for row in rows:
        where = "regional AWS registry, reachable through endpoints" if row.regional else row.target
        click.echo(f"{row.source}\n  {row.needed_by}; {where}")
    click.echo(f"{len(rows)} images, from {read_from}", err=True)
    click.echo(f"add-ons pull from AWS in {plan.spec.region}: {', '.join(each.name for each in plan.addons)}", err=True)


def _sources(plan: Plan, loaded: Loaded) -> tuple[dict[str, str], str]:
    """Return image → what brings it, and what that was read from."""
    from hpkit.catalog import dependencies_chart
    from hpkit.errors import ToolError
    from hpkit.plan.dependencies import chart_images, charts_of, value_at
    from hpkit.plan.lustre import folder_image, folder_image_source
    from hpkit.program.charts import images_in
    from hpkit.program.recording import UNKNOWN_ACCOUNT, Answers

    recording = record_plan(plan, loaded, Answers(account=plan.spec.account or UNKNOWN_ACCOUNT))
    manifests = [each.inputs for each in recording.all("") if each.type.startswith("kubernetes:")]
    # The chart is rendered without a mirror; this image is the only other one that follows it.
    copy, source = folder_image(plan.spec), folder_image_source(plan.spec)
    from_program = {source if image == copy else image: "manifests of the stack" for image in images_in(manifests)}
    for each in charts_of(plan.spec):
        from_program |= dict.fromkeys(each.images, f"chart {each.name}, which hpkit installs without a mirror")
    if plan.dependencies is None:
        return from_program, "the program; the chart is already installed"
    for added in dependencies_chart().injected:
        if value_at(plan.dependencies.values, added.switch) is not False:
            from_program[added.image] = added.by
    try:
        needless = {each.source(plan.spec.region) for each in dependencies_chart().images}
        needless -= {each.source(plan.spec.region) for each in chart_images(plan.spec)}
        found_in_chart = [each for each in images_in(_manifests(plan)) if each not in needless]
        chart = dict.fromkeys(found_in_chart, "dependencies chart")
    except ToolError as error:
        if not plan.spec.cluster.dependencies.is_kits:
            raise
        click.echo(f"the chart can't be rendered, so the pinned list is shown: {error}", err=True)
        chart = {
            each.source(plan.spec.region): f"dependencies chart, {each.subchart}" for each in chart_images(plan.spec)
        }
        return {**chart, **from_program}, "the catalog and the program"
    return {**chart, **from_program}, "the rendered chart and the program"


def _manifests(plan: Plan) -> str:
    """Return the chart rendered as it would be without a mirror; raises ToolError where it cannot be."""
    from hpkit.catalog import dependencies_chart
    from hpkit.errors import ToolError
    from hpkit.plan.dependencies import dependencies_of
    from hpkit.program.charts import kept_package, rendered

    dependencies = plan.spec.cluster.dependencies
    spec: Any = plan.spec
    if dependencies.is_kits:
        package = kept_package(dependencies_chart(), project_root())
        if package is None:
            raise ToolError("the chart isn't downloaded; run `hpkit catalog fetch-chart`")
        path = package.path
        cluster = spec.cluster.model_copy(
            update={"dependencies": dependencies.model_copy(update={"image_registry": None})}
        )
        spec = spec.model_copy(update={"cluster": cluster})
    elif dependencies.is_in_repository:
        path = project_root() / str(dependencies.chart)
    else:
        raise ToolError(
            f"{dependencies.chart} is in a registry; download it with `helm pull`, and keep it in the repository"
        )
    chart = dependencies_of(spec)
    values: Mapping[str, Any] = {} if chart is None else chart.values
    return rendered(path, values, kubernetes=f"{plan.spec.eks.version}.0", helm=_helm())


def _helm() -> Any:
    """Return the helm that `hpkit local doctor` got; None for that of PATH."""
    with suppress(ToolError):
        return extension("tool-path")("helm")
    return None


def _copy(rows: "list[MirroredImage]") -> list[str]:
    """Copy images; return the commands that copy them if no tool is installed."""
    from hpkit.program.charts import copy_commands, copying_tool, mirror

    copied = [row for row in rows if not row.regional]
    tool = copying_tool()
    if tool is None:
        click.echo("neither crane nor skopeo is on PATH; with crane, run:", err=True)
        return list(copy_commands(copied, "crane"))
    with stdout_to_stderr():
        mirror(copied, tool, say=click.echo)
    return []

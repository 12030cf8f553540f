"""`hpkit cluster grafana`: dashboards and alert rules of a stack as files."""

import json
from pathlib import Path

import click

from hpkit.cli.common.completion import stack_option
from hpkit.cli.common.documents import acted
from hpkit.cli.common.formats import acts
from hpkit.cli.common.inputs import choose_stack
from hpkit.cli.common.output import WholeLines
from hpkit.errors import InputError, SelectionError
from hpkit.plan.names import grafana_topic_arn

__all__ = ["command"]

_NOBODYS = "000000000000"


@click.group("grafana", cls=WholeLines)
def command() -> None:
    """Export dashboards and alert rules that Grafana imports."""


@command.command("export")
@stack_option("Stack to export; required if the project has several")
@click.option(
    "--to",
    "folder",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Folder for the files. It's created if necessary.",
)
@click.option("--prometheus-url", metavar="URL", help="URL of Prometheus. Default: a placeholder.")
@acts
def export(stack: str | None, folder: Path, prometheus_url: str | None) -> None:
    """Export dashboards, alert rules and contact point as JSON files for Grafana.

    Doesn't call AWS or Grafana.
    """
    from hpkit.grafana.export import export_files

    plan = choose_stack(stack)
    if plan.spec.observability is None or not plan.spec.observability.prometheus:
        raise SelectionError(
            f"{plan.stack} has no Prometheus, which the dashboards query. Set `prometheus: true` in its observability"
        )
    url = prometheus_url or f"https://aps-workspaces.{plan.spec.region}.amazonaws.com/workspaces/WORKSPACE_ID"
    topic_arn = grafana_topic_arn(plan, plan.spec.account or _NOBODYS)
    files = export_files(plan, prometheus_url=url, topic_arn=topic_arn)
    try:
        for name, body in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(body, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
            acted("write", path)
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror or error}. Name a writable folder") from None
    click.echo(f"wrote {len(files)} files to {folder}")
    if prometheus_url is None:
        click.echo("in data-source.json, replace WORKSPACE_ID with the ID of the Prometheus workspace", err=True)
    if topic_arn is not None and f":{_NOBODYS}:" in topic_arn:
        click.echo(f"in contact-point.json, replace {_NOBODYS} with your account", err=True)

"""`hpkit cluster grafana`: dashboards and alert rules of a stack, into its workspace or into files."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpkit.cli.aws_session import aws_session
from hpkit.cli.completion import stack_option
from hpkit.cli.documents import acted
from hpkit.cli.formats import acts, folded
from hpkit.cli.live_common import choose_stack, platform_options
from hpkit.cli.output import WholeLines, confirm
from hpkit.errors import InputError, SelectionError
from hpkit.plan.model import Plan
from hpkit.plan.names import grafana_topic_arn

if TYPE_CHECKING:
    from boto3 import Session

    from hpkit.grafana.desired import Desired
    from hpkit.grafana.workspace import Access

__all__ = ["command"]

_NOBODYS = "000000000000"


@click.group("grafana", cls=WholeLines)
def command() -> None:
    """Apply dashboards and alert rules to a stack's Grafana, or export them to files."""


@command.command("apply")
@platform_options
@click.option("--workspace", metavar="ID", help="ID of the workspace. Default: the workspace with the stack's name.")
@click.option("--dry-run", is_flag=True, help="Show the differences without changing anything.")
@click.option("--remove", is_flag=True, help="Delete everything that this command created.")
@click.option("--yes", is_flag=True, help="Skip the confirmation of --remove.")
@acts
def apply(
    stack: str | None, profile: str | None, workspace: str | None, dry_run: bool, remove: bool, yes: bool
) -> None:
    """Apply the stack's dashboards, alert rules and contact point to its Grafana.

    Prints the differences first. Objects that hpkit didn't create aren't changed: hpkit's objects have unique IDs.
    Signs in with a token that expires after ten minutes, is deleted at the end of the run, and isn't stored. For
    existingGrafana, reads the token from its secret. A second run changes nothing.
    """
    from hpkit.grafana.changes import changes
    from hpkit.grafana.client import Client

    plan = _with_grafana(choose_stack(stack), removes=remove)
    session = aws_session(profile, plan.spec.region)
    opened = _opened(session, plan, workspace)
    desired = _nothing() if remove else _wanted(session, plan)
    with opened as access:
        client = Client(access)
        steps = changes(desired, client.read(plan.stack), stack=plan.stack)
        for step in steps:
            click.echo(folded(str(step), "    ", ""))
        if not steps:
            click.echo(f"no changes in {access.name}")
            return
        if dry_run:
            for step in steps:
                acted(step.action, f"{step.kind} {step.title}", done=False)
            click.echo(f"{len(steps)} changes to make in {access.name}; to apply them, remove --dry-run")
            return
        if remove and not yes:
            confirm(f"Delete these from {access.name}?")
        for step in steps:
            client.carry_out(step, stack=plan.stack)
            acted(step.action, f"{step.kind} {step.title}")
    click.echo(f"{len(steps)} changes made: {access.address}/dashboards")


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
    """Export dashboards, alert rules and contact point as JSON files for Grafana's HTTP API.

    Doesn't call AWS or Grafana.
    """
    plan = _with_grafana(choose_stack(stack), removes=False)
    account = plan.spec.account or _NOBODYS
    region = plan.spec.region
    url = prometheus_url or f"https://aps-workspaces.{region}.amazonaws.com/workspaces/WORKSPACE_ID"
    desired = _desired(plan, url, grafana_topic_arn(plan, account))
    files = {f"{each.kind.replace(' ', '-')}s/{each.uid}.json": each.body for each in desired.objects}
    if desired.route is not None:
        files["notification-policy-branch.json"] = desired.route
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
        click.echo("replace WORKSPACE_ID with the ID of the Managed Prometheus workspace", err=True)
    if plan.spec.account is None and desired.route is not None:
        click.echo(f"in the contact point, replace {_NOBODYS} with your account", err=True)


def _opened(session: Session, plan: Plan, workspace: str | None) -> AbstractContextManager[Access]:
    """Return access to the existing Grafana of the file, else to the stack's workspace for as long as it is used."""
    from hpkit.grafana.workspace import existing_access, find_workspace, let_in

    spec = plan.spec.observability
    if spec is None or spec.existing_grafana is None:
        return let_in(session, find_workspace(session, plan, workspace))
    if workspace is not None:
        raise SelectionError(f"{plan.stack} uses the Grafana of existingGrafana. Remove --workspace")
    return nullcontext(existing_access(session, spec.existing_grafana))


def _with_grafana(plan: Plan, *, removes: bool) -> Plan:
    spec = plan.spec.observability
    if not removes and (spec is None or not spec.has_grafana or not spec.prometheus):
        raise SelectionError(
            f"{plan.stack} has no Grafana with Prometheus. Set `grafana: true` or `existingGrafana`, and "
            "`prometheus: true`, in its observability, then deploy it"
        )
    return plan


def _wanted(session: Session, plan: Plan) -> Desired:
    from hpkit.grafana.workspace import account_of, prometheus_url

    return _desired(plan, prometheus_url(session, plan), grafana_topic_arn(plan, account_of(session)))


def _desired(plan: Plan, url: str, topic_arn: str | None) -> Desired:
    from hpkit.grafana.desired import desired

    return desired(plan, prometheus_url=url, topic_arn=topic_arn)


def _nothing() -> Desired:
    from hpkit.grafana.desired import Desired

    return Desired((), None)

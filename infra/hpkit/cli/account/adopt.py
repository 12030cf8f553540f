"""`hpkit aws adopt`: a live platform becomes an organization file and a stack, and nothing of it is touched."""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpkit.cli.account.adopt_common import import_file, read, stop_at, write
from hpkit.cli.account.adopt_run import run
from hpkit.cli.common.documents import acted
from hpkit.cli.common.formats import acts, output_option
from hpkit.cli.common.output import WholeLines
from hpkit.project import today
from hpkit.text.formatting import plural

if TYPE_CHECKING:
    from hpkit.adopt.prepare import Prepared

__all__ = ["command"]


@click.group("adopt", cls=WholeLines, invoke_without_command=True)
@click.option("--cluster", metavar="NAME", help="Name or ARN of the HyperPod cluster.")
@click.option(
    "--region", metavar="REGION", help="Region of the cluster. Default: the region of the ARN, or of the AWS SDK."
)
@click.option("--organization", metavar="NAME", help="Name of the organization. Default: the cluster's name.")
@click.option("--environment", default="prod", show_default=True, metavar="NAME", help="Name of the environment.")
@output_option("Write the organization file here, and related files next to it")
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@acts
@click.pass_context
def command(
    context: click.Context,
    cluster: str | None,
    region: str | None,
    organization: str | None,
    environment: str,
    output: Path | None,
    force: bool,
) -> None:
    """Write the organization file and import list of a live cluster.

    Reads the cluster with its quotas and policy, its EKS cluster with add-ons and access, its subnets, and Karpenter's
    objects. Nothing is changed. Credentials and endpoint come from the AWS SDK (AWS_PROFILE, AWS_ENDPOINT_URL, …).
    Next, `hpkit aws adopt run --stack S` imports everything and shows the first preview.
    """
    if context.invoked_subcommand is not None:
        return
    from hpkit.adopt.prepare import prepare

    if cluster is None:
        raise click.UsageError("set the HyperPod cluster's name or ARN with --cluster")
    region, file = _region(cluster, region), output
    if file is None and context.params["form"] == "json":
        raise click.UsageError("--format json requires --output, because the command prints the organization file")
    if file is not None and file.exists() and not force:
        raise click.UsageError(f"{file} already exists; name another file, or add --force")
    live = read(cluster, region)
    name = organization or re.sub(r"[^a-z0-9-]+", "-", str(live.cluster["ClusterName"]).lower()).strip("-")
    shown = str(file or f"stacks/{name}.yaml")
    prepared = prepare(live, organization=name, environment=environment, file=shown, today=today())
    stack = f"{name}-{environment}"
    if file is None:
        click.echo(prepared.text, nl=False)
    else:
        write(file, prepared.text)
        write(file.parent / f"Pulumi.{stack}.yaml", _settings(name, environment), unless_there=True)
        if prepared.imports is not None and not _blockers(prepared):
            write(file.parent / f"{stack}.import.json", import_file(prepared.imports))
    _say(prepared, stack=stack, file=file, home=f"stacks/{name}.yaml")


def _region(cluster: str, region: str | None) -> str:
    """Return the region of a cluster; raises click.UsageError for what is neither a name nor an ARN."""
    from hpkit.adopt.read import CLUSTER_ARN, CLUSTER_NAME

    arn = CLUSTER_ARN.match(cluster)
    if arn is not None:
        return str(arn.group(1))
    if not CLUSTER_NAME.match(cluster):
        raise click.UsageError(
            f"`{cluster}` isn't the name or ARN of a HyperPod cluster (arn:aws:sagemaker:…:cluster/…)"
        )
    import boto3

    chosen_region: str | None = region or boto3.Session().region_name or os.environ.get("AWS_REGION")
    if chosen_region is None:
        raise click.UsageError("set the cluster's region with --region")
    return chosen_region


def _settings(organization: str, environment: str) -> str:
    return f"config:\n  hpkit:organization: {organization}\n  hpkit:environment: {environment}\n"


def _blockers(prepared: "Prepared") -> list[str]:
    errors = [f"{each.rule} {each.path}: {each.message}. {each.fix}" for each in prepared.errors]
    return [*prepared.remarks.blockers, *errors, *(prepared.imports.blockers if prepared.imports else ())]


def _say(prepared: "Prepared", *, stack: str, file: Path | None, home: str) -> None:
    """Report on standard error what was found and what is left to do, so that standard output has only the file.

    home is where the program reads the file.
    """
    remarks, imports = prepared.remarks, prepared.imports
    _list("keeps its current value, which isn't in the file", remarks.unmanaged)
    _list("assumed in the file, because no API returns it", remarks.assumed)
    _list("the first `pulumi up` would change", remarks.changes, "update")
    if imports is not None:
        objects = [
            f"kubernetes:{each.inputs['apiVersion']}:{each.inputs['kind']} {each.id}" for each in imports.objects
        ]
        entries = [f"{each['type']} {each['logicalName']}" for each in imports.entries]
        _list("will be imported", [*entries, *objects], "import")
        _list("doesn't exist yet, so the first `pulumi up` creates it", imports.created, "create")
    warnings = len(prepared.findings) - len(prepared.errors)
    see = f": see `hpkit validate {file}`" if file is not None else ""
    click.echo(f"{plural(len(prepared.errors), 'error')}, {plural(warnings, 'warning')}{see}", err=True)
    stop_at(_blockers(prepared))
    if file is None:
        click.echo(f"no file was written; to write it, add --output {home}", err=True)
        return
    # The program, and so `adopt run`, finds a file only by its path.
    if file.absolute().parts[-2:] != Path(home).parts:
        click.echo(f"next: move it to {home}, and the files next to it to stacks/", err=True)
    click.echo(f"next: hpkit aws adopt run --stack {stack}", err=True)


def _list(title: str, lines: Iterable[str], action: str = "") -> None:
    for index, line in enumerate(lines):
        if action:
            acted(action, line, done=False)
        if index == 0:
            click.echo(f"{title}:", err=True)
        click.echo(f"  {line}", err=True)


command.add_command(run)

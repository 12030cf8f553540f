"""`hpkit adopt`: the organization file of a live cluster, and the commands that import it."""

import datetime
import re
import shlex
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

from hpkit.checks import check, summarize
from hpkit.config import parse, read_text
from hpkit.errors import ToolError
from hpkit.plan.adopt import Adopted, Live, adopt

__all__ = ["command"]

_ARN = re.compile(r"arn:aws[a-z-]*:sagemaker:([a-z0-9-]+):\d{12}:cluster/[a-z0-9]{12}\Z")


@click.command("adopt")
@click.option("--cluster", "arn", required=True, metavar="ARN", help="The HyperPod cluster.")
@click.option("--organization", metavar="NAME", help="Name of the organization; default: the cluster's name.")
@click.option("--environment", default="prod", show_default=True, metavar="NAME", help="Name of the environment.")
@click.option(
    "--write", "file", type=click.Path(dir_okay=False, path_type=Path), help="Write the file there, not to the screen."
)
@click.option("--force", is_flag=True, help="Replace a file that is there.")
def command(arn: str, organization: str | None, environment: str, file: Path | None, force: bool) -> None:
    """Write the organization file of a live cluster, and the import commands.

    Reads the cluster, its quotas and policy, its EKS cluster and subnets; changes nothing. Credentials and endpoint
    are those of the AWS SDK (AWS_PROFILE, AWS_ENDPOINT_URL, …).
    """
    match = _ARN.match(arn)
    if match is None:
        raise click.UsageError(f"`{arn}` is not the ARN of a HyperPod cluster (arn:aws:sagemaker:…:cluster/…)")
    if file is not None and file.exists() and not force:
        raise click.UsageError(f"{file} is there already; name another file, or add --force")
    live = _read(arn, match.group(1))
    name = organization or re.sub(r"[^a-z0-9-]+", "-", str(live.cluster["ClusterName"]).lower()).strip("-")
    adopted = adopt(live, organization=name, environment=environment)
    text = _text(adopted, arn)
    if file is None:
        click.echo(text, nl=False)
    else:
        _write(file, text)
    _say(adopted, text, stack=f"{name}-{environment}", file=str(file or f"stacks/{name}.yaml"))


def _read(arn: str, region: str) -> Live:
    """Ask the APIs; raises ToolError with code and message of what they refuse."""
    import boto3
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        session = boto3.Session(region_name=region)
        return _describe(session.client, arn)
    except ClientError as error:
        said = error.response["Error"]
        raise ToolError(f"{error.operation_name}: {said['Code']}: {said['Message']}") from None
    except BotoCoreError as error:
        raise ToolError(f"{error} (credentials and endpoint are those of the AWS SDK: AWS_PROFILE, …)") from None


def _describe(client: Callable[[str], Any], arn: str) -> Live:
    sagemaker, eks, ec2 = client("sagemaker"), client("eks"), client("ec2")
    cluster = sagemaker.describe_cluster(ClusterName=arn)
    orchestrator = cluster.get("Orchestrator", {}).get("Eks")
    if orchestrator is None:
        raise ToolError(f"{cluster['ClusterName']} is not orchestrated by EKS, which is all that hpkit provisions")
    kube = str(orchestrator["ClusterArn"]).rpartition("/")[2]
    subnets = {subnet for group in cluster["InstanceGroups"] for subnet in _subnets(group)}
    subnets |= set(cluster["VpcConfig"]["Subnets"])
    found = ec2.describe_subnets(SubnetIds=sorted(subnets))["Subnets"]
    quotas = _pages(sagemaker, "list_compute_quotas", "ComputeQuotaSummaries", arn)
    policies = _pages(sagemaker, "list_cluster_scheduler_configs", "ClusterSchedulerConfigSummaries", arn)
    names = [name for page in eks.get_paginator("list_addons").paginate(clusterName=kube) for name in page["addons"]]
    return Live(
        cluster=cluster,
        eks=eks.describe_cluster(name=kube)["cluster"],
        zones={subnet["SubnetId"]: subnet["AvailabilityZone"] for subnet in found},
        quotas=[sagemaker.describe_compute_quota(ComputeQuotaId=each["ComputeQuotaId"]) for each in quotas],
        policies=[
            sagemaker.describe_cluster_scheduler_config(ClusterSchedulerConfigId=each["ClusterSchedulerConfigId"])
            for each in policies
        ],
        addons={name: eks.describe_addon(clusterName=kube, addonName=name)["addon"]["addonVersion"] for name in names},
        tags={tag["Key"]: tag["Value"] for tag in sagemaker.list_tags(ResourceArn=arn)["Tags"]},
    )


def _subnets(group: dict[str, Any]) -> Iterable[str]:
    subnets: list[str] = group.get("OverrideVpcConfig", {}).get("Subnets", [])
    return subnets


def _pages(client: Any, operation: str, key: str, arn: str) -> list[dict[str, Any]]:
    """Return all live summaries of one cluster; a deleted one is listed for a while, and left out here."""
    pages = client.get_paginator(operation).paginate(ClusterArn=arn)
    return [each for page in pages for each in page[key] if each["Status"] not in ("Deleting", "Deleted")]


def _text(adopted: Adopted, arn: str) -> str:
    import yaml

    lines = ["# yaml-language-server: $schema=./schema.json", "#", f"# Adopted from {arn}."]
    lines += [f"# Not in this file: {what}." for what in adopted.left_out]
    body = yaml.safe_dump(adopted.data, sort_keys=False, allow_unicode=True, width=110, default_flow_style=None)
    return "\n".join(lines) + "\n" + body


def _write(file: Path, text: str) -> None:
    temporary = file.with_name(f".{file.name}.new")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(file)
    except OSError as error:
        raise ToolError(f"{file}: {error.strerror}") from None
    click.echo(f"wrote {file}", err=True)


def _say(adopted: Adopted, text: str, *, stack: str, file: str) -> None:
    """Say on standard error what is left to do, so that standard output is the file alone."""
    for what in adopted.left_out:
        click.echo(f"not in the file: {what}", err=True)
    document = read_text(text.encode())
    today = datetime.datetime.now(tz=datetime.UTC).date()
    summary = summarize(check(document, parse(document), file=file, today=today))
    if summary.errors or summary.warnings:
        click.echo(f"{summary.errors} errors, {summary.warnings} warnings: see `hpkit validate {file}`", err=True)
    click.echo("then import what is live:", err=True)
    for token, name, arn in adopted.imports:
        click.echo(f"  {shlex.join(['pulumi', 'import', '--stack', stack, token, name, arn])}", err=True)

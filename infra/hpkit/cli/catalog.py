"""`hpkit catalog`: the facts that an account can be asked for."""

import sys
from collections.abc import Sequence
from typing import Any

import click

from hpkit.cli.aws_session import aws_session
from hpkit.cli.inputs import require_clone
from hpkit.errors import ToolError
from hpkit.generate.eks import FILE, differences, refreshed, supported
from hpkit.project import project_root, today

__all__ = ["command"]


@click.group("catalog")
def command() -> None:
    """Keep the catalog's facts as AWS tells them."""


@command.command("refresh")
@click.option("--region", default="us-west-2", show_default=True, metavar="R", help="The region that is asked.")
@click.option("--profile", metavar="P", help="Profile of the AWS configuration; default: the AWS SDK's own choice.")
@click.option("--check", "only_check", is_flag=True, help="Write nothing; exit 1 when EKS says something else.")
def refresh(region: str, profile: str | None, only_check: bool) -> None:
    """Ask EKS for its Kubernetes and add-on versions, show what differs from the catalog, and write it.

    Calls DescribeClusterVersions and DescribeAddonVersions, and changes nothing in the account. Which Kubernetes
    versions HyperPod takes, no API says; that and the prices stay as they are.
    """
    require_clone()
    versions, offered = _ask(region, profile)
    path = project_root() / FILE
    old = path.read_text(encoding="utf-8")
    new = refreshed(old, versions=versions, offered=offered, region=region, today=today())
    if new == old:
        click.echo(f"{FILE} has what EKS says in {region}")
        return
    for line in differences(old, new):
        click.echo(line)
    if only_check:
        click.echo(f"{FILE} is out of date; run `hpkit catalog refresh`", err=True)
        sys.exit(1)
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_text(new, encoding="utf-8")
    temporary.replace(path)
    click.echo(f"wrote {FILE}; `make generate` writes what is made from it")


def _ask(region: str, profile: str | None) -> tuple[Sequence[dict[str, Any]], dict[str, Sequence[dict[str, Any]]]]:
    """Return the versions of EKS, and Kubernetes version → add-ons; raises ToolError for a call that fails."""
    from hpkit.clients.aws import call_all
    from hpkit.clients.calls import ApiCall, FailedCall
    from hpkit.preflight.calls import KUBERNETES_VERSIONS

    session = aws_session(profile, region)

    def answers(calls: Sequence[ApiCall]) -> list[dict[str, Any]]:
        found = call_all(session, calls, on_progress=lambda _done, _total: None)
        for each in found.values():
            if isinstance(each, FailedCall):
                raise ToolError(f"{each.action}: {each.code}: {each.message}. {each.fix}")
        return [found[call.key] for call in calls]

    (answer,) = answers([KUBERNETES_VERSIONS])
    names = supported(answer["clusterVersions"])
    listed = answers([ApiCall("eks", "DescribeAddonVersions", {"kubernetesVersion": name}) for name in names])
    return answer["clusterVersions"], {name: each["addons"] for name, each in zip(names, listed, strict=True)}

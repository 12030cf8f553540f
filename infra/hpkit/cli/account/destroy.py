"""`hpkit aws destroy` deletes a whole stack: it lists what is deleted, asks, removes the protection, and deletes it."""

import json

import click

from hpkit.cli.common.completion import stack_option
from hpkit.cli.common.documents import acted
from hpkit.cli.common.formats import acts
from hpkit.cli.common.output import pulumi_environment
from hpkit.clients.processes import run_attended
from hpkit.clients.pulumi_stack import PulumiStack
from hpkit.errors import HpkitError, ToolError
from hpkit.program.teardown import Teardown, holders, teardown_of
from hpkit.project import project_root
from hpkit.text.formatting import plural

__all__ = ["command"]


@click.command("destroy")
@stack_option("The stack", required=True, variable=False)
@click.option("--yes", is_flag=True, help="Skip the confirmation, for automation.")
@click.argument("extra", nargs=-1, type=click.UNPROCESSED, metavar="[-- PULUMI-OPTIONS]...")
@acts
def command(stack: str, yes: bool, extra: tuple[str, ...]) -> None:
    """Delete an entire stack, including its nodes and teams.

    `pulumi destroy` fails, because important resources are protected. If a run is interrupted, the stack stays
    unprotected until the next `pulumi up`.
    """
    environment = pulumi_environment()
    pulumi = PulumiStack(stack, root=project_root(), environment=environment)
    ending = teardown_of(stack, pulumi.export())
    # `pulumi stack rm` rejects while anything is in the state, such as the provider of resources that failed.
    if not ending.entries:
        raise ToolError(f"the stack {stack} is already empty; remove it with `pulumi stack rm {stack}`")
    if ending.rejection:
        raise ToolError(ending.rejection)
    _reject_held(ending)
    _show(ending)
    if not yes:
        _ask(stack)
    if ending.protected:
        pulumi.run("state", "unprotect", "--all", "--yes", "--stack", stack)
    command = ["pulumi", "destroy", "--yes", "--stack", stack, *extra]
    if code := run_attended(command, folder=project_root(), environment=environment):
        raise ToolError(f"`pulumi destroy` failed with exit code {code}; see its output above")
    acted("delete", stack)


def _reject_held(ending: Teardown) -> None:
    """Raise ToolError while something keeps parts of the stack: Pulumi would wait for minutes, and then fail."""
    if not ending.eks:
        return
    from hpkit.cli.common.aws_session import aws_session
    from hpkit.cli.common.live import kubernetes_api
    from hpkit.clients.calls import ApiCall
    from hpkit.cluster.live.read import ask

    _, _, _, region, _, cluster = ending.eks.split(":")
    try:
        session = aws_session(None, region)
        eks = ask(session, ApiCall("eks", "DescribeCluster", {"name": cluster.partition("/")[2]}))["cluster"]
        with kubernetes_api(session, eks, needs="list nodes, pods, budgets and workloads") as kubernetes:
            blockers = holders(ending, kubernetes.find)
    except (HpkitError, click.UsageError) as error:
        # Of the options that a missing login suggests, this command has none.
        reason = str(error) if isinstance(error, HpkitError) else "no AWS credentials were found"
        click.echo(f"warning: can't check whether something keeps the stack from being deleted: {reason}", err=True)
        return
    if blockers:
        lines = [f"  {each.command}    # it {each.reason}" for each in blockers]
        raise ToolError(
            "Nothing was deleted, because these keep parts of the stack. Delete them first, then run the command "
            "again:\n" + "\n".join(lines)
        )


def _show(ending: Teardown) -> None:
    among = ", including" if ending.goes else ""
    click.echo(f"This deletes the entire stack {ending.stack}, {plural(ending.resources, 'resource')}{among}")
    for line in ending.goes:
        click.echo(f"  {line}")


def _ask(stack: str) -> None:
    answer = click.prompt("Type the stack's name to delete it", default="", show_default=False)
    if answer.strip() != stack:
        raise ToolError(f"nothing was deleted: {json.dumps(answer)} isn't {stack} (to skip this question, add --yes)")

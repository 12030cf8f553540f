"""`hpkit aws adopt handover`: what Terraform or CloudFormation must let go of."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpkit.cli.adopt_common import plan_of, registered
from hpkit.cli.completion import stack_option
from hpkit.cli.documents import json_document
from hpkit.cli.formats import Output, output_options
from hpkit.config import read_file
from hpkit.errors import ToolError

if TYPE_CHECKING:
    from hpkit.adopt import ManagedResource

__all__ = ["handover"]


@click.command("handover")
@stack_option("The stack", required=True)
@click.option(
    "--terraform",
    "states",
    multiple=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="Terraform state file, or the output of `terraform show -json`.",
)
@click.option(
    "--cloudformation",
    "stacks",
    multiple=True,
    metavar="STACK",
    help="Name of a CloudFormation stack, or a file with the output of `aws cloudformation describe-stack-resources`.",
)
@output_options("text", "json", documents=("hpkit.adopt.handover:HandoverPlan",))
def handover(stack: str, states: tuple[Path, ...], stacks: tuple[str, ...]) -> Output:
    """Show what Terraform or CloudFormation must release, so that each resource has one owner.

    Nothing is changed. Run the printed commands in order; some come before `hpkit aws adopt run`.
    """
    from hpkit.adopt import HandoverPlan, as_data, lines
    from hpkit.adopt import handover as handed_over
    from hpkit.adopt.adopted_resources import adopted_resources

    if not states and not stacks:
        raise click.UsageError("specify the tool that manages the platform: --terraform FILE or --cloudformation STACK")
    plan = plan_of(stack)
    live, _, imports = registered(plan)
    found = handed_over(_managed(states, stacks, plan.spec.region), adopted_resources(plan, live, imports))
    return Output(text=lambda: "\n".join(lines(found)), json=lambda: json_document(HandoverPlan, **as_data(found)))


def _managed(states: Sequence[Path], stacks: Sequence[str], region: str) -> "list[ManagedResource]":
    """Return the resources of the other tools; raises ToolError for an unreadable stack, InputError for a file."""
    from hpkit.adopt import read_cloudformation, read_stacks, read_terraform

    managed = [each for file in states for each in read_terraform(_input(file), file=str(file))]
    for name in stacks:
        if Path(name).is_file():
            managed += read_cloudformation(_input(Path(name)), file=name)
            continue
        import boto3
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            managed += read_stacks(boto3.Session(region_name=region).client("cloudformation"), name)
        except (BotoCoreError, ClientError) as error:
            raise ToolError(f"CloudFormation stack {name}: {error}") from None
    return managed


def _input(file: Path) -> str:
    return read_file(file).decode(errors="replace")

"""`hpkit deployer-policy`: the IAM policies of who deploys a stack."""

import json
import re
from typing import Final

import click

from hpkit.cli.completion import stack_option
from hpkit.cli.inputs import plans_of, record_plan, resolve
from hpkit.iam.account import AwsAccount
from hpkit.iam.deployer import NO_ACCOUNT, policies_text
from hpkit.plan.model import Plan
from hpkit.project import Loaded

__all__ = ["command"]

_ACCOUNT: Final = f"The account's 12 digits; without it that of the file, or {NO_ACCOUNT}, which is nobody's."


def _policies_text(plan: Plan, loaded: Loaded, account: str, *, read_only: bool) -> str:
    """Return the policies of one stack as JSON: a list of `name` and `document`."""
    from hpkit.recording import Answers

    recording = record_plan(plan, loaded, Answers(account=account))
    registered = (each.type for each in recording.resources.values())
    return policies_text(plan, AwsAccount("aws", plan.spec.region, account), registered, read_only=read_only)


@click.command("deployer-policy")
@stack_option("The stack that is to be deployed", required=True)
@click.option("--account", metavar="ID", help=_ACCOUNT)
@click.option("--read-only", is_flag=True, help="Of who previews instead: what of these rights only reads.")
def command(stack: str, account: str | None, *, read_only: bool) -> None:
    """Print the IAM policies that `pulumi up`, `refresh` and `destroy` of a stack need.

    A JSON list of named documents: IAM limits a managed policy to 6,144 characters, so that one is not enough. Attach
    all of them to the role that deploys.
    """
    if account is not None and not re.fullmatch(r"\d{12}", account):
        raise click.BadParameter(f"`{account}` is not an account; write its 12 digits", param_hint="--account")
    (loaded,) = resolve((), (stack,))
    (plan,) = plans_of([loaded])
    stated = plan.spec.account
    if account is not None and stated not in (None, account):
        raise click.BadParameter(f"{stack} belongs to account {stated}, as its file says", param_hint="--account")
    account = account or stated
    text = _policies_text(plan, loaded, account or NO_ACCOUNT, read_only=read_only)
    click.echo(text, nl=False)
    count, does = len(json.loads(text)), "previews" if read_only else "deploys"
    click.echo(f"{count} policies; attach all of them to the role that {does} {stack}", err=True)
    if account is None:
        click.echo(f"they allow nothing yet: put your account in place of {NO_ACCOUNT}, or give --account", err=True)

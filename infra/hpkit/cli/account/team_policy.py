"""`hpkit aws team-policy`: the IAM policy of a team's data scientists."""

import re

import click

from hpkit.cli.common.completion import stack_option
from hpkit.cli.common.formats import output_options
from hpkit.cli.common.inputs import choose_stack
from hpkit.errors import SelectionError
from hpkit.plan.names import partition_of
from hpkit.program.iam.deployer import NO_ACCOUNT
from hpkit.program.iam.documents import policy_of_members
from hpkit.program.iam.live import AwsAccount
from hpkit.text.formatting import json_text

__all__ = ["command"]


@click.command("team-policy")
@output_options()
@stack_option("Stack that the team works on", required=True)
@click.option("--team", required=True, metavar="T", help="Team with quota in the stack.")
@click.option(
    "--account",
    metavar="ID",
    help=f"12 digits of the account. Default: the file's account, or the placeholder {NO_ACCOUNT}.",
)
def command(stack: str, team: str, account: str | None) -> None:
    """Print the IAM policy that the roles of a team's members need, and no more.

    It allows finding the cluster, getting a kubeconfig, and pushing images to the team's own repositories, if it has
    any (`registry`). Permissions inside the cluster come from the access entry and the team's Role. SSM sessions aren't
    allowed, because a shell on a node bypasses every limit of the team.
    """
    if account is not None and not re.fullmatch(r"\d{12}", account):
        raise click.BadParameter(f"`{account}` isn't an account ID, which has 12 digits", param_hint="--account")
    plan = choose_stack(stack)
    stated = plan.spec.account
    if account is not None and stated not in (None, account):
        raise click.BadParameter(f"{stack} belongs to account {stated}, according to its file", param_hint="--account")
    teams = {each.name: each for each in plan.teams if not each.is_shared_pool}
    if team not in teams:
        raise SelectionError(
            f"{stack} has no team {team} with quota; teams with quota: {', '.join(sorted(teams)) or 'none'}"
        )
    region = plan.spec.region
    where = AwsAccount(partition_of(region), region, account or stated or NO_ACCOUNT)
    click.echo(json_text(policy_of_members(plan, teams[team], where)))
    role = teams[team].made_role
    members = [member for member in teams[team].spec.members if member != role]
    if role is not None:
        click.echo(f"{role} gets it when you deploy", err=True)
    if members or role is None:
        whose = ", ".join(members) if members else f"the team's roles, once teams[{team}].members lists some"
        click.echo(f"attach it to {whose}", err=True)
    if where.id == NO_ACCOUNT:
        click.echo(f"the policy grants nothing yet: replace {NO_ACCOUNT} with your account, or add --account", err=True)

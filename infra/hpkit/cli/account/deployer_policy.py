"""`hpkit aws deployer-policy`: the IAM policies for the role that deploys a stack."""

import json
import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import click

from hpkit.cli.common.completion import stack_option
from hpkit.cli.common.formats import output_options
from hpkit.cli.common.inputs import choose_file, record_plan
from hpkit.config import require_file
from hpkit.plan.model import Plan
from hpkit.program.iam.deployer import (
    NO_ACCOUNT,
    NamedDocument,
    calling_types,
    console_policies,
    deployer_policies,
    governance_policies,
    outsider_policies,
    policies_text,
    viewer_policies,
)
from hpkit.program.iam.live import AwsAccount, LiveResource, account_of, live_resources
from hpkit.project import Loaded

__all__ = ["command"]

_ACCOUNT: Final = f"12 digits of the account. Default: the file's account, or the placeholder {NO_ACCOUNT}."


def _deployer(
    plan: Plan,
    loaded: Loaded,
    account: AwsAccount,
    *,
    read_only: bool,
    governance: bool,
    live: Sequence[LiveResource],
    until: str | None,
) -> tuple[NamedDocument, ...]:
    from hpkit.program.recording import Answers

    recording = record_plan(plan, loaded, Answers(account=account.id))
    types = calling_types(resource.type for resource in recording.resources.values())
    if read_only:
        return viewer_policies(plan, account, types)
    if governance:
        return governance_policies(plan, account, types, live=live)
    return deployer_policies(plan, account, types, live=live, until=until)


def _state(file: str) -> dict[str, Any]:
    """Return an exported state from a file, or from standard input (-); raises BadParameter for anything else."""
    try:
        if file == "-":
            text = sys.stdin.read()
        else:
            require_file(file)
            text = Path(file).read_text(encoding="utf-8")
        exported = json.loads(text)
        account_of(exported)
    except OSError as error:
        raise click.BadParameter(f"{file}: {error.strerror}", param_hint="--state") from None
    except (ValueError, TypeError, KeyError, AttributeError):
        raise click.BadParameter(
            "the file isn't an exported state; create it with `pulumi stack export --stack S --file state.json`",
            param_hint="--state",
        ) from None
    return dict(exported)


def _time(text: str) -> str:
    """Return a time of day as IAM compares it; raises BadParameter if it can't be read."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise click.BadParameter(
            f"`{text}` isn't a time with a zone, such as `2026-12-01T18:00:00Z`", param_hint="--until"
        )
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@click.command("deployer-policy")
@output_options()
@stack_option("Stack to deploy", required=True)
@click.option("--account", metavar="ID", help=_ACCOUNT)
@click.option(
    "--state",
    type=click.Path(allow_dash=True),
    metavar="FILE",
    help="Output of `pulumi stack export`; - reads standard input.",
)
@click.option(
    "--until", metavar="TIME", help="For a first `up` with `manageTags: false`: when these permissions expire."
)
@click.option("--read-only", is_flag=True, help="Print the policies for previews instead.")
@click.option(
    "--governance", is_flag=True, help="Print the policies to change quotas, the cluster policy, and members only."
)
@click.option("--console", is_flag=True, help="Print the policy to view the cluster in the console, for `eks.viewers`.")
@click.option(
    "--deny-outsiders", is_flag=True, help="Print a policy that denies access, for other roles such as Studio's."
)
def command(
    stack: str,
    account: str | None,
    state: str | None,
    until: str | None,
    *,
    read_only: bool,
    governance: bool,
    console: bool,
    deny_outsiders: bool,
) -> None:
    """Print the IAM policies that `pulumi up`, `refresh` and `destroy` of a stack need.

    The output is a JSON list of named documents, because IAM limits a managed policy to 6,144 characters. Attach all of
    them to the role that deploys. Before the first `up`, print them without a state. Afterward, and after `hpkit aws
    adopt`, print them with --state, so that they name the existing keys, file systems and identity providers.
    """
    if account is not None and not re.fullmatch(r"\d{12}", account):
        raise click.BadParameter(f"`{account}` isn't an account ID, which has 12 digits", param_hint="--account")
    variants = read_only + governance + console + deny_outsiders
    if variants > 1 or ((variants - governance) and (state or until)) or (governance and until):
        raise click.UsageError(
            "--read-only, --governance, --console, --deny-outsiders, and --state with --until can't be combined"
        )
    loaded, plan = choose_file(stack)
    stated = plan.spec.account
    if account is not None and stated not in (None, account):
        raise click.BadParameter(f"{stack} belongs to account {stated}, according to its file", param_hint="--account")
    if until is not None and plan.spec.manage_tags:
        raise click.BadParameter(f"{stack} manages its tags; remove --until", param_hint="--until")
    ends = None if until is None else _time(until)
    exported = None if state is None else _state(state)
    account = account or stated or (None if exported is None else account_of(exported))
    aws_account = AwsAccount("aws", plan.spec.region, account or NO_ACCOUNT)
    live = () if exported is None else live_resources(exported, aws_account)
    if deny_outsiders:
        policies = outsider_policies(plan, aws_account)
        whom = f"each role that uses SageMaker and doesn't deploy {stack}"
    elif console:
        policies = console_policies(plan, aws_account)
        whom = f"each role that views {stack} in the console"
    else:
        policies = _deployer(
            plan, loaded, aws_account, read_only=read_only, governance=governance, live=live, until=ends
        )
        does = "previews" if read_only else "changes governance of" if governance else "deploys"
        whom = f"the role that {does} {stack}"
    click.echo(policies_text(policies), nl=False)
    click.echo(f"{len(policies)} policies; attach all of them to {whom}", err=True)
    if account is None:
        click.echo(
            f"the policies grant nothing yet: replace {NO_ACCOUNT} with your account, or add --account", err=True
        )
    if not (live or variants):
        click.echo(
            f"these policies are for the first `up` of {stack}; afterward, print them again with --state", err=True
        )
    if not (live or ends or plan.spec.manage_tags or variants):
        click.echo("manageTags is false; before the first `up`, also add --until TIME", err=True)

"""`hpkit deployer-policy`: the IAM policies of who deploys a stack."""

import json
import re
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from string import Template
from typing import Any, Final

import click

from hpkit.cli.inputs import plans_of, record_plan, resolve
from hpkit.iam.account import AwsAccount
from hpkit.iam.calls import calls
from hpkit.iam.deployer import NO_ACCOUNT, SIZE_LIMIT, calling_types, deployer_policies

__all__ = ["FILES", "command", "policies_text"]

_EXAMPLE: Final = "handson-dev"


def policies_text(stack: str, account: str) -> str:
    """Return the policies of one stack as JSON: a list of `name` and `document`."""
    from hpkit.recording import Answers

    (loaded,) = resolve((), (stack,))
    (plan,) = plans_of([loaded])
    recording = record_plan(plan, loaded, Answers(account=account))
    types = calling_types(each.type for each in recording.resources.values())
    policies = deployer_policies(plan, AwsAccount("aws", plan.spec.region, account), types)
    return json.dumps([policy.as_dict() for policy in policies], indent=2) + "\n"


@click.command("deployer-policy")
@click.option("--stack", required=True, metavar="S", help="The stack that is to be deployed.")
@click.option("--account", metavar="ID", help=f"The account's 12 digits; without it {NO_ACCOUNT}, which is nobody's.")
def command(stack: str, account: str | None) -> None:
    """Print the IAM policies that `pulumi up`, `refresh` and `destroy` of a stack need.

    A JSON list of named documents: IAM limits a managed policy to 6,144 characters, so that one is not enough. Attach
    all of them to the role that deploys.
    """
    if account is not None and not re.fullmatch(r"\d{12}", account):
        raise click.BadParameter(f"`{account}` is not an account; write its 12 digits", param_hint="--account")
    text = policies_text(stack, account or NO_ACCOUNT)
    click.echo(text, nl=False)
    count = len(json.loads(text))
    click.echo(f"{count} policies; attach all of them to the role that deploys {stack}", err=True)
    if account is None:
        click.echo(f"they allow nothing yet: put your account in place of {NO_ACCOUNT}, or give --account", err=True)


@cache
def _reference() -> str:
    return policies_text(_EXAMPLE, NO_ACCOUNT)


def _page() -> str:
    """Return docs/deployer-policy.md."""
    policies = json.loads(_reference())
    rows = [
        f"| `{name}` | {_words(each.calls)} | {_words(each.more)} | {_words(each.service)} | {each.source} |"
        for name, each in calls().items()
    ]
    statements = [
        f"| {number} | {each['Sid']} | {len(each['Action'])} | {_conditions(each)} |"
        for number, policy in enumerate(policies, 1)
        for each in policy["document"]["Statement"]
    ]
    parts = {
        "COUNT": str(len(policies)),
        "EXAMPLE": _EXAMPLE,
        "LIMIT": f"{SIZE_LIMIT:,}",
        "NO_ACCOUNT": NO_ACCOUNT,
        "STATEMENTS": "\n".join(statements),
        "TYPES": "\n".join(rows),
    }
    return Template((Path(__file__).parent / "deployer_policy.md").read_text(encoding="utf-8")).substitute(parts)


def _words(names: Iterable[str]) -> str:
    return ", ".join(sorted(set(names)))


def _conditions(statement: dict[str, Any]) -> str:
    keys = {key for operator in statement.get("Condition", {}).values() for key in operator}
    return ", ".join(f"`{key}`" for key in sorted(keys))


FILES: Final[dict[str, Callable[[], str]]] = {
    "docs/reference/deployer-policy.json": _reference,
    "docs/deployer-policy.md": _page,
}

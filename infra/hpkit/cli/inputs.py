"""Which files a command means, and the plans of them, in the words of the command line."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from hpkit.checks import summarize
from hpkit.cli.formats import WRITERS
from hpkit.errors import SelectionError, ToolError
from hpkit.plan.model import Plan
from hpkit.project import Loaded, select

if TYPE_CHECKING:
    from hpkit.recording import Recording

__all__ = ["plans_of", "recording_of", "resolve"]


def resolve(files: tuple[str, ...], stacks: tuple[str, ...]) -> list[Loaded]:
    """Return what a command is to look at: the files named, the stacks named, or the whole project.

    Raises click.UsageError (exit 2) for what is not there.
    """
    try:
        return select(files, stacks)
    except SelectionError as error:
        raise click.UsageError(str(error)) from None


def plans_of(loaded: Sequence[Loaded]) -> list[Plan]:
    """Return the plans of what was loaded; on a form error, print every finding and exit 1.

    Other errors are said on standard error, so that the arithmetic can be looked at while it is being fixed.
    """
    findings = [finding for each in loaded for finding in each.findings]
    if any(each.parsed.organization is None for each in loaded):
        click.echo(WRITERS["text"](findings, list(loaded)), err=True)
        sys.exit(1)
    errors = summarize(findings).errors
    if errors:
        click.echo(f"{errors} errors stand against this; `hpkit validate` shows them", err=True)
    return [plan for each in loaded for plan in each.plans.values()]


def recording_of(plan: Plan) -> "Recording":
    """Return what the program registers for a plan; raises ToolError where it ends in an error."""
    from hpkit.recording import UNKNOWN_ACCOUNT, Answers, record

    try:
        return record(plan, Answers(account=UNKNOWN_ACCOUNT))
    except Exception as error:
        message = f"the program of {plan.stack} ends with: {error} (`hpkit validate` shows what stands against it)"
        raise ToolError(message) from error

"""Resolves a command's files and stacks, and returns their plans, with messages for the command line."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from hpkit.checks import summarize
from hpkit.cli.common.formats import findings_text
from hpkit.errors import FindingsError, InputError, SelectionError
from hpkit.plan.model import Plan
from hpkit.project import Loaded, listed_findings, select
from hpkit.text.formatting import plural

if TYPE_CHECKING:
    from hpkit.program.recording import Answers, Recording

__all__ = ["choose_file", "choose_stack", "plans_of", "record_plan"]

_DEFECT = "This is a bug in hpkit, not in your file. Report it with this traceback and, if you can, with"


def choose_stack(stack: str | None) -> Plan:
    """Return the plan of a stack, or of the project's only one; SelectionError if the project has several."""
    return choose_file(stack)[1]


def choose_file(stack: str | None) -> tuple[Loaded, Plan]:
    """Return the file and the plan of a stack; SelectionError as `choose_stack`."""
    loaded = select((), (stack,) if stack else ())
    plans = plans_of(loaded)
    if len(plans) != 1:
        names = ", ".join(plan.stack for plan in plans) or "none"
        raise SelectionError(f"name the stack with --stack or HPKIT_STACK; the project has {names}")
    return next(each for each in loaded if each.plans), plans[0]


def plans_of(loaded: Sequence[Loaded]) -> list[Plan]:
    """Return the plans of the loaded files. Raises FindingsError on a format error.

    Other errors are printed on standard error, so that the calculations are available while they are being fixed.
    """
    findings = listed_findings(loaded)
    if any(each.parsed.organization is None for each in loaded):
        raise FindingsError(findings_text(findings, list(loaded)), findings)
    errors = summarize(findings).errors
    if errors:
        click.echo(f"shown although the file has {plural(errors, 'error')}; run `hpkit validate`", err=True)
    return [plan for each in loaded for plan in each.plans.values()]


def record_plan(plan: Plan, loaded: Loaded, answers: "Answers") -> "Recording":
    """Return what the program registers for a plan of a file.

    Raises InputError if errors in the file prevent the program from running. A failure without such errors is a bug in
    the program, and is raised unchanged: its traceback shows where.
    """
    from hpkit.program.recording import record

    try:
        return record(plan, answers)
    except Exception as error:
        own = replace(loaded, environment=plan.environment)
        rules = sorted({finding.rule for finding in own.findings if finding.severity == "error"})
        if not rules:
            error.add_note(f"{_DEFECT} {loaded.file}, {plan.stack}")
            raise
        raise InputError(
            f"{plan.stack} can't be planned while {loaded.file} has errors ({', '.join(rules)}); to see them, run "
            f"`hpkit validate --stack {plan.stack}`"
        ) from error

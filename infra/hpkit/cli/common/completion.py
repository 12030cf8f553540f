"""Shell completion: names from the project's files. Loads nothing until a shell requests it."""

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from hpkit.plan.model import Plan

__all__ = ["STACK_VARIABLE", "complete_rules", "complete_stacks", "complete_teams", "stack_option", "stacks_option"]

Command = TypeVar("Command", bound=Callable[..., object])
# Names the stack of a shell; `hpkit local env` sets it.
STACK_VARIABLE = "HPKIT_STACK"


def complete_stacks(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the stacks of the project with this prefix, of files with errors too."""
    from hpkit.project import stack_names

    return [name for name in stack_names() if name.startswith(incomplete)]


def stack_option(help_text: str, *, required: bool = False, variable: bool = True) -> Callable[[Command], Command]:
    """Return the option that names one stack, as the parameter `stack`.

    variable: whether HPKIT_STACK names the stack of a command that has no --stack.
    """
    return click.option(
        "-s",
        "--stack",
        "stack",
        required=required,
        metavar="S",
        envvar=STACK_VARIABLE if variable else None,
        shell_complete=complete_stacks,
        help=f"{help_text}. Default: {STACK_VARIABLE}." if variable else f"{help_text}.",
    )


def stacks_option(help_text: str = "Only this stack", *, variable: bool = True) -> Callable[[Command], Command]:
    """Return the option that narrows a command to stacks, as `stacks`.

    variable: whether HPKIT_STACK does the same without it and files. A verdict on all stacks must not be narrowed so.
    """
    return click.option(
        "-s",
        "--stack",
        "stacks",
        multiple=True,
        metavar="S",
        shell_complete=complete_stacks,
        callback=_of_variable if variable else None,
        help=f"{help_text}. Repeatable." + (f" Default without files: {STACK_VARIABLE}." if variable else ""),
    )


def _of_variable(context: click.Context, _parameter: click.Parameter, stacks: tuple[str, ...]) -> tuple[str, ...]:
    stack = os.environ.get(STACK_VARIABLE)
    if not stack or stacks or context.params.get("files") or context.resilient_parsing:
        return stacks
    click.echo(f"stack {stack}, from {STACK_VARIABLE}", err=True)
    return (stack,)


def complete_teams(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the teams with this prefix: of --stack if it precedes, otherwise of all files that can be read."""
    stack = context.params.get("stack")
    stacks: tuple[str, ...] = context.params.get("stacks") or (() if stack is None else (stack,))
    names = {team.name for plan in _plans(stacks) for team in plan.teams}
    return sorted(name for name in names if name.startswith(incomplete))


def complete_rules(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the ids of rules with this prefix, in any case."""
    from hpkit.checks import RULES

    return [rule.id for rule in RULES if rule.id.startswith(incomplete.upper())]


def _plans(stacks: tuple[str, ...]) -> Iterator["Plan"]:
    from hpkit.errors import HpkitError
    from hpkit.project import select

    try:
        for loaded in select((), stacks):
            yield from loaded.plans.values()
    except HpkitError:
        # A stack that does not exist has no names; the command itself reports this.
        return

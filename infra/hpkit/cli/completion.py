"""What a shell may complete: names that the project's files hold. Loads nothing until a shell asks."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from hpkit.plan.model import Plan

__all__ = ["complete_groups", "complete_rules", "complete_stacks", "complete_teams", "stacks_option"]

Command = TypeVar("Command", bound=Callable[..., None])


def complete_stacks(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the stacks of the project that begin so, of files with errors too."""
    from hpkit.project import environments_in, load, organization_files

    names = {
        f"{file.stem}-{environment}"
        for file in organization_files()
        for environment in environments_in(load(file).document)
    }
    return sorted(name for name in names if name.startswith(incomplete))


def stacks_option(which: str = "Only this stack") -> Callable[[Command], Command]:
    """Return the option that narrows a command to stacks, as the parameter `stacks`."""
    return click.option(
        "--stack",
        "stacks",
        multiple=True,
        metavar="S",
        shell_complete=complete_stacks,
        help=f"{which}; may be repeated.",
    )


def complete_teams(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the teams that begin so: of --stack, where it stands before, else of all files that can be read."""
    names = {team.name for plan in _plans(context.params.get("stack")) for team in plan.teams}
    return sorted(name for name in names if name.startswith(incomplete))


def complete_groups(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the instance groups that begin so, of the same files."""
    names = {group.spec.name for plan in _plans(context.params.get("stack")) for group in plan.all_groups}
    return sorted(name for name in names if name.startswith(incomplete))


def complete_rules(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the ids of rules that begin so, in any case."""
    from hpkit.checks import RULES

    return [rule.id for rule in RULES if rule.id.startswith(incomplete.upper())]


def _plans(stack: str | None) -> Iterator["Plan"]:
    from hpkit.errors import HpkitError
    from hpkit.project import select

    try:
        for loaded in select((), () if stack is None else (stack,)):
            yield from loaded.plans.values()
    except HpkitError:
        # A stack that is not there has no names; the command itself says so.
        return

"""The instances of a repository, and the ones that a command without a name can use."""

from dataclasses import dataclass
from pathlib import Path

from hpkit.errors import SelectionError, ToolError
from hpkit_local.supervisor.instance import Instance, State
from hpkit_local.supervisor.stacks import StackThere, stacks_up

__all__ = ["DEFAULT", "Overview", "candidates", "instances", "overviews", "the_only"]

DEFAULT = "default"


@dataclass(frozen=True)
class Overview:
    """An instance's state: `problem` is why its record can't be read; state is None if it doesn't run."""

    instance: Instance
    state: State | None
    stacks: list[StackThere]
    problem: str = ""

    @property
    def may_run(self) -> bool:
        """Return whether it runs, or that isn't known."""
        return self.state is not None or bool(self.problem)


def instances(root: Path) -> list[Instance]:
    """Return all instances of the repository, by name."""
    folders = sorted(each for each in (root / ".local").glob("*") if each.is_dir() and Instance.fits(each.name))
    return [Instance.named(each.name, root=root) for each in folders]


def overviews(root: Path) -> list[Overview]:
    """Return the state of each instance in the repository."""
    return [_overview(each) for each in instances(root)]


def candidates(root: Path) -> list[Overview]:
    """Return the instances that a command without --name could use: those that run, else all."""
    found = overviews(root)
    return [each for each in found if each.may_run] or found


def the_only(root: Path, *, command: str) -> Instance:
    """Return the only running instance, else the only existing one, else `default`, which doesn't exist yet.

    Raises SelectionError with the commands to choose from when several fit.
    """
    fitting = candidates(root)
    if not fitting:
        return Instance.named(DEFAULT, root=root)
    if len(fitting) == 1:
        return fitting[0].instance
    lines = [_line(command, each) for each in fitting]
    what = "instances run here" if fitting[0].may_run else "instances exist, but none is running"
    raise SelectionError("\n  ".join([f"{len(lines)} {what}; choose one:", *lines]))


def _line(command: str, overview: Overview) -> str:
    stacks = ", ".join(each.name for each in overview.stacks)
    return f"{command} --name {overview.instance.name}    # {f'stack {stacks}' if stacks else 'no stack'}"


def _overview(instance: Instance) -> Overview:
    try:
        return Overview(instance, instance.running(), stacks_up(instance))
    except ToolError as error:
        return Overview(instance, None, stacks_up(instance), problem=str(error))

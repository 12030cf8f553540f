"""The instances of a repository, and which of them a command means that names none."""

from dataclasses import dataclass
from pathlib import Path

from hpkit.errors import SelectionError, ToolError
from hpkit_local.supervisor.instance import Instance, State
from hpkit_local.supervisor.stacks import StackThere, stacks_up

__all__ = ["DEFAULT", "Overview", "candidates", "instances", "overviews", "the_only"]

DEFAULT = "default"


@dataclass(frozen=True)
class Overview:
    """An instance as it is: `problem` says why its record cannot be read; state is None when it does not run."""

    instance: Instance
    state: State | None
    stacks: list[StackThere]
    problem: str = ""

    @property
    def may_run(self) -> bool:
        """Whether it runs, or nobody can say."""
        return self.state is not None or bool(self.problem)


def instances(root: Path) -> list[Instance]:
    """Return all instances of the repository, by name."""
    folders = sorted(each for each in (root / ".local").glob("*") if each.is_dir() and Instance.fits(each.name))
    return [Instance.named(each.name, root=root) for each in folders]


def overviews(root: Path) -> list[Overview]:
    """Return what each instance of the repository is at."""
    return [_overview(each) for each in instances(root)]


def candidates(root: Path) -> list[Overview]:
    """Return the instances that a command without --name could mean: those that run, else all."""
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

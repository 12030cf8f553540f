"""What each example has ever registered, by URN: a name that changes in the program would be another resource."""

from hpkit.errors import ToolError
from hpkit.program.recording import record
from hpkit.project import load_stack, project_root

__all__ = ["FOLDER", "registered", "urn_files"]

FOLDER = "tests/program/urns"


def registered(stack: str) -> set[str]:
    """Return the URNs that the program registers for a stack of the project."""
    (plan,) = load_stack(stack).plans.values()
    return set(record(plan).resources)


def _text(stack: str) -> str:
    """Return the file of one stack: what it registers, and what it registered before.

    A line goes by hand alone: what it names is in somebody's state, and its resource would be deleted there.
    """
    file = project_root() / FOLDER / f"{stack}.txt"
    before = set(file.read_text(encoding="utf-8").split()) if file.is_file() else set()
    return "".join(f"{urn}\n" for urn in sorted(before | registered(stack)))


def urn_files() -> dict[str, str]:
    """Return file → text of all example stacks."""
    stacks = sorted(file.stem.removeprefix("Pulumi.") for file in (project_root() / "stacks").glob("Pulumi.*.yaml"))
    if not stacks:
        raise ToolError("there are no example stacks: no file stacks/Pulumi.*.yaml")
    return {f"{FOLDER}/{stack}.txt": _text(stack) for stack in stacks}

"""The example organizations, by name: stacks/ also contains users' organizations."""

from pathlib import Path

from hpkit.project import project_root, stack_names
from hpkit.scaffold import EXAMPLES

__all__ = ["EXAMPLES", "example_files", "example_stacks"]


def example_files() -> list[Path]:
    """Return the organization files of the examples."""
    return [project_root() / "stacks" / f"{name}.yaml" for name in EXAMPLES]


def example_stacks() -> list[str]:
    """Return the names of the example stacks."""
    return [name for name in stack_names() if name.rpartition("-")[0] in EXAMPLES]

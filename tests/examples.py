"""A project with only the example organizations, regardless of other organizations in stacks/."""

import shutil
from pathlib import Path

from generate.examples import EXAMPLES

__all__ = ["ROOT", "copy_examples", "copy_project"]

ROOT = Path(__file__).parent.parent
_SHARED = ("scenarios", "schema.json")


def copy_examples(folder):
    """Copy stacks/ into a project's folder, without the files of other organizations."""

    def others(source, names):
        if Path(source) != ROOT / "stacks":
            return []
        return [name for name in names if name not in _SHARED and _organization(name) not in EXAMPLES]

    shutil.copytree(ROOT / "stacks", folder / "stacks", ignore=others)


def copy_project(folder):
    """Turn a folder into a project with the examples, and return it."""
    shutil.copy(ROOT / "Pulumi.yaml", folder)
    copy_examples(folder)
    return folder


def _organization(name):
    """Return the organization that a file in stacks/ belongs to."""
    return name.removeprefix("Pulumi.").partition(".")[0].partition("-")[0]

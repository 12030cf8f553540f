"""A new organization in stacks/ doesn't affect tests, because tests read the examples by name."""

import re

import pytest

from generate.examples import example_files, example_stacks
from hpkit.project import organization_files
from tests.examples import ROOT, copy_project

_LISTED = re.compile(
    r"""((ROOT|parents\[2\]|project_root\(\)) / "stacks"\)|STACKS)\.(r?glob|iterdir)"""
    r"""|(=|",) organization_files\(\)|copytree\((ROOT|STACKS)"""
)


def test_a_project_of_examples_has_no_other_organization(tmp_path):
    project = copy_project(tmp_path)
    assert [file.stem for file in organization_files(project)] == [file.stem for file in example_files()]
    assert {file.name.split(".")[1] for file in (project / "stacks").glob("Pulumi.*")} == set(example_stacks())


@pytest.mark.parametrize("folder", ["tests", "generate"])
def test_nothing_lists_the_files_in_stacks(folder):
    listing = [
        str(file.relative_to(ROOT))
        for file in (ROOT / folder).rglob("*.py")
        if file != ROOT / "tests" / "examples.py" and _LISTED.search(file.read_text(encoding="utf-8"))
    ]
    assert listing == []

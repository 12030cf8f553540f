"""The page of what is defended: its tests are there, none is left out, and its figures are right."""

import ast
import json
import re
from pathlib import Path

import pytest

from hpkit.components.admission import policies_of
from hpkit.generate.team_rights import ATTACKS, PREFIX
from hpkit.iam.account import AwsAccount
from hpkit.iam.deployer import bystander_policies
from hpkit.project import load_stack
from tests.security.test_evasions import ADDED, CHANGED, FILES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
NAMED = set(re.findall(r"`(tests/[\w/]+\.py::\w+)`", PAGE))


def functions_in(file):
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {
        f"{file.relative_to(ROOT).as_posix()}::{node.name}"
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def test_every_test_that_the_page_names_is_there():
    files = {ROOT / name.partition("::")[0] for name in NAMED}
    assert NAMED
    assert NAMED - {name for file in files if file.exists() for name in functions_in(file)} == set()


def test_every_test_of_the_suite_is_on_this_page_or_that_of_the_teams_rights():
    suite = {
        name
        for file in Path(__file__).parent.glob("test_*.py")
        if file != Path(__file__)
        for name in functions_in(file)
    }
    assert {name for name in suite - NAMED if not name.partition("::")[2].startswith(PREFIX)} == set()


@pytest.mark.parametrize(
    ("what", "count"),
    [
        ("[ways around", len(CHANGED) + len(ADDED) + len(FILES)),
        ("things that a member wants", len({test for tests in ATTACKS.values() for test in tests})),
        ("admission policies", len(policies_of(()))),
    ],
)
def test_a_figure_of_the_page_is_that_of_the_suite(what, count):
    ((said,),) = [re.findall(r"\| (\d+) \|$", line) for line in PAGE.splitlines() if line.startswith(f"| {what}")]
    assert int(said) == count


def test_the_denial_on_the_page_is_the_one_that_the_command_prints():
    (text,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    (plan,) = load_stack("handson-dev").plans.values()
    (policy,) = bystander_policies(plan, AwsAccount("aws", plan.spec.region, "123456789012"))
    assert json.loads(text) == policy.document

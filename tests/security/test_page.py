"""The table of trust: each row has an existing enforcement and test, and every security test is listed."""

import ast
import itertools
import re
from pathlib import Path

from generate.team_rights import PREFIX
from hpkit.program.components.admission import policies_of
from hpkit.program.components.admission_files import policies_of_users

ROOT = Path(__file__).parents[2]
HEAD = "| who | may do what | enforced by | tested by |"
TRUST = Path(__file__).with_name("trust.md").read_text(encoding="utf-8")
TABLE = TRUST.partition(f"{HEAD}\n|---|---|---|---|\n")[2].partition("\n\n")[0].splitlines()
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in TABLE]
TEST = r"`(tests/[\w/]+\.py::\w+)`"
NAMED = {name for row in ROWS for name in re.findall(TEST, row[-1])}


def functions_in(file):
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {
        f"{file.relative_to(ROOT).as_posix()}::{node.name}"
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def test_every_test_that_the_table_names_exists():
    files = {ROOT / name.partition("::")[0] for name in NAMED}
    assert NAMED
    assert NAMED - {name for file in files if file.exists() for name in functions_in(file)} == set()


def test_every_test_of_the_suite_is_in_the_table_or_on_the_page_of_team_rights():
    suite = {
        name
        for file in Path(__file__).parent.glob("test_*.py")
        if file != Path(__file__)
        for name in functions_in(file)
    }
    assert {name for name in suite - NAMED if not name.partition("::")[2].startswith(PREFIX)} == set()


def test_every_row_of_trust_is_enforced_and_tested_or_states_that_nothing_enforces_it():
    assert TRUST.count(HEAD) == 1
    assert ROWS
    for row in ROWS:
        assert len(row) == 4, row
        assert all(row), row
        _, _, enforced, tests = row
        assert re.sub(rf"{TEST}(, )?", "", tests) == ("" if tests != "–" else "–"), row
        assert tests != "–" or enforced == "–", f"nothing tests what enforces this: {row}"


def test_rows_of_one_actor_are_together():
    actors = [row[0] for row in ROWS]
    assert len(list(itertools.groupby(actors))) == len(set(actors))


def test_every_admission_policy_that_the_table_names_is_one_of_the_kit():
    policies = {policy.name for policy in (*policies_of(()), *policies_of_users(()))}
    assert set(re.findall(r"`(hpkit-(?:files|member|team)-[\w-]+)`", TRUST)) <= policies

"""Each rule of AWS that plan, program, plugin and preflight depend on: at night, its test fails where it is broken."""

import os
import shutil
import subprocess
import sys

import pytest

from hpkit.generate.refusals import depended_rules
from hpkit.project import project_root

ROOT = project_root()
RULES = depended_rules()
_TESTS = sorted({rule["test"] for rule in RULES})


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["rule"])
def test_what_breaks_a_rule_is_one_text_of_one_file(rule):
    broken = rule["broken"]
    assert (ROOT / broken["file"]).read_text(encoding="utf-8").count(broken["text"]) == 1
    assert broken["text"] != broken["by"]


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    folder = tmp_path_factory.mktemp("broken") / "repository"
    shutil.copytree(ROOT, folder, ignore=lambda _, names: [name for name in names if name.startswith((".", "__py"))])
    return folder


def run(folder, tests):
    """Return pytest's exit code, 0 for tests that all pass and 1 for one that fails, and what it says."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "0", "-q", "--tb", "line", *tests],
        cwd=folder,
        # Files change within a second, and keep their size: what is compiled of them would be taken for current.
        env={**os.environ, "PYTHONPATH": f"{folder / 'infra'}{os.pathsep}{folder}", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_the_tests_pass_where_nothing_is_broken(copied):
    assert run(copied, _TESTS)[0] == 0


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["rule"])
def test_a_test_fails_where_its_rule_is_broken(rule, copied):
    broken = rule["broken"]
    file = copied / broken["file"]
    before = file.read_text(encoding="utf-8")
    file.write_text(before.replace(broken["text"], broken["by"]), encoding="utf-8")
    try:
        code, said = run(copied, [rule["test"]])
    finally:
        file.write_text(before, encoding="utf-8")
    assert code == 1, said
    # The test itself, and not a module that no longer loads.
    assert "error" not in said.splitlines()[-1], said

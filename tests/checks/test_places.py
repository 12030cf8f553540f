"""Each place of the validator that finds something has a case of tests/stacks/rules that fails without it."""

import json
import subprocess
import sys

import pytest

from hpkit.project import project_root

# What depends on files beside the organization's: tests/config/test_chart.py, a chart that cannot be read.
_BY_FILES = ["hpkit/config/chart.py:_problems_of 1", "hpkit/config/chart.py:_problems_of 4"]


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_without_any_place_or_rule_some_case_finds_something_else():
    done = subprocess.run(
        [sys.executable, "-m", "tests.checks.places"], cwd=project_root(), capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    assert found.pop("places") > 150
    assert found == {"unreached": _BY_FILES, "unneeded": [], "rules": []}

"""Every rule has a fixture that breaks it and one that does not; drop in a file, get a test."""

from dataclasses import replace
from pathlib import Path

import pytest

from hpkit.checks import RULES, Finding, check
from hpkit.config import parse, read_text
from hpkit.config.chart import chart_problems
from tests.builders import TODAY

ROOT = Path(__file__).parent.parent.parent
FOLDER = ROOT / "tests" / "stacks"
HAPPY = sorted(FOLDER.glob("*.happy.*.yaml"))
ERROR = sorted(FOLDER.glob("*.error.*.yaml"))


def findings_in(file: Path) -> list[Finding]:
    document = read_text(file.read_bytes())
    parsed = parse(document)
    if parsed.organization is not None:
        parsed = replace(parsed, problems=(*parsed.problems, *chart_problems(ROOT, parsed.organization)))
    return check(document, parsed, file=file.name, today=TODAY)


def rule_of(file: Path) -> str:
    return file.name.split(".")[2]


@pytest.mark.parametrize("file", HAPPY, ids=lambda file: file.name)
def test_a_happy_fixture_has_no_finding(file):
    assert findings_in(file) == []


@pytest.mark.parametrize("file", ERROR, ids=lambda file: file.name)
def test_an_error_fixture_breaks_its_rule(file):
    found = findings_in(file)
    hits = [finding for finding in found if finding.rule == rule_of(file)]
    assert hits, [finding.rule for finding in found]
    lines = file.read_text().splitlines()
    for finding in hits:
        assert 1 <= finding.line <= len(lines)
        assert finding.message
        assert finding.fix


@pytest.mark.parametrize("rule", [rule.id for rule in RULES])
def test_every_rule_has_a_happy_and_an_error_fixture(rule):
    assert any(rule_of(file) == rule for file in ERROR), f"no {rule} error fixture"
    assert any(file.name.split(".")[2] == rule for file in HAPPY), f"no {rule} happy fixture"


def test_the_severity_of_a_finding_is_its_rules_unless_the_row_says_future():
    severities = {rule.id: rule.severity for rule in RULES}
    for file in ERROR:
        for finding in findings_in(file):
            assert finding.severity == severities[finding.rule], (file.name, finding)

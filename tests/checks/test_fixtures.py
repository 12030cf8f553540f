"""Every rule has failing and passing cases; each case file becomes a test."""

import pytest

from generate.cases import case_file, cases
from hpkit.checks import RULES
from tests.cli.test_validate import ROOT

FOLDER = ROOT / "tests" / "stacks" / "rules"
CASES = [case for file in sorted(FOLDER.glob("*.yaml")) for case in cases(file.stem)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}-{case.name}")
def test_a_case_has_the_findings_that_it_lists_and_no_other(case):
    findings = case.findings()
    shown = [
        {
            "rule": finding.rule,
            "severity": finding.severity,
            "path": finding.path,
            "message": finding.message,
            "fix": finding.fix,
        }
        for finding in findings
    ]
    assert shown == [expected.model_dump(exclude={"at"}) for expected in case.expected]
    for finding, expected in zip(findings, case.expected, strict=True):
        texts = case.files | case.stack_files | case.beside | {case.file: case.text}
        lines = texts.get(finding.file, case.text).splitlines()
        assert lines[finding.line - 1][finding.column - 1 :].startswith(expected.at)


@pytest.mark.parametrize("rule", [rule.id for rule in RULES])
def test_every_rule_has_a_case_that_fails_for_it_and_one_that_passes(rule):
    assert (ROOT / case_file(rule)).is_file()
    own = [case for case in CASES if case.rule == rule]
    assert any(case.passes for case in own)
    for case in own:
        assert case.passes or rule in {expected.rule for expected in case.expected}, f"{case.name} is of another rule"


def test_a_finding_is_as_severe_as_its_rule_or_a_warning_where_something_is_not_known():
    severities = {rule.id: rule.severity for rule in RULES}
    for case in CASES:
        for expected in case.expected:
            assert expected.severity in (severities[expected.rule], "warning"), (case.rule, case.name, expected)

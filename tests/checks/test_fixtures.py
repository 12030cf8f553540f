"""Each rule's failing and passing cases; and an unknown figure is never counted as zero."""

import pytest

from generate.cases import case_file, cases
from hpkit.checks import RULES
from tests.builders import findings, group, organization, team
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


G7 = "ml.g7.2xlarge"  # The catalog has no values for this type.


def said(data):
    return {(finding.rule, finding.severity): finding.message for finding in findings(data)}


def test_a_fraction_of_a_type_without_figures_is_not_compared_and_says_so():
    data = organization(
        teams=[team("ada")],
        groups=[group("gpu", G7, 4), group("system", "ml.m5.4xlarge", 1)],
        allocations={"ada": [{"instanceType": G7, "accelerators": 400}]},
    )
    assert "the catalog lacks values for ml.g7.2xlarge" in said(data)["CAP004", "warning"]


def test_whole_instances_of_such_a_type_are_compared_all_the_same():
    data = organization(
        teams=[team("ada")],
        groups=[group("gpu", G7, 4), group("system", "ml.m5.4xlarge", 1)],
        allocations={"ada": [{"instanceType": G7, "count": 5}]},
    )
    assert ("CAP001", "error") in said(data)


def test_a_limit_in_a_unit_that_is_not_known_bounds_nothing_and_says_so():
    data = organization(
        teams=[team("ada")],
        groups=[group("burst", G7, 0), group("system", "ml.m5.4xlarge", 1)],
        allocations={"ada": [{"instanceType": G7, "count": 5, "elastic": True}]},
        environment={
            "autoscaling": {
                "nodeClasses": [{"name": "burst", "instanceGroups": ["burst"]}],
                "nodePools": [{"name": "pool", "nodeClass": "burst", "limits": {"nvidia.com/gpu": 8}}],
            }
        },
    )
    assert "can't be checked: no limit of pool (nvidia.com/gpu 8)" in said(data)["CAP002", "warning"]
    pools = data["environments"]["dev"]["autoscaling"]["nodePools"]
    pools[0]["limits"] = {"nodes": 4}
    assert ("CAP002", "error") in said(data)


def test_a_subnet_that_may_be_too_small_for_nodes_of_unknown_need_says_so():
    groups = [group("gpu", G7, 10), group("system", "ml.m5.4xlarge", 1)]
    data = organization(groups=groups)
    assert ("CLU002", "warning") not in said(data)
    data["environments"]["dev"]["network"]["zones"][0]["nodeCidr"] = "10.1.0.0/24"
    assert "doesn't know how many addresses 10 × ml.g7.2xlarge use" in said(data)["CLU002", "warning"]


def test_pods_of_unknown_number_are_not_taken_for_none():
    data = organization(groups=[group("gpu", G7, 4)])
    assert "doesn't know how many pods ml.g7.2xlarge can run" in said(data)["CLU004", "warning"]

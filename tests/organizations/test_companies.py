"""The organizations of forty companies are read, planned, recorded, and checked by the policy pack without settings.

The nightly run tests all of them, other runs a sixth.
"""

import pytest

from hpkit.checks import check
from hpkit.config import parse, read_text
from hpkit.plan.derive import derive
from hpkit.program.recording import record
from hpkit_policies.recorded import parse_recording, run_policies
from tests.builders import TODAY
from tests.organizations.companies import companies

COMPANIES = companies()
STACKS = [(name, each) for name, company in COMPANIES.items() for each in company.organization.environments]


def test_companies_differ_in_shape():
    organizations = [company.organization for company in COMPANIES.values()]
    assert len(organizations) == 40
    assert {len(each.environments) for each in organizations} >= {1, 2, 5}
    assert max(len(each.teams) for each in organizations) == 60


@pytest.mark.parametrize("name", COMPANIES)
def test_the_validator_reports_what_the_company_expects(name):
    company = COMPANIES[name]
    findings = check(parse(read_text(company.text.encode())), file=f"{name}.yaml", today=TODAY)
    assert [f"{each.rule} {each.path}" for each in findings] == list(company.warnings), findings
    assert {each.severity for each in findings} <= {"warning"}


@pytest.mark.parametrize(
    ("name", "environment"),
    [pytest.param(*stack, marks=() if index % 6 == 0 else pytest.mark.nightly) for index, stack in enumerate(STACKS)],
)
def test_what_an_environment_registers_passes_the_pack(name, environment):
    company = COMPANIES[name]
    plan = derive(company.organization, environment)
    resources = parse_recording(record(plan).resources.values())
    assert "hyperpod:index:Cluster" in {each.type for each in resources}
    for policy_settings in ({}, company.policy):
        reported = run_policies(resources, policy_settings, TODAY)
        assert [each for each in reported if each.level != "advisory" or each.message.startswith("not checked")] == []

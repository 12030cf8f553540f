"""`hpkit validate --policies`: the pack applied to the resources that the program would register, without an engine."""

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from hpkit.cli.organization.validate import command

ROOT = Path(__file__).parents[2]


@pytest.fixture
def project(project, monkeypatch):
    for name in ("handson.yaml", "Pulumi.handson-dev.yaml"):
        shutil.copy(ROOT / "stacks" / name, project / "stacks")
    monkeypatch.chdir(project)
    return project


def validate(*arguments):
    return CliRunner().invoke(command, [*arguments, "--policies"])


def test_advice_is_a_warning_and_what_is_mandatory_an_error(project):
    calm = validate("--format", "json")
    assert calm.exit_code == 0
    found = json.loads(calm.stdout)["findings"]
    (pinned,) = [each for each in found if each["rule"] == "eks-addons-pinned"]
    assert (pinned["severity"], pinned["path"]) == ("warning", "environments.dev")
    assert pinned["message"].startswith(
        "amazon-cloudwatch-observability, coredns, eks-pod-identity-agent, kube-proxy, vpc-cni have no version in "
        "`addons`, so"
    )
    assert pinned["fix"].endswith("`waivers` of eks-addons-pinned in stacks/handson.policy.json.")
    lines = (project / "stacks" / "handson.yaml").read_text(encoding="utf-8").splitlines()
    assert lines[pinned["line"] - 2] == "  dev:", "where the environment begins"
    (project / "stacks" / "handson.policy.json").write_text('{"eks-addons-pinned": "mandatory"}')
    strict = validate()
    assert strict.exit_code == 1
    assert "error eks-addons-pinned environments.dev" in strict.stdout
    said = CliRunner().invoke(command, []).stderr
    assert said == "not applied: stacks/handson.policy.json; to apply: hpkit validate --policies\n"


def test_advice_for_several_environments_is_listed_once(project):
    file = project / "stacks" / "handson.yaml"
    data = yaml.safe_load(file.read_text())
    dev = data["environments"]["dev"]
    data["environments"]["prod"] = {**dev, "cluster": {**dev["cluster"], "name": "prod"}}
    file.write_text(yaml.safe_dump(data))
    found = json.loads(validate("stacks/handson.yaml", "--format", "json").stdout)["findings"]
    (pinned,) = [each for each in found if each["rule"] == "eks-addons-pinned"]
    assert pinned["path"] == "environments.dev"
    assert pinned["message"].endswith("; the same in environments.prod")


def test_trust_in_a_role_of_a_team_is_reported_where_the_file_states_it(project):
    file = project / "stacks" / "handson.yaml"
    data = yaml.safe_load(file.read_text())
    forge = {"provider": "token.actions.githubusercontent.com", "subjects": ["repo:acme/training:*"]}
    data["teams"][1]["memberRole"] = {"oidc": forge}
    dev = data["environments"]["dev"]
    data["environments"]["prod"] = {**dev, "cluster": {**dev["cluster"], "name": "prod"}}
    file.write_text(yaml.safe_dump(data))
    found = json.loads(validate("stacks/handson.yaml", "--format", "json").stdout)["findings"]
    (trusts,) = [each for each in found if each["rule"] == "iam-trust-limited"]
    assert trusts["path"] == "teams[smith].memberRole"
    assert trusts["message"] == "`team-smith` trusts repo:acme/training:*, which any branch can claim"


def test_placeholders_are_reported_until_they_are_replaced(project):
    def found():
        output = validate("stacks/handson.yaml", "--format", "json")
        assert output.exit_code == 0, output.stdout
        return [
            each for each in json.loads(output.stdout)["findings"] if each["rule"] in ("ACC004", "ACC011", "EKS010")
        ]

    file = project / "stacks" / "handson.yaml"
    (account,) = found()
    assert (account["path"], account["severity"]) == ("environments.dev.account", "warning")
    assert account["message"].startswith(
        "123456789012 is a placeholder of the examples, and so are the values in lines "
    )
    for other in ("444455556666", "210987654321"):  # another account of AWS's documentation, and the reader's own
        file.write_text(re.sub('account: "[0-9]*"', f'account: "{other}"', file.read_text()))
        assert ("ACC004" in {each["rule"] for each in found()}) is (other == "444455556666")
    assert {each["rule"] for each in found()} == {"ACC011", "EKS010"}
    file.write_text(file.read_text().replace("123456789012", "210987654321").replace("203.0.113.0", "52.10.20.0"))
    assert not found()
    mine = file.read_text().replace(
        "    region:", "    observability: {alerts: {emails: [a@example.com]}}\n    region:"
    )
    file.write_text(mine)
    assert [each["message"] for each in found()] == ["a@example.com is a placeholder of the examples"]


@pytest.mark.parametrize("form", ["github", "sarif"])
def test_other_formats_carry_policies_as_they_carry_rules(project, form):
    output = validate("--format", form)
    assert output.exit_code == 0, output.exception
    if form == "github":
        assert "title=eks-addons-pinned environments.dev::" in output.stdout
    else:
        (run,) = json.loads(output.stdout)["runs"]
        rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
        assert all(rules[each["ruleIndex"]] == each["ruleId"] for each in run["results"])


def test_settings_that_are_wrong_are_reported_and_nothing_is_checked(project):
    (project / "stacks" / "handson.policy.json").write_text('{"eks-addon-pinned": "mandatory"}')
    said = validate()
    assert said.exit_code == 1
    assert "did you mean eks-addons-pinned?" in str(said.exception)


def test_policies_wait_until_the_file_has_no_error(project):
    file = project / "stacks" / "handson.yaml"
    file.write_text(file.read_text().replace("instanceCount: 4", "instanceCount: 1"))
    output = validate()
    assert output.exit_code == 1
    assert "policies are skipped until these errors are fixed" in output.stderr
    assert "eks-addons-pinned" not in output.stdout

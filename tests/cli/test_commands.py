"""The list of commands, `hpkit plan`, `quota` and `catalog`."""

import datetime
import json
import re
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from hpkit.cli import commands
from hpkit.cli.common.documents import documents_of
from hpkit.cli.organization.plan import command as plan_command
from hpkit.cli.organization.rules import examples
from tests.builders import group, organization, team, text_of
from tests.cli.invoke import hpkit
from tests.cli.test_validate import ROOT
from tests.cli.tries import WITHOUT
from tests.examples import copy_project


def test_help_lists_every_command_without_importing_them():
    result = hpkit("--help", cwd=ROOT)
    for name in ("validate", "plan", "quota", "catalog", "aws", "local"):
        assert f"\n  {name} " in result.stdout


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["valdate"], "No such command 'valdate'. Did you mean `validate`?"),
        (["rules"], "Did you mean `hpkit catalog rules`?"),
        (["job", "status"], "Did you mean `hpkit cluster status`?"),
        (["catalog", "types"], "No such command 'types'. Run `hpkit catalog` for a list."),
        (["docs"], f"Documentation: {ROOT / 'docs' / 'index.md'}"),
    ],
)
def test_an_unknown_command_has_a_hint(words, hint):
    result = hpkit(*words, cwd=ROOT)
    assert result.returncode == 2
    assert hint in " ".join(result.stderr.split())


# The document of commands that act: it isn't written to a file.
PRINTED = ("hpkit.cli.common.documents:Outcome",)
# Deleting requires a named stack, and a verdict covers all stacks.
NO_VARIABLE = ("aws destroy", "review", "validate")


def test_an_option_means_the_same_in_every_command():
    for name, command in commands():
        options = {opt: option for option in command.params if isinstance(option, click.Option) for opt in option.opts}
        if "--format" in options:
            assert options["--format"].type.choices[0] == options["--format"].default == "text", name
            assert "--output" in options or documents_of(command) == PRINTED, name
        assert not {"--out", "--file", "--save"} & set(options), name
        assert "--output" in options or not WITHOUT.get(name, "").startswith("prints"), name
        if "--output" in options:
            assert options["--output"].opts == ["-o", "--output"], name
            assert options["--output"].metavar == "FILE", name
        if "--stack" in options:
            assert options["--stack"].opts == ["-s", "--stack"], name
            assert ("HPKIT_STACK" in options["--stack"].help) is (name not in NO_VARIABLE), name


@pytest.mark.parametrize("command", ["plan", "quota"])
def test_the_variable_of_a_shell_names_the_stack_and_is_said(command):
    result = hpkit(command, "--format", "json", cwd=ROOT, HPKIT_STACK="handson-dev")
    assert (result.returncode, result.stderr) == (0, "stack handson-dev, from HPKIT_STACK\n")


def test_the_variable_of_a_shell_hides_no_error_of_another_stack(tmp_path):
    copy_project(tmp_path)
    (tmp_path / "stacks" / "startup.yaml").write_text("organization: 1\n")
    answer = hpkit("validate", cwd=tmp_path, HPKIT_STACK="handson-dev")
    assert (answer.returncode, "handson-dev" in answer.stderr) == (1, False)
    assert "stacks/startup.yaml:1:15: error CFG002" in answer.stdout


def test_what_a_command_prints_goes_to_a_file(tmp_path):
    printed = hpkit("quota", "--stack", "handson-dev", "--format", "json", cwd=ROOT)
    written = hpkit("quota", "--stack", "handson-dev", "--format", "json", "-o", tmp_path / "q.json", cwd=ROOT)
    assert (written.stdout, written.stderr) == ("", f"wrote {tmp_path / 'q.json'}\n")
    assert (tmp_path / "q.json").read_text() == printed.stdout


def test_the_findings_of_a_file_with_errors_are_written_and_an_error_of_the_command_writes_nothing(tmp_path):
    (tmp_path / "bad.yaml").write_text("organization: 1\n")
    found = hpkit("validate", "bad.yaml", "--format", "sarif", "-o", "found.sarif", cwd=tmp_path)
    assert (found.returncode, "CFG002" in (tmp_path / "found.sarif").read_text()) == (1, True)
    assert hpkit("validate", "--stack", "none-dev", "-o", "none.txt", cwd=tmp_path).returncode == 2
    assert not (tmp_path / "none.txt").exists()


def test_quota_says_how_to_get_a_price_that_is_unknown(tmp_path):
    copy_project(tmp_path)
    file = tmp_path / "stacks" / "startup.yaml"
    file.write_text(file.read_text().replace("us-west-2", "eu-central-1"))
    said = hpkit("quota", "--stack", "startup-dev", cwd=tmp_path).stdout
    assert "unknown: hpkit has no price nearby; `hpkit catalog refresh` reads" in said


def test_quota_shows_capacity_and_every_teams_part():
    (stack,) = json.loads(hpkit("quota", "--stack", "handson-dev", "--format", "json", cwd=ROOT).stdout)["items"]
    gpu = next(row for row in stack["types"] if row["instanceType"] == "ml.g5.12xlarge")
    assert (gpu["permanent"], gpu["maximum"], gpu["unallocated"]) == (4, 4, 0)
    costs = [(share.pop("monthlyUsd"), share.pop("pricesOf")) for share in gpu["teams"]]
    assert costs == [(15527, "us-east-1"), (5176, "us-east-1")], "no price of it in us-west-2 is known"
    assert gpu["teams"] == [
        {"team": "john", "quota": 3, "elastic": 0, "borrowLimit": 1.5, "borrowable": 1, "lendable": 3},
        {"team": "smith", "quota": 1, "elastic": 0, "borrowLimit": 1, "borrowable": 1, "lendable": 1},
    ]


def test_quota_of_a_team_names_its_lenders_its_borrowers_and_the_places_of_its_settings():
    done = hpkit("quota", "--team", "john", "--stack", "handson-dev", cwd=ROOT)
    lines = " ".join(done.stdout.split())
    assert "borrows 1 at most (strategy LendAndBorrow, limit 1.5); others lend: smith 1" in lines
    assert "lends 3 at most, to: smith" in lines
    assert "fair-share weights: john 0, smith 100" in lines
    assert max(map(len, done.stdout.splitlines())) <= 80
    told = hpkit("quota", "--team", "john", "--stack", "handson-dev", "--format", "json", cwd=ROOT)
    (stack,) = json.loads(told.stdout)["items"]
    assert (stack["team"]["queue"], stack["team"]["fairShareWeight"]) == ("hyperpod-ns-john-localqueue", 0)
    assert [each.partition(": ")[0] for each in stack["team"]["setIn"]] == [
        "teams[john]",
        "environments.dev.governance.allocations.john",
    ]
    assert [each["instanceType"] for each in stack["types"]] == ["ml.g5.12xlarge"]


def test_quota_of_a_team_without_an_allocation_is_refused():
    done = hpkit("quota", "--team", "jon", "--stack", "handson-dev", cwd=ROOT)
    assert done.returncode == 2
    assert "no team jon has an allocation in governance.allocations; did you mean john?" in done.stderr


def test_quota_says_what_a_teams_part_costs_where_the_price_is_known():
    (stack,) = json.loads(hpkit("quota", "--stack", "enterprise-prod", "--format", "json", cwd=ROOT).stdout)["items"]
    shares = next(row for row in stack["types"] if row["instanceType"] == "ml.p4d.24xlarge")["teams"]
    prices = {round(share["monthlyUsd"] / share["quota"], -1) for share in shares}
    assert len(prices) == 1
    assert prices != {0}


def test_quota_counts_what_karpenter_may_add_as_maximum():
    (stack,) = json.loads(hpkit("quota", "--stack", "autoscale-dev", "--format", "json", cwd=ROOT).stdout)["items"]
    gpu = next(row for row in stack["types"] if row["instanceType"] == "ml.g5.8xlarge")
    assert (gpu["permanent"], gpu["maximum"]) == (2, 18)
    assert [share["elastic"] for share in gpu["teams"]] == [0, 8]


def test_quota_and_plan_show_how_a_share_was_rounded(tmp_path):
    shares = {
        "john": [{"instanceType": "ml.g5.12xlarge", "share": "60%"}],
        "smith": [{"instanceType": "ml.m5.4xlarge", "share": "50%"}],
    }
    groups = [group("gpu", "ml.g5.12xlarge", 3), group("cpu", "ml.m5.4xlarge", 2)]
    data = organization(teams=[team("john"), team("smith")], groups=groups, allocations=shares)
    file = tmp_path / "acme.yaml"
    file.write_text(json.dumps(data))
    shown = hpkit("quota", str(file), cwd=ROOT).stdout
    assert "john: 60% of 3 is 1.8, rounded down to 1" in shown
    assert "smith: 50%" not in shown, "a share that is whole isn't rounded"
    tree = hpkit("plan", str(file), cwd=ROOT).stdout
    assert "1 instance, 60% of 3 is 1.8, rounded down to 1" in tree
    assert "1 instance, 50%" in tree


def test_quota_names_restricted_groups_apart(tmp_path):
    data = organization(groups=[group("gpu", "ml.g5.12xlarge", 4)])
    nova = {"name": "nova", "instanceType": "ml.p5.48xlarge", "instanceCount": 2, "availabilityZone": "us-west-2a"}
    nova["executionRole"] = "arn:aws:iam::123456789012:role/nova"
    data["environments"]["dev"]["cluster"]["restrictedInstanceGroups"] = [nova]
    file = tmp_path / "acme.yaml"
    file.write_text(json.dumps(data))
    (stack,) = json.loads(hpkit("quota", str(file), "--format", "json", cwd=ROOT).stdout)["items"]
    assert stack["restrictedInstanceGroups"] == [{"name": "nova", "instanceType": "ml.p5.48xlarge", "instanceCount": 2}]
    assert [each["instanceType"] for each in stack["types"]] == ["ml.g5.12xlarge"]
    shown = hpkit("quota", str(file), cwd=ROOT).stdout
    assert "nova, restricted: 2 × ml.p5.48xlarge, not counted" in shown


@pytest.mark.parametrize("command", [("quota",), ("plan", "--stack", "enterprise-prod")], ids=str)
def test_tables_and_trees_fit_80_columns(command, examples):
    text = hpkit(*command, cwd=examples).stdout
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "\x1b" not in text


def test_plan_names_only_what_the_file_leaves_to_aws(project):
    data = organization(teams=[team("ada")], allocations={"ada": [{"instanceType": "ml.g5.12xlarge", "count": 1}]})
    dev = data["environments"]["dev"]
    assert [zone["availabilityZone"] for zone in dev["network"]["zones"]] == ["us-west-2a", "us-west-2b"]
    file = project / "acme.yaml"
    file.write_bytes(text_of(data))
    shown = hpkit("plan", file, cwd=project).stdout
    assert "known at deployment" not in shown
    assert " 1 instance\n" in shown
    del dev["account"], dev["network"]["zones"][1]
    file.write_bytes(text_of(data))
    shown = hpkit("plan", file, cwd=project).stdout
    assert shown.endswith("Not in the file, so only known at deployment: the account, zone us-west-2b\n")


def test_plan_of_a_file_that_cannot_be_read_shows_why(tmp_path):
    (tmp_path / "bad.yaml").write_text("organization: [")
    result = hpkit("plan", "bad.yaml", cwd=tmp_path)
    assert result.returncode == 1
    assert "CFG005" in result.stderr


@pytest.mark.parametrize("command", ["plan", "aws deployer-policy"])
def test_errors_of_a_file_that_stop_the_program_are_named(project, command):
    data = organization()
    data["environments"]["dev"]["network"]["vpcCidr"] = "10.192.0.0/28"
    (project / "stacks" / "acme.yaml").write_bytes(text_of(data))
    result = hpkit(*command.split(), "--stack", "acme-dev", cwd=project)
    assert (result.returncode, result.stdout) == (1, "")
    assert "NET005" in result.stderr
    assert "hpkit validate --stack acme-dev" in result.stderr


def test_a_failure_of_the_program_without_an_error_of_the_file_is_a_defect(project, monkeypatch):
    def fail(*_arguments):
        raise KeyError("zone")

    (project / "stacks" / "acme.yaml").write_bytes(text_of(organization()))
    monkeypatch.setattr("hpkit.program.recording.record", fail)
    monkeypatch.chdir(project)
    error = CliRunner().invoke(plan_command).exception
    assert type(error) is KeyError, "as it is, so that Python prints the traceback"
    assert "bug in hpkit" in error.__notes__[0]


def test_rules_lists_all_and_explains_one_with_an_example():
    listed = json.loads(hpkit("catalog", "rules", "--format", "json", cwd=ROOT).stdout)["items"]
    fixed = {"CAP001", "CAP002", "CAP003", "CAP004"}
    assert {rule["id"] for rule in listed if not rule["waivable"] and rule["id"].startswith("CAP")} == fixed
    text = hpkit("catalog", "rules", "cap001", cwd=ROOT).stdout
    assert (
        "    - - {instanceType: ml.g5.12xlarge, count: 3}\n    + - {instanceType: ml.g5.12xlarge, count: 2}\n" in text
    )
    assert "ml.g5.12xlarge allocated (nlp 3, vision 2), but only 4 exist" in " ".join(text.split())


def test_rules_lists_the_kubernetes_versions_that_are_supported_today(monkeypatch):
    monkeypatch.setattr("hpkit.cli.organization.rules.today", lambda: datetime.date(2027, 12, 1))
    assert "(offered: 1.34, 1.35)" in examples()["EKS002"]["finding"]["message"]


def test_schema_writes_where_it_is_told(tmp_path):
    assert hpkit("catalog", "schema", "--output", "schema.json", cwd=tmp_path).returncode == 0
    assert json.loads((tmp_path / "schema.json").read_text())["title"] == "hpkit organization"
    result = hpkit("catalog", "schema", "--output", "no/such/folder.json", cwd=tmp_path)
    assert result.returncode == 1
    assert "no such file or directory" in result.stderr


# Modules that Python on Windows lacks: importing one would fail before the message is printed.
WINDOWS = """
import sys
sys.modules.update(dict.fromkeys(["fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty"]))
from {module} import {name}
sys.platform = "win32"
{name}(*sys.argv[1:])
"""


@pytest.mark.parametrize("entry", [("hpkit.cli", "main"), ("hpkit.program.run", "gate", "handson-dev")])
def test_windows_is_refused_with_what_to_do_instead_of_failing_on_an_import(entry, tmp_path):
    module, name, *given = entry
    words = [sys.executable, "-c", WINDOWS.format(module=module, name=name), *given]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert re.search(r"(error|RunError): hpkit runs on Linux, macOS and WSL.*wsl --install", done.stderr), done.stderr


def test_without_pattern_every_type_is_listed_in_80_columns():
    text = hpkit("catalog", "instances", cwd=ROOT).stdout
    assert "ml.p5.48xlarge" in text
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "?" in text


@pytest.mark.parametrize(("pattern", "count"), [("p5en", 1), ("ml.g5.*", 8), ("ml.p5.48xlarge", 1)])
def test_a_pattern_is_a_part_of_the_name_or_a_glob(pattern, count):
    found = json.loads(hpkit("catalog", "instances", pattern, "--format", "json", cwd=ROOT).stdout)["items"]
    assert len(found) == count


def test_unknown_is_null_in_json_and_sources_name_page_and_day():
    (row,) = json.loads(
        hpkit("catalog", "instances", "ml.g7.2xlarge", "--format", "json", "--sources", cwd=ROOT).stdout
    )["items"]
    assert row["vcpu"] is None
    assert row["sources"]["architecture"]["url"].startswith("https://")
    text = hpkit("catalog", "instances", "ml.p5.48xlarge", "--sources", cwd=ROOT).stdout
    assert "maxPods" in text
    assert "docs.aws.amazon.com" in text


def test_no_match_names_the_nearest_and_exits_1():
    result = hpkit("catalog", "instances", "ml.p5.84xlarge", cwd=ROOT)
    assert result.returncode == 1
    assert "ml.p5.48xlarge" in result.stderr

"""`hpkit validate` as a process: formats, exit codes, and invalid files."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from generate.examples import EXAMPLES, example_files
from hpkit.config.models.organization import Waiver
from hpkit.config.schema.reference import json_schema
from hpkit_policies.configuration import problems
from tests.builders import organization, team, text_of
from tests.cli import invoke

HPKIT = Path(sys.executable).parent / "hpkit"
ROOT = Path(__file__).parent.parent.parent


def hpkit(*arguments, cwd, **environment):
    words, given = [HPKIT, *map(str, arguments)], {**os.environ, **environment}
    result = subprocess.run(words, cwd=cwd, capture_output=True, text=True, env=given, timeout=300)
    said = result.stderr + result.stdout
    assert "Traceback" not in said, said
    return result


def validate(*arguments, cwd):
    """Run the command in this process, for its output."""
    return invoke.hpkit("validate", *arguments, cwd=cwd)


def write(project, name, data):
    """Write an organization file; data gets the name of its file, which identifies stacks."""
    file = project / "stacks" / name
    data = {**data, "organization": file.stem} if isinstance(data, dict) else data
    file.write_bytes(data if isinstance(data, bytes) else text_of(data))
    return file


BROKEN = organization(teams=[team("ada")], allocations={"ada": [{"instanceType": "ml.g5.12xlarge", "count": 5}]})


def test_without_arguments_all_organizations_of_the_project_are_checked(project):
    write(project, "one.yaml", organization())
    write(project, "two.yaml", BROKEN)
    (project / "stacks" / "Pulumi.one-dev.yaml").write_text("config: {}\n")
    result = hpkit("validate", cwd=project)
    assert result.returncode == 1
    assert "stacks/two.yaml" in result.stdout
    assert "CAP001" in result.stdout
    assert "waive" not in result.stdout, "CFG011 can't be waived"
    assert result.stdout.endswith("1 error, 1 warning in 2 files\n")
    with Path("/dev/full").open("w") as full:
        result = subprocess.run([HPKIT, "validate"], cwd=project, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (result.returncode, result.stderr) == (1, "error: the output can't be written: no space left on device\n")


def test_warnings_end_with_how_to_waive_them(project):
    rows = {"ada": [{"instanceType": "ml.g5.12xlarge", "count": 1}]}
    write(project, "one.yaml", organization(teams=[team("ada", members=[])], allocations=rows))
    assert "`hpkit catalog rules RULE` shows how to waive" in hpkit("validate", cwd=project).stdout


def test_the_project_is_found_from_a_folder_below_it(project):
    write(project, "one.yaml", organization())
    (project / "deep" / "er").mkdir(parents=True)
    assert validate(cwd=project / "deep" / "er").returncode == 0


def test_json_is_the_contract(project):
    write(project, "two.yaml", BROKEN)
    said = json.loads(validate("--format", "json", cwd=project).stdout)
    assert said["summary"] == {"errors": 1, "warnings": 0}
    (finding,) = said["findings"]
    assert list(finding) == ["rule", "severity", "path", "file", "line", "column", "message", "fix"]
    assert finding["path"] == "environments.dev.governance.allocations.ada[ml.g5.12xlarge]"
    line = (project / "stacks" / "two.yaml").read_text().splitlines()[finding["line"] - 1]
    assert "instanceType: ml.g5.12xlarge" in line


def test_github_annotations_escape_what_workflow_commands_read(project):
    write(project, "two.yaml", organization(teams=[team("a%,:b", members=["arn:aws:iam::123456789012:role/ada"])]))
    said = validate("--format", "github", cwd=project).stdout.splitlines()
    (line,) = (each for each in said if "GOV004" in each)
    head, _, message = line.partition("::error ")[2].partition("::")
    assert head.startswith("file=stacks/two.yaml,line=5,col=9,")
    assert "title=GOV004 teams[a%25%2C%3Ab].name" in head
    assert "a%25,:b" in message


def test_sarif_carries_rules_and_places(project):
    write(project, "two.yaml", BROKEN)
    log = json.loads(validate("--format", "sarif", cwd=project).stdout)
    (run,) = log["runs"]
    (result,) = run["results"]
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "CAP001"
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "stacks/two.yaml"
    assert place["region"]["startLine"] > 1


def test_one_stack_leaves_other_environments_out(project):
    data = organization(teams=[team("ada")])
    data["environments"]["prod"] = BROKEN["environments"]["dev"]
    write(project, "acme.yaml", data)
    assert validate("--stack", "acme-dev", cwd=project).returncode == 0
    assert validate("--stack", "acme-prod", cwd=project).returncode == 1
    data["environments"]["prod"] = {**BROKEN["environments"]["dev"], "protect": "maybe"}
    write(project, "acme.yaml", data)
    assert "skipped" not in validate("--stack", "acme-dev", cwd=project).stdout
    assert "until this can be read: environments.prod" in validate("--stack", "acme-prod", cwd=project).stdout


def test_a_file_that_does_not_exist_has_no_position(project):
    assert invoke.hpkit("validate", "no.yaml", cwd=project).stdout.startswith("no.yaml: error CFG005\n")


def test_a_mistake_in_many_places_is_one_error(project):
    write(project, "acme.yaml", json.loads(json.dumps(BROKEN).replace("ml.g5.12xlarge", "g5.12xlarge")))
    said = validate(cwd=project).stdout
    assert said.count("error CLU003") == 1
    assert validate("--format", "github", cwd=project).stdout.count("title=CLU003") > 1, "each place is annotated"


def test_a_stacks_own_file_may_name_organization_and_environment(project):
    write(project, "acme.yaml", BROKEN)
    settings = "config:\n  hpkit:organization: acme\n  hpkit:environment: dev\n"
    (project / "stacks" / "Pulumi.blue.yaml").write_text(settings)
    assert validate("--stack", "blue", cwd=project).returncode == 1


@pytest.mark.parametrize("name", ["sub/evil", "../evil", "Pulumi.acme-dev", "."])
def test_a_stacks_organization_is_a_name_and_no_path(project, name):
    for file in ("sub/evil.yaml", "evil.yaml"):
        (project / "stacks" / file).parent.mkdir(exist_ok=True)
        write(project, file, organization())
    settings = f"config:\n  hpkit:organization: {name}\n  hpkit:environment: dev\n"
    (project / "stacks" / "Pulumi.blue.yaml").write_text(settings)
    result = invoke.hpkit("validate", "--stack", "blue", cwd=project)
    assert result.returncode == 2
    assert f"is `{name}`, which isn't a valid name" in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--stack", "nobody-dev"], "requires stacks/nobody.yaml"),
        (["--stack", "amce-dev"], "requires stacks/amce.yaml, which doesn't exist (did you mean acme-dev?)"),
        (["--stack", "acme-prod"], "has no environment `prod` (it has dev)"),
        (["--stack", "plain"], "isn't a valid stack name"),
        (["--stack", "broken"], "Pulumi.broken.yaml:2:1: this line is indented with a tab"),
        (["--format", "xml"], "xml"),
        (["stacks/acme.yaml", "--stack", "acme-dev"], "either files or stacks, not both"),
        (["--nonsense"], "--nonsense"),
    ],
)
def test_misuse_exits_2(project, arguments, says):
    write(project, "acme.yaml", organization())
    (project / "stacks" / "Pulumi.broken.yaml").write_text("config:\n\thpkit:organization: acme\n")
    result = invoke.hpkit("validate", *arguments, cwd=project)
    assert result.returncode == 2
    assert says in result.stderr


def test_stack_files_are_looked_at_with_the_whole_project(project):
    write(project, "acme.yaml", organization())
    (project / "stacks" / "Pulumi.acme-prod.yaml").write_text("config: {}\n")
    result = validate(cwd=project)
    assert result.returncode == 1
    assert "stacks/Pulumi.acme-prod.yaml:1:9: error CFG008" in result.stdout
    assert "stacks/acme.yaml has no environment `prod`" in " ".join(result.stdout.split())
    assert validate("stacks/acme.yaml", cwd=project).returncode == 0


def test_files_of_one_project_are_compared(project):
    write(project, "acme.yaml", organization())
    (project / "stacks" / "other.yaml").write_bytes(text_of({**organization(), "organization": "other"}))
    assert "CFG011 acme-dev and" not in validate("stacks/acme.yaml", cwd=project).stdout
    said = " ".join(validate(cwd=project).stdout.split())
    assert "warning CFG011 environments.dev.cluster.name" in said
    assert "other-dev and acme-dev (stacks/acme.yaml:23:13) both have a cluster acme in us-west-2" in said
    for named in (["stacks/acme.yaml", "stacks/other.yaml"], ["--stack", "acme-dev", "--stack", "other-dev"]):
        assert "warning CFG011" in validate(*named, cwd=project).stdout


def test_a_default_of_several_organizations_is_listed_once_and_names_them(project):
    for name in ("one", "two"):
        write(project, f"{name}.yaml", {**organization(), "defaults": "shared.yaml"})
    (project / "stacks" / "shared.yaml").write_text("environmentDefaults: {protct: true}\n")
    output = " ".join(validate(cwd=project).stdout.split())
    assert output.count("CFG001") == 1
    assert "error CFG001 environmentDefaults.protct unknown key" in output
    lines = (project / "stacks" / "one.yaml").read_text().splitlines()
    line = lines.index("defaults: shared.yaml") + 1
    assert f"; used by stacks/one.yaml:{line}, stacks/two.yaml:{line}." in output
    (project / "stacks" / "shared.yaml").write_text("environmentDefaults: {observability: {grafana: true}}\n")
    output = " ".join(validate(cwd=project).stdout.split())
    line = lines.index("  dev:") + 1
    assert f"; used by stacks/one.yaml:{line}, stacks/two.yaml:{line}." in output
    # Each environment has its own region, so none uses this one.
    (project / "stacks" / "shared.yaml").write_text("environmentDefaults: {region: 7}\n")
    output = " ".join(validate(cwd=project).stdout.split())
    assert "error CFG002 environmentDefaults.region region is `7`; it must be text. Expected" in output


def test_a_project_without_organizations_says_so(project):
    result = validate(cwd=project)
    assert result.returncode == 2
    assert "no organization file" in result.stderr


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"%PDF-1.7 \x00\xff",
        b"- a\n- b\n",
        b"a:\n\tb: 1\n",
        b"a: &a [*a]\n",
        b"[" * 5000,
        b"organization: x\n" + b"# padding\n" * 600_000,
    ],
    ids=["empty", "pdf", "list", "tab", "loop", "brackets", "5MB"],
)
def test_bad_files_are_findings_and_exit_1(project, content):
    write(project, "bad.yaml", content)
    result = validate(cwd=project)
    assert result.returncode == 1
    assert "CFG005" in result.stdout


def test_a_missing_file_and_a_directory_are_findings_and_exit_1(project):
    for name in ("missing.yaml", "stacks"):
        result = validate(name, cwd=project)
        assert result.returncode == 1
        assert "CFG005" in result.stdout


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("CAP01", "did you mean CAP001?"),
        ("CAP0O5", "did you mean CAP005?"),
        ("CPA1", "did you mean CAP001?"),
        ("CAP999", "no rule CAP999; run `hpkit catalog rules CAP` for a list"),
    ],
)
def test_a_rule_that_there_is_not_names_the_one_that_is_meant(project, given, says):
    result = invoke.hpkit("catalog", "rules", given, cwd=project)
    assert result.returncode == 1
    assert says in result.stderr


def test_the_name_of_a_policy_is_explained_with_its_parameters(project):
    result = invoke.hpkit("catalog", "rules", "eks-addons-pinned", cwd=project)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("eks-addons-pinned (policy, advisory, can be waived)")
    assert "unpinned (default [])" in result.stdout
    assert not problems(result.stdout.splitlines()[-1]), "the waiver can be pasted"
    pasted = yaml.safe_load(invoke.hpkit("catalog", "rules", "CLU025", cwd=project).stdout.splitlines()[-1])
    Waiver.model_validate(pasted["waivers"][0])


@pytest.mark.skipif(os.geteuid() == 0 and shutil.which("setpriv") is None, reason="root may read every file")
def test_a_file_that_may_not_be_read_is_a_finding(project):
    file = write(project, "secret.yaml", organization())
    file.chmod(0)
    command = [str(HPKIT), "validate", "stacks/secret.yaml"]
    if os.geteuid() == 0:
        # Root can read everything while it has that capability; without it, the file's mode applies.
        command = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all", *command]
    result = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=300)
    assert result.returncode == 1
    assert "permission denied" in result.stdout


def test_text_fits_80_columns_and_has_no_colour_off_a_terminal(project):
    write(project, "two.yaml", BROKEN)
    text = invoke.hpkit("validate", cwd=project, COLUMNS="200").stdout
    assert "\x1b" not in text
    for line in text.splitlines():
        assert len(line) <= 80 or line.startswith("stacks/")


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_are_valid_and_say_what_they_show(name):
    result = validate(f"stacks/{name}.yaml", cwd=ROOT)
    assert result.returncode == 0, result.stdout
    head = (ROOT / "stacks" / f"{name}.yaml").read_text().splitlines()
    assert head[0] == "# yaml-language-server: $schema=./schema.json"
    assert any(line.startswith("# From: ") for line in head)
    assert any(line.startswith("# Shows: ") for line in head)


def test_the_examples_fit_the_schema_that_editors_read():
    import yaml

    validator = Draft202012Validator(json_schema())
    for file in example_files():
        assert list(validator.iter_errors(yaml.safe_load(file.read_text()))) == [], file.name

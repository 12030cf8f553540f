"""`hpkit review` as a process, in a separate git repository: affected stacks, their causes, and exit codes."""

import copy
import json
import os
import subprocess
import sys

import pytest

from hpkit.changes.review.model import Preview
from hpkit.cli.organization import review_scope
from hpkit.cli.organization.review_git import find_base
from hpkit.errors import ToolError
from tests.builders import group, organization, team, text_of
from tests.cli.invoke import hpkit

COMMAND = [sys.executable, "-c", "from hpkit.cli import main; main()", "review"]


class Repository:
    """A project in git; `review` runs the command on the working tree."""

    def __init__(self, folder):
        self.folder = folder
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_SYSTEM": os.devnull,
        }
        (folder / "stacks").mkdir(parents=True)
        (folder / "Pulumi.yaml").write_text("name: hpkit\n")
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments):
        identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *identity, *arguments], cwd=self.folder, env=self.environment, check=True, timeout=300)

    def write(self, name, data):
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data if isinstance(data, bytes) else text_of(data))

    def commit(self):
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message=change")

    def run(self, *arguments, cwd=None, **environment):
        given = {name: self.environment.get(name) for name in os.environ} | self.environment | environment
        result = hpkit("review", *arguments, cwd=cwd or self.folder, **given)
        assert "Traceback" not in result.stdout + result.stderr
        return result

    def review(self, *arguments, exits=0):
        result = self.run("--format", "json", *arguments)
        assert result.returncode == exits, result.stderr
        return json.loads(result.stdout)


def acme(count=3, **more):
    rows = [{"instanceType": "ml.g5.12xlarge", "count": count}]
    return organization(teams=[team("ada")], allocations={"ada": rows}, **more)


@pytest.fixture
def repository(tmp_path):
    made = Repository(tmp_path / "project")
    made.write("stacks/acme.yaml", acme())
    other = acme()
    other["organization"] = "other"
    made.write("stacks/other.yaml", other)
    made.write("stacks/Pulumi.acme-dev.yaml", {"config": {"hpkit:organization": "acme", "hpkit:environment": "dev"}})
    made.commit()
    return made


def verdicts(said):
    return {stack["stack"]: (stack["status"], stack["verdict"]) for stack in said["stacks"]}


def test_nothing_touched_is_ok(repository):
    assert verdicts(repository.review()) == {}
    assert repository.run().stdout.startswith("OK: no stack is affected\n")


def test_an_organization_file_touches_its_stacks_and_no_others(repository):
    repository.write("stacks/acme.yaml", acme(2))
    output = repository.review()
    assert verdicts(output) == {"acme-dev": ("changed", "attention")}
    assert output["stacks"][0]["why"] == "stacks/acme.yaml changed"
    assert output["base"] == "main"


def test_a_stack_that_leaves_the_placeholder_account_is_new_and_one_of_a_real_account_moves(repository):
    head = acme(environment={"account": "310987654321", "region": "us-west-2"})
    repository.write("stacks/acme.yaml", head)
    (stack,) = repository.review()["stacks"]
    assert (stack["status"], stack["watch"], stack["losses"]) == ("added", [], [])
    assert "not deployed yet" in stack["why"]
    assert {each["action"] for each in stack["changes"]} == {"create"}
    repository.commit()
    head["environments"]["dev"]["account"] = "210987654321"
    repository.write("stacks/acme.yaml", head)
    (stack,) = repository.review("--base", "HEAD", exits=1)["stacks"]
    assert [each["code"] for each in stack["watch"]] == ["account-changed"]


def test_an_error_blocks_and_exits_1_with_the_place(repository):
    repository.write("stacks/acme.yaml", acme(9))
    said = repository.review(exits=1)
    (finding,) = said["stacks"][0]["findings"]["new"]
    assert finding["rule"] == "CAP001"
    assert finding["file"] == "stacks/acme.yaml"
    line = (repository.folder / "stacks" / "acme.yaml").read_text().splitlines()[finding["line"] - 1]
    assert "instanceType" in line


def test_a_commit_on_the_base_after_the_branch_left_is_not_the_changes(repository):
    repository.git("switch", "--quiet", "--create", "work")
    repository.git("switch", "--quiet", "main")
    repository.write("stacks/other.yaml", organization())
    repository.commit()
    repository.git("switch", "--quiet", "work")
    repository.write("stacks/acme.yaml", acme(2))
    repository.commit()
    assert set(verdicts(repository.review("--base", "main"))) == {"acme-dev"}


def test_a_stacks_own_file_touches_that_stack_only(repository):
    repository.write(
        "stacks/Pulumi.acme-dev.yaml",
        {"config": {"hpkit:organization": "acme", "hpkit:environment": "dev", "aws:profile": "x"}},
    )
    said = repository.review()
    assert verdicts(said) == {"acme-dev": ("unchanged", "ok")}
    assert said["stacks"][0]["why"] == "stacks/Pulumi.acme-dev.yaml changed"


SETTINGS = {"config": {"hpkit:organization": "acme", "hpkit:environment": "dev"}}


def test_a_stacks_own_file_that_is_broken_blocks_as_it_fails_to_validate(repository):
    repository.write("stacks/Pulumi.acme-dev.yaml", SETTINGS)
    repository.commit()
    repository.write("stacks/Pulumi.acme-dev.yaml", b"config: [")
    said = repository.review("--base", "HEAD", exits=1)
    assert "stacks/Pulumi.acme-dev.yaml: 1 new error" in said["reasons"]
    repository.commit()
    repository.write("stacks/Pulumi.acme-dev.yaml", SETTINGS)
    (file,) = (each for each in repository.review("--base", "HEAD")["files"] if "Pulumi" in each["file"])
    assert [each["rule"] for each in file["findings"]["fixed"]] == ["CFG008"]


def test_settings_that_leave_a_stacks_own_file_are_named_without_their_values(repository):
    more = {"secretsprovider": "awskms://alias/one", "encryptedkey": "c2VjcmV0"}
    repository.write("stacks/Pulumi.acme-dev.yaml", {**SETTINGS, **more, "config": {"aws:profile": "prod"}})
    repository.commit()
    repository.write("stacks/Pulumi.acme-dev.yaml", {**SETTINGS, "secretsprovider": "awskms://alias/two"})
    output = repository.review("--base", "HEAD")
    (risk,) = output["stacks"][0]["watch"]
    assert (risk["code"], risk["verdict"]) == ("stack-file", "attention")
    for text in ("secretsprovider changes", "encryptedkey is removed", "aws:profile is removed"):
        assert text in risk["message"]
    assert "alias" not in json.dumps(output)


def test_a_cluster_that_another_file_has_already_is_said(repository):
    repository.write("stacks/third.yaml", {**acme(), "organization": "third"})
    assert "CFG011" in {each["rule"] for each in repository.review()["stacks"][-1]["findings"]["new"]}


def test_a_policy_file_touches_its_organizations_stacks_and_says_what_it_asks_now(repository):
    policies = {"regions-allowed": {"allowed": ["us-west-2"]}, "mandatory-tags": {"keys": ["team"]}}
    repository.write("stacks/acme.policy.json", json.dumps(policies).encode())
    repository.write("stacks/acme.yaml", acme(top={"tags": {"team": "ada"}}))
    repository.commit()
    repository.write("stacks/acme.policy.json", json.dumps(policies, indent=4).encode())
    assert verdicts(repository.review("--base", "HEAD")) == {"acme-dev": ("unchanged", "ok")}
    policies["mandatory-tags"]["keys"] = ["owner"]
    policies["regions-allowed"] = "disabled"
    repository.write("stacks/acme.policy.json", json.dumps(policies).encode())
    said = repository.review("--base", "HEAD", exits=1)
    assert verdicts(said) == {"acme-dev": ("unchanged", "blocked")}
    (stack,) = said["stacks"]
    assert stack["why"] == "stacks/acme.policy.json changed"
    assert [each["message"].partition(";")[0] for each in stack["watch"]] == [
        "the policy mandatory-tags: keys team → owner",
        "the policy regions-allowed: allowed us-west-2 → unset, enforcementLevel unset → disabled",
    ]
    page = repository.run("--base", "HEAD", "--format", "markdown").stdout
    assert "- the policy mandatory-tags: keys team → owner" in page


def test_a_policy_file_that_was_wrong_at_the_base_is_compared_with_nothing(repository):
    repository.write("stacks/acme.policy.json", b"[]")
    repository.commit()
    repository.write("stacks/acme.policy.json", b'{"regions-allowed": {"allowed": ["us-west-2"]}}')
    (stack,) = repository.review("--base", "HEAD")["stacks"]
    assert [each["subject"] for each in stack["watch"]] == ["regions-allowed"]
    repository.write("stacks/acme.policy.json", b"[]")
    repository.write("stacks/acme.yaml", acme(2))
    assert "stacks/acme.policy.json: must be a JSON object that maps policies to settings" in repository.run().stderr


def test_a_stack_pointed_at_a_path_is_refused_as_the_program_refuses_it(repository):
    repository.write("stacks/sub/evil.yaml", {**acme(1), "organization": "evil"})
    settings = {"config": {"hpkit:organization": "sub/evil", "hpkit:environment": "dev"}}
    repository.write("stacks/Pulumi.acme-dev.yaml", settings)
    said = repository.run()
    assert said.returncode == 1
    assert "is `sub/evil`, which isn't a valid name" in " ".join(said.stderr.split())


def test_a_stack_pointed_at_another_organization_shows_the_difference(repository):
    repository.write("stacks/other.yaml", {**acme(1), "organization": "other"})
    repository.commit()
    repository.write(
        "stacks/Pulumi.acme-dev.yaml", {"config": {"hpkit:organization": "other", "hpkit:environment": "dev"}}
    )
    # The same stack under another organization: everything whose name contains the organization is created again.
    said = repository.review(exits=1)
    (stack,) = [stack for stack in said["stacks"] if stack["stack"] == "acme-dev"]
    assert "replace-eks" in {each["code"] for each in stack["watch"]}
    kind = "ml.g5.12xlarge"
    loss = {"team": "ada", "what": "quota", "instanceType": kind, "before": 3, "after": 1, "names": []}
    assert loss in stack["losses"]


def test_code_touches_every_stack_and_the_note_says_so(repository):
    repository.write("infra/__main__.py", b"print()\n")
    said = repository.review()
    assert set(verdicts(said)) == {"acme-dev", "other-dev"}
    assert "infra/__main__.py" in said["notes"][0]


def test_a_deleted_file_removes_its_stacks(repository):
    (repository.folder / "stacks" / "other.yaml").unlink()
    assert verdicts(repository.review()) == {"other-dev": ("removed", "attention")}


def test_a_file_that_cannot_be_read_blocks_its_stacks_and_removes_none(repository):
    repository.write("stacks/acme.yaml", b"organization: [\n")
    said = repository.review(exits=1)
    assert verdicts(said) == {"acme-dev": ("unreadable", "blocked")}


def test_a_base_that_could_not_be_read_is_said(repository):
    repository.write("stacks/acme.yaml", b"organization: [\n")
    repository.commit()
    repository.write("stacks/acme.yaml", acme())
    (stack,) = repository.review()["stacks"]
    assert "the base" in stack["note"]
    assert stack["verdict"] == "attention", "what is lost is not known"


def in_files(count=3):
    """Return an organization with a team and a version in separate files, and these files by name."""
    own = acme(count)
    del own["teams"], own["environments"]["dev"]["eks"]["version"]
    own |= {"include": ["teams/*.yaml"], "defaults": "shared.yaml"}
    return own, {
        "stacks/acme.yaml": own,
        "stacks/teams/ada.yaml": {"teams": [team("ada")]},
        "stacks/shared.yaml": {"environmentDefaults": {"eks": {"version": "1.34"}}},
    }


def test_a_change_of_an_included_file_is_a_change_of_its_organization(repository):
    for name, data in in_files()[1].items():
        repository.write(name, data)
    repository.commit()
    repository.git("checkout", "--quiet", "-b", "change")
    assert verdicts(repository.review()) == {}
    repository.write("stacks/teams/ada.yaml", {"teams": [team("ada", fairShareWeight=20)]})
    (stack,) = repository.review()["stacks"]
    assert (stack["stack"], stack["why"]) == ("acme-dev", "stacks/teams/ada.yaml changed")
    assert [each["name"] for each in stack["teams"]] == ["ada"]


def test_included_files_are_read_from_the_revision_of_their_organization_file(repository, monkeypatch):
    own, files = in_files()
    for name, data in files.items():
        repository.write(name, data)
    repository.commit()
    repository.git("checkout", "--quiet", "-b", "change")
    for name in list(files)[1:]:
        (repository.folder / name).unlink()
    del own["include"], own["defaults"]
    own["teams"] = [team("ada")]
    own["environments"]["dev"]["eks"]["version"] = "1.35"
    repository.write("stacks/acme.yaml", own)
    monkeypatch.chdir(repository.folder)
    scope = review_scope.scope_of(repository.folder, find_base(repository.folder, "main"), ())
    before, after = (side["stacks/acme.yaml"].plans["dev"] for side in (scope.before, scope.after))
    assert (before.spec.eks.version, after.spec.eks.version) == ("1.34", "1.35")
    assert [team.name for team in before.teams] == [team.name for team in after.teams] == ["ada"]


def test_a_finding_in_an_included_file_blocks_at_its_line(repository):
    for name, data in in_files()[1].items():
        repository.write(name, data)
    repository.commit()
    repository.git("checkout", "--quiet", "-b", "change")
    repository.write("stacks/teams/grace.yaml", {"teams": [team("ada")]})
    said = repository.review(exits=1)
    (found,) = [finding for file in said["files"] for finding in file["findings"]["new"]]
    assert (found["rule"], found["file"], found["line"]) == ("CFG004", "stacks/teams/grace.yaml", 2)
    assert "the first is at stacks/teams/ada.yaml:2:9" in found["message"]


def test_an_organization_file_cannot_hide_another(repository):
    repository.write("stacks/acme.yaml", {**acme(), "defaults": "other.yaml"})
    other = acme(count=2)
    repository.write("stacks/other.yaml", {**other, "organization": "other"})
    said = repository.review(exits=1)
    assert verdicts(said)["other-dev"][0] == "changed"
    assert [each["rule"] for file in said["files"] for each in file["findings"]["new"]] == ["CFG001"] * 3


def test_the_review_follows_no_link_out_of_the_repository(repository):
    secret = repository.folder.parent / "secret.yaml"
    secret.write_text("password: hunter2\n")
    repository.write(
        "stacks/acme.yaml", {**acme(), "include": ["teams/a.yaml", "links/*.yaml"], "defaults": "teams/b.yaml"}
    )
    (repository.folder / "stacks/teams").mkdir()
    (repository.folder / "stacks/teams/a.yaml").symlink_to(secret)
    (repository.folder / "stacks/links").symlink_to(repository.folder.parent)
    os.mkfifo(repository.folder / "stacks/teams/b.yaml")
    output = repository.review(exits=1)
    messages = sorted(
        each["message"] for file in output["files"] for each in file["findings"]["new"] if each["rule"] == "CFG014"
    )
    assert messages == [
        "`links` is a symbolic link",
        "`teams/a.yaml` is a symbolic link",
        "`teams/b.yaml` is not a regular file",
    ]
    assert "hunter2" not in json.dumps(output)


def test_a_setting_that_a_group_keeps_for_good_is_one_line(repository):
    data = acme()
    data["environments"]["dev"]["cluster"]["instanceGroups"][0]["networkInterface"] = {"interfaceType": "efa"}
    repository.write("stacks/acme.yaml", data)
    repository.commit()
    repository.write("stacks/acme.yaml", acme())
    (stack,) = repository.review(exits=1)["stacks"]
    said = [each["message"] for each in stack["watch"] if "networkInterface" in each["message"]]
    assert len(said) == 1
    assert "existing group" in said[0]


def test_a_file_under_another_name_is_another_stack(repository):
    file = repository.folder / "stacks" / "other.yaml"
    file.unlink()
    repository.write("stacks/third.yaml", {**acme(), "organization": "third"})
    said = repository.review()
    assert verdicts(said) == {"other-dev": ("removed", "attention"), "third-dev": ("added", "attention")}
    (renamed,) = (each for stack in said["stacks"] for each in stack["watch"] if each["code"] == "stack-renamed")
    assert "third-dev is created from scratch, and other-dev keeps running" in renamed["message"]


def test_a_policy_that_the_head_violates_blocks_it_at_its_line(repository):
    repository.write("stacks/acme.policy.json", b'{"instance-types-allowed": {"allowed": ["ml.g5.12xlarge"]}}')
    repository.commit()
    data = acme(2)
    data["environments"]["dev"]["cluster"]["instanceGroups"].append(group("cpu", "ml.m5.4xlarge", 1))
    repository.write("stacks/acme.yaml", data)
    (stack,) = repository.review("--base", "HEAD", exits=1)["stacks"]
    assert stack["verdict"] == "blocked"
    (new,) = [each for each in stack["findings"]["new"] if each["severity"] == "error"]
    assert (new["rule"], new["path"]) == ("instance-types-allowed", "environments.dev.cluster.instanceGroups[cpu]")
    lines = (repository.folder / "stacks" / "acme.yaml").read_text(encoding="utf-8").splitlines()
    assert lines[new["line"] - 1].strip() == "- name: cpu"
    repository.commit()
    # The base violates it too, even if a waiver has expired there, which is an error.
    data["environments"]["dev"]["waivers"] = [
        {"rule": "CAP005", "path": "environments.dev", "reason": "later", "until": "2020-01-31"}
    ]
    repository.write("stacks/acme.yaml", data)
    repository.commit()
    del data["environments"]["dev"]["waivers"]
    repository.write("stacks/acme.yaml", data)
    (stack,) = repository.review("--base", "HEAD", exits=1)["stacks"]
    assert [each["rule"] for each in stack["findings"]["remaining"] if each["severity"] == "error"] == [
        "instance-types-allowed"
    ]
    repository.write("stacks/acme.policy.json", b"{")
    repository.commit()
    repository.write("stacks/acme.policy.json", b'{"instance-types-allowed": {"allowed": ["ml.g5.12xlarge"]}}')
    (stack,) = repository.review("--base", "HEAD", exits=1)["stacks"]
    assert "policies couldn't be checked in the base" in stack["note"]


def test_a_new_stack_has_the_findings_of_validate_with_policies(repository):
    data = acme()
    data["environments"]["prod"] = data["environments"]["dev"] | {"account": "210987654321"}
    repository.write("stacks/acme.yaml", data)
    output = repository.review("--base", "HEAD")
    (stack,) = [each for each in output["stacks"] if each["stack"] == "acme-prod"]
    checked = hpkit("validate", "--policies", "--stack", "acme-prod", "--format", "json", cwd=repository.folder)
    expected = {(each["rule"], each["message"]) for each in json.loads(checked.stdout)["findings"]}
    found = [*stack["findings"]["new"], *(each for file in output["files"] for each in file["findings"]["remaining"])]
    assert expected
    assert {(each["rule"], each["message"]) for each in found} == expected
    assert (stack["status"], stack["verdict"]) == ("added", "attention")
    assert f"{len(stack['findings']['new'])} new warnings" in stack["reasons"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--stack", "nobody-dev"], "neither side has the stack nobody-dev (known: acme-dev, other-dev)"),
        (["--base", "nowhere"], "git has no commit `nowhere`;"),
        (["--base", "--output=/tmp/x"], "git has no commit"),
        (["--format", "xml"], "xml"),
    ],
)
def test_misuse_exits_2_and_says_what_to_write(repository, arguments, says):
    result = repository.run(*arguments)
    assert result.returncode == 2
    assert says in result.stderr


def test_without_git_it_says_so(tmp_path):
    (tmp_path / "Pulumi.yaml").write_text("name: hpkit\n")
    outside = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)}
    result = subprocess.run(COMMAND, cwd=tmp_path, capture_output=True, text=True, timeout=300, env=outside)
    assert result.returncode == 1
    assert "isn't in a git repository" in result.stderr


def test_histories_that_share_nothing_name_the_remedy(repository):
    repository.git("switch", "--quiet", "--orphan", "alone")
    repository.commit()
    result = repository.run("--base", "main")
    assert result.returncode == 1
    assert "fetch-depth: 0" in result.stderr


def test_the_review_goes_to_a_file_and_the_verdict_to_standard_error(repository):
    repository.write("stacks/acme.yaml", acme(2))
    result = repository.run("--format", "markdown", "--output", "review.md")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "verdict: attention\nwrote review.md\n")
    assert (repository.folder / "review.md").read_text().startswith("<!-- hpkit review -->")


def test_a_project_below_the_repositorys_root_is_reviewed(tmp_path):
    outer = Repository(tmp_path / "outer")
    inner = tmp_path / "outer" / "deep" / "project"
    outer.write("deep/project/Pulumi.yaml", b"name: hpkit\n")
    outer.write("deep/project/stacks/acme.yaml", acme())
    outer.commit()
    outer.write("deep/project/stacks/acme.yaml", acme(2))
    outer.write("infra/elsewhere.py", b"print()\n")
    result = outer.run("--format", "json", cwd=inner)
    assert verdicts(json.loads(result.stdout)) == {"acme-dev": ("changed", "attention")}


def test_external_diff_programs_of_the_repository_never_run(repository):
    ran = repository.folder.parent / "ran"
    repository.git("config", "diff.external", f"touch {ran}")
    repository.git("config", "diff.evil.textconv", f"touch {ran}; cat")
    repository.write(".gitattributes", b"*.yaml diff=evil\n")
    repository.write("stacks/acme.yaml", acme(2))
    repository.review()
    assert not ran.exists()


def test_each_stack_is_previewed_in_its_own_environment_on_the_local_cloud(repository, monkeypatch):
    """An instance of the local cloud has one stack; a stack without an instance isn't previewed."""
    two = acme(2)
    two["environments"]["prod"] = copy.deepcopy(two["environments"]["dev"])
    repository.write("stacks/acme.yaml", two)

    def environment_of(folder, stack, environment):
        if stack == "acme-prod":
            raise ToolError(f"no instance has {stack}")
        return {**environment, "INSTANCE": stack}

    def preview(stack, folder, environment):
        return Preview((), 0, (f"{stack} on {environment['INSTANCE']}",))

    monkeypatch.setattr(
        "hpkit.cli.common.output.pulumi_environment", lambda: {"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}
    )
    monkeypatch.setattr("hpkit.cli.organization.review.extension", lambda _: environment_of)
    monkeypatch.setattr("hpkit.cli.organization.review_preview.run_preview", preview)
    stacks = json.loads(repository.run("--preview", "--format", "json").stdout)["stacks"]
    found = [(each["stack"], each["preview"]["ran"], *each["preview"]["problems"]) for each in stacks]
    assert found == [("acme-dev", True, "acme-dev on acme-dev"), ("acme-prod", False, "no instance has acme-prod")]

"""Workflows: pinned, without rights they do not need, and nothing of a fork near a secret."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from hpkit.review.as_markdown import LIMIT, MARKER, as_markdown
from tests.builders import organization, text_of
from tests.review.builders import review_of

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
# What an attacker can name: a value of these in a script is a command.
UNTRUSTED = re.compile(
    r"\$\{\{[^}]*(github\.event\.|github\.head_ref|github\.base_ref|inputs\.|matrix\.|vars\.|steps\.)"
)
PINNED = re.compile(r"^[\w.-]+/[\w./-]+@[0-9a-f]{40}$")


def workflow(file):
    data = yaml.safe_load(file.read_text())
    # YAML 1.1 reads the key `on` as true.
    return {"on" if key is True else key: value for key, value in data.items()}


def triggers(data):
    on = data["on"]
    return {on} if isinstance(on, str) else set(on)


def jobs(file):
    return workflow(file)["jobs"].items()


def steps(file):
    return [step for _, job in jobs(file) for step in job["steps"]]


def test_there_are_workflows_for_each_purpose():
    names = {file.stem for file in FILES}
    assert names == {"ci", "pull-request", "review-comment", "deploy", "drift", "nightly", "release"}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_action_is_pinned_by_commit_with_its_version_beside_it(file):
    for line in file.read_text().splitlines():
        used = re.match(r"\s*(?:- )?uses: (\S+)(.*)", line)
        if used:
            assert PINNED.match(used[1]), line
            assert re.fullmatch(r" # v\d+\.\d+\.\d+", used[2]), f"{line}: which version is that?"


def test_one_action_has_one_version_in_all_workflows():
    used = {step["uses"] for file in FILES for step in steps(file) if "uses" in step}
    names = [each.partition("@")[0] for each in used]
    assert len(names) == len(set(names)), sorted(used)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_rights_are_given_to_jobs_and_only_those_they_need(file):
    assert workflow(file)["permissions"] == {}
    for name, job in jobs(file):
        assert "permissions" in job, f"{name} would get the repository's default"
        assert isinstance(job["permissions"], dict), f"{name}: rights are named one by one"
        # What a tag's release offers was built and signed by jobs that cannot write.
        most = "write" if (file.name, name) == ("release.yml", "publish") else "read"
        assert job["permissions"].get("contents", "read") in ("read", most)
        assert job["timeout-minutes"] <= 240


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_checkout_leaves_no_token_behind(file):
    for step in steps(file):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_no_script_is_made_of_what_others_write(file):
    for step in steps(file):
        assert not UNTRUSTED.search(step.get("run", "")), f"pass it by env: {step['run']}"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_no_long_lived_secret_is_used_and_no_workflow_trusts_a_pull_requests_code(file):
    text = file.read_text()
    assert "secrets." not in text
    assert "pull_request_target" not in text
    if "pull_request" in triggers(workflow(file)):
        assert "id-token" not in text, "a pull request gets no role"
        writes = {right for _, job in jobs(file) for right, how in job["permissions"].items() if how == "write"}
        assert writes <= {"security-events"}, "code scanning is all that it may write to"
    if "workflow_run" in triggers(workflow(file)):
        used = [step.get("uses", "") for step in steps(file)]
        assert not [each for each in used if each.startswith("actions/checkout@")], "it has rights, so it runs no code"
        scripts = " ".join(step.get("run", "") for step in steps(file))
        assert not re.search(r"\b(make|python|pip|pulumi|bash|sh|source|eval)\b", scripts)


def test_the_gate_is_the_command_that_developers_run():
    assert ".ci/run" in [step.get("run") for step in steps(ROOT / ".github" / "workflows" / "ci.yml")]


def test_up_waits_for_its_preview_and_runs_in_the_environment_of_its_stack():
    data = workflow(ROOT / ".github" / "workflows" / "deploy.yml")["jobs"]
    assert "preview" in data["up"]["needs"]
    assert data["up"]["environment"] == "${{ matrix.stack }}"
    assert data["up"]["concurrency"]["cancel-in-progress"] is False, "an interrupted update leaves operations pending"
    assert data["up"]["strategy"]["max-parallel"] == 1


def test_the_review_compares_the_merge_with_what_it_is_merged_into():
    review = workflow(ROOT / ".github" / "workflows" / "pull-request.yml")["jobs"]["review"]
    assert review["steps"][0]["with"]["fetch-depth"] == 2, "without its parent git has nothing to compare with"
    scripts = [step["run"] for step in review["steps"] if "hpkit review" in step.get("run", "")]
    assert re.findall(r"--base (\S+)", scripts[0]) == ['"HEAD^1"'] * 3


def test_actionlint_finds_nothing():
    actionlint = shutil.which("actionlint") or shutil.which("actionlint", path=str(Path.home() / "go" / "bin"))
    if actionlint is None:
        pytest.skip("no actionlint here; CI runs it: go install github.com/rhysd/actionlint/cmd/actionlint@v1.7.12")
    result = subprocess.run([actionlint, "-no-color"], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stdout + result.stderr


class Comments:
    """The comment workflow's last step, run with a `gh` that keeps what it was asked."""

    def __init__(self, folder):
        self.folder = folder
        step = steps(ROOT / ".github" / "workflows" / "review-comment.yml")[-1]
        self.script = step["run"]
        (folder / "bin").mkdir()
        (folder / "review").mkdir()

    def post(self, text, *, comment=""):
        (self.folder / "review" / "review.md").write_text(text)
        gh = self.folder / "bin" / "gh"
        gh.write_text(
            f'#!/bin/sh\necho "$@" >> {self.folder}/calls\n'
            f'case "$*" in *--paginate*) echo "{comment}";; '
            f'*) cp "$RUNNER_TEMP/body.json" {self.folder}/sent.json;; esac\n'
        )
        gh.chmod(0o755)
        result = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", self.script],
            env={
                "PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
                "RUNNER_TEMP": str(self.folder),
                "REPOSITORY": "acme/infra",
                "NUMBER": "7",
                "RUN": "https://github.com/acme/infra/actions/runs/1",
            },
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert result.returncode == 0, result.stderr
        return json.loads((self.folder / "sent.json").read_text())["body"], (self.folder / "calls").read_text()


@pytest.fixture
def comments(tmp_path):
    missing = [name for name in ("bash", "jq", "iconv") if not shutil.which(name)]
    if missing:
        pytest.skip(f"not here, but on GitHub's runners: {', '.join(missing)}")
    return Comments(tmp_path)


def test_a_review_becomes_a_comment_that_is_edited_the_next_time(comments):
    text = as_markdown(review_of(text_of(organization()), text_of(organization(groups=[]))))
    body, calls = comments.post(text)
    assert body.startswith(f"{MARKER}\n<sub>Written by [this run]")
    assert f"</sub>\n\n{MARKER}\n\n## " in body
    assert "--method POST repos/acme/infra/issues/7/comments" in calls
    _, calls = comments.post(text, comment="4711")
    assert "--method PATCH repos/acme/infra/issues/comments/4711" in calls


def test_a_comment_of_a_hostile_run_mentions_nobody_and_fits(comments):
    body, _ = comments.post("@octocat " * 20_000 + "é")
    assert "@octocat" not in body
    assert len(body.encode()) < 65_536


def test_a_hostile_run_hides_who_wrote_its_comment_behind_a_comment_that_is_not_closed(comments):
    body, _ = comments.post("Approved by the platform team. <!--")
    assert "Written by [this run]" in body.rpartition("<!--")[0]


def test_the_longest_review_fits_with_what_the_workflow_adds(comments):
    body, _ = comments.post("é" * (LIMIT // 2))
    assert len(body.encode()) < 65_536


@pytest.fixture(scope="module")
def gitlab():
    page = (ROOT / "docs" / "gitlab.md").read_text()
    data = yaml.safe_load(re.search(r"```yaml\n(.*?)```", page, re.DOTALL)[1])
    reserved = {"stages", "default", "variables"}
    jobs = {name: job for name, job in data.items() if name not in reserved and not name.startswith(".")}
    return data, jobs


def test_the_pipeline_for_gitlab_is_yaml_whose_stages_exist(gitlab):
    data, jobs = gitlab
    assert set(jobs) == {"gate", "validate", "judges", "policy", "review", "preview", "up", "drift"}
    assert {job["stage"] for job in jobs.values()} <= set(data["stages"])
    assert data["variables"]["GIT_DEPTH"] == 0


def test_no_job_of_a_merge_request_on_gitlab_has_a_token_or_a_role(gitlab):
    _, jobs = gitlab
    asked = {
        name: job
        for name, job in jobs.items()
        if any("merge_request_event" in str(rule.get("if")) for rule in job["rules"])
    }
    assert set(asked) == {"gate", "validate", "judges", "policy", "review"}
    for name, job in asked.items():
        assert "id_tokens" not in job, name
        assert "environment" not in job, name


def test_hooks_for_other_repositories_run_the_command_on_organization_files_only():
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert (hook["id"], hook["entry"]) == ("hpkit-validate", "hpkit validate")
    own = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    (same,) = [each for each in own if each["id"] == hook["id"]]
    assert hook["files"] == same["files"]
    assert re.search(hook["files"], "stacks/handson.yaml")
    assert not re.search(hook["files"], "stacks/Pulumi.handson-dev.yaml"), "tools write that one"
    assert not re.search(hook["files"], "docs/stacks/handson.yaml")

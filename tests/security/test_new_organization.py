"""An organization that follows docs/guides/aws.md passes the jobs of a pull request, in a repository."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.builders import group, organization, team, text_of
from tests.program.cloud import Repository

ROOT = Path(__file__).parents[2]
STRICT = {"protected-from-replacement": {"allowReplace": []}}


def script_of(workflow, job, name):
    """Return the script of a step of a workflow."""
    steps = yaml.safe_load((ROOT / ".github" / "workflows" / workflow).read_text(encoding="utf-8"))["jobs"][job][
        "steps"
    ]
    (found,) = [step for step in steps if step.get("name", "").startswith(name)]
    return found["run"]


def acme(count=4, **environment):
    """Return a new organization without settings for protection, and without duplicates."""
    return organization(
        teams=[team("ada", sharing={"strategy": "Lend"})],
        groups=[group("gpu", "ml.g5.12xlarge", count), group("system", "ml.m5.4xlarge", 1)],
        allocations={"ada": [{"instanceType": "ml.g5.12xlarge", "count": 2}]},
        environment=environment,
    )


class PullRequest:
    """A repository whose main branch is hpkit, and a change of it."""

    def __init__(self, folder):
        self.folder = folder
        Repository(folder)
        (folder / "policies").symlink_to(ROOT / "policies")
        (folder / ".gitignore").write_text(".venv\nreview\noutput\nsummary.md\n")
        self.git("init", "-q", "-b", "main")
        self.commit("begin")

    def git(self, *words):
        identity = ("-c", "user.name=n", "-c", "user.email=n@example.com")
        subprocess.run(["git", *identity, *words], cwd=self.folder, check=True, capture_output=True)

    def commit(self, message):
        self.git("add", "-A")
        self.git("commit", "-qm", message)

    def write(self, data, policies=None):
        stacks = self.folder / "stacks"
        (stacks / "acme.yaml").write_bytes(text_of(data))
        (stacks / "Pulumi.acme-dev.yaml").write_text("encryptionsalt: v1:x\n")
        if policies is not None:
            (stacks / "acme.policy.json").write_text(json.dumps(policies))

    def run(self, job, name):
        """Run a step of the workflow as the runner does; return its exit code and output."""
        environment = {
            **os.environ,
            "GITHUB_STEP_SUMMARY": str(self.folder / "summary.md"),
            "GITHUB_OUTPUT": str(self.folder / "output"),
        }
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", script_of("pull-request.yml", job, name)],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert "Traceback" not in done.stdout + done.stderr
        return done.returncode, done.stdout

    def judge(self):
        return self.run("base-rules", "Check them with the base's validator")

    def review(self):
        code, _ = self.run("review", "Review")
        (review,) = json.loads((self.folder / "review" / "review.json").read_text())["stacks"]
        status = re.search(r"status=(\d)", (self.folder / "output").read_text().splitlines()[-1])[1]
        return code, status, review


@pytest.fixture
def pull_request(tmp_path):
    # One organization is enough, and each takes a second.
    change = PullRequest(tmp_path)
    for file in (tmp_path / "stacks").glob("*.yaml"):
        if "handson" not in file.name:
            file.unlink()
    change.commit("one organization")
    return change


def test_a_new_organization_passes_the_checks_of_the_base_and_is_reviewed(pull_request):
    pull_request.write(acme())
    code, said = pull_request.judge()
    assert code == 0, said
    assert "::error" not in said
    pull_request.commit("acme")
    code, status, review = pull_request.review()
    assert (code, status) == (0, "0")
    assert (review["stack"], review["status"], review["verdict"]) == ("acme-dev", "added", "attention")


def test_a_change_that_the_bases_policies_forbid_is_annotated_at_its_line_and_blocked(pull_request):
    pull_request.write(acme(), STRICT)
    pull_request.commit("acme")
    pull_request.write(acme(allowReplace=["vpc"]))
    code, said = pull_request.judge()
    assert code == 1
    (error,) = [line for line in said.splitlines() if line.startswith("::error")]
    place = re.match(r"::error file=stacks/acme.yaml,line=(\d+),col=\d+,title=(.*?)::", error)
    assert place[2] == "protected-from-replacement environments.dev.allowReplace[vpc]"
    lines = (pull_request.folder / "stacks" / "acme.yaml").read_text().splitlines()
    assert lines[int(place[1]) - 1].strip() == "- vpc"
    pull_request.commit("change")
    code, status, review = pull_request.review()
    assert (code, status, review["verdict"]) == (0, "1", "blocked")
    assert [each["rule"] for each in review["findings"]["new"]] == ["protected-from-replacement"]

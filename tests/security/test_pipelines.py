"""Who can assume the roles of the pipelines, and what a pull request can change, waive or add."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from policy_sentry.querying.actions import get_action_data

from hpkit.plan.derive import derive
from hpkit.program.iam.deployer import calling_types, viewer_policies
from hpkit.program.iam.live import AwsAccount
from hpkit.program.recording import record
from tests import builders
from tests.builders import group, organization, team, text_of
from tests.changes.review.builders import review_of
from tests.program.cloud import Repository
from tests.security.evaluation import Request, allows, managed

ROOT = Path(__file__).parents[2]
ACCOUNT = AwsAccount("aws", "us-west-2", "123456789012")
GITHUB, GITLAB = "token.actions.githubusercontent.com", "gitlab.com"


def trust_policy(page):
    """Return the trust policy that a page tells users to write."""
    blocks = re.findall(r"```json\n(.*?)```", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.DOTALL)
    (found,) = [json.loads(block) for block in blocks if "AssumeRoleWithWebIdentity" in block]
    # The identity provider vouches for the principal, which has no resource.
    return {"Statement": [{**each, "Resource": "*"} for each in found["Statement"]]}


@pytest.mark.parametrize(
    ("page", "issuer", "audience", "subject", "allowed"),
    [
        (page, issuer, audience, subject, allowed)
        for page, issuer, rows in [
            (
                "guides/github-actions.md",
                GITHUB,
                [
                    ("sts.amazonaws.com", "repo:acme/platform:environment:acme-dev:ref:refs/heads/main", True),
                    ("sts.amazonaws.com", "repo:acme/platform:environment:acme-dev", False),
                    ("sts.amazonaws.com", "repo:acme/platform:environment:acme-dev:ref:refs/heads/evil", False),
                    ("sts.amazonaws.com", "repo:acme/platform:environment:acme-dev:ref:refs/heads/main-evil", False),
                    ("sts.amazonaws.com", "repo:acme/platform:environment:acme-dev-preview:ref:refs/heads/main", False),
                    ("sts.amazonaws.com", "repo:acme/platform:pull_request", False),
                    ("sts.amazonaws.com", "repo:evil/platform:environment:acme-dev:ref:refs/heads/main", False),
                ],
            ),
            (
                "guides/gitlab.md",
                GITLAB,
                [
                    ("https://gitlab.com/deploy", "project_path:acme/platform:ref_type:branch:ref:main", True),
                    ("https://gitlab.com/deploy", "project_path:acme/platform:ref_type:branch:ref:evil", False),
                    ("https://gitlab.com/preview", "project_path:acme/platform:ref_type:branch:ref:main", False),
                    ("https://gitlab.com", "project_path:acme/platform:ref_type:branch:ref:main", False),
                ],
            ),
        ]
        for audience, subject, allowed in rows
    ],
)
def test_only_the_deployment_of_main_assumes_the_deploy_role(page, issuer, audience, subject, allowed):
    request = Request(
        "anybody", "sts:AssumeRoleWithWebIdentity", "*", {f"{issuer}:aud": audience, f"{issuer}:sub": subject}
    )
    assert allows(request, identity=[trust_policy(page)]) is allowed


def test_gitlab_gives_tokens_only_to_jobs_of_main_without_a_cache():
    text = (ROOT / "infra" / "hpkit" / "scaffold" / "templates" / "gitlab-ci.yml").read_text(encoding="utf-8")
    jobs = {name: job for name, job in yaml.safe_load(text).items() if isinstance(job, dict) and "script" in job}
    with_token = {name: job for name, job in jobs.items() if "id_tokens" in job}
    assert set(with_token) == {"preview", "up", "drift"}
    for job in with_token.values():
        assert all("$CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH" in rule["if"] for rule in job["rules"])
        assert "cache" not in job, "a merge request could write to it"
    audiences = {name: job["id_tokens"]["AWS_TOKEN"]["aud"] for name, job in with_token.items()}
    assert {name for name, audience in audiences.items() if audience.endswith("/deploy")} == {"up"}


@pytest.mark.parametrize("file", [".github/workflows/deploy.yml", "infra/hpkit/scaffold/templates/gitlab-ci.yml"])
def test_up_follows_a_comparison_with_the_approved_steps_and_no_job_installs_unpinned_packages(file):
    text = (ROOT / file).read_text(encoding="utf-8")
    compared, up = text.index("hpkit aws steps --approved"), text.index("pulumi up ")
    assert text.index("hpkit aws steps > ") < compared < up
    assert "pipefail" in text
    assert (
        re.findall(r"apt-get|npm |curl |go install|go-version: stable|pip install (?!.*(?:hashes|no-deps))", text) == []
    )


@pytest.fixture(scope="module")
def viewer():
    plan = derive(builders.typed(builders.organization()), "dev")
    types = calling_types(each.type for each in record(plan).resources.values())
    return [each.document for each in viewer_policies(plan, ACCOUNT, types)]


@pytest.mark.parametrize(
    ("action", "resource"),
    [
        ("s3:GetObject", "arn:aws:s3:::payroll/salaries.csv"),
        ("dynamodb:Scan", "arn:aws:dynamodb:us-west-2:123456789012:table/customers"),
        ("logs:GetLogEvents", "arn:aws:logs:us-west-2:123456789012:log-group:/app:log-stream:x"),
        ("lambda:GetFunction", "arn:aws:lambda:us-west-2:123456789012:function:x"),
    ],
)
def test_the_preview_role_reads_nothing_outside_the_stack(viewer, action, resource):
    attack = Request("arn:aws:iam::123456789012:role/preview", action, resource)
    assert allows(attack, identity=[managed("ReadOnlyAccess")]), "AWS's own policy allows it"
    assert not allows(attack, identity=viewer)


def test_the_preview_role_has_only_read_and_list_actions(viewer):
    actions = {action for document in viewer for each in document["Statement"] for action in each["Action"]}
    assert {"ec2:DescribeVpcs", "eks:DescribeCluster", "iam:GetRole", "sagemaker:DescribeCluster"} <= actions
    for action in actions:
        service, _, name = action.partition(":")
        levels = {each["access_level"] for each in get_action_data(service, name)[service]}
        assert levels <= {"Read", "List"}, f"{action}: {levels}"


def open_to_the_world(**waiver):
    data = builders.organization()
    data["environments"]["dev"]["eks"]["endpoint"]["publicCidrs"] = ["0.0.0.0/0"]
    path = "environments.dev.eks.endpoint.publicCidrs"
    data["environments"]["dev"]["waivers"] = [{"rule": "EKS001", "path": path, "reason": "demo", **waiver}]
    return data


def test_the_review_reports_a_new_or_longer_waiver():
    shown = [builders.text_of(open_to_the_world(until=until)) for until in ("2027-01-31", "2027-03-31")]
    review = review_of(builders.text_of(builders.organization()), shown[0])
    (stack,) = review.stacks
    path = "environments.dev.eks.endpoint.publicCidrs"
    assert f"EKS001 at {path} is now waived until 2027-01-31: demo" in stack.reasons
    assert review.verdict != "ok"
    longer = review_of(*shown).stacks[0].reasons[0]
    assert longer == f"EKS001 at {path} is now waived until 2027-03-31 instead of 2027-01-31: demo"
    assert review_of(shown[1], shown[0]).stacks[0].reasons == (), "a shorter one needs no attention"


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

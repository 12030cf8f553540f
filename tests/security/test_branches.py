"""What a user gains who can only push a branch."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from policy_sentry.querying.actions import get_action_data

from hpkit.plan.derive import derive
from hpkit.program.iam.account import AwsAccount
from hpkit.program.iam.deployer import calling_types, viewer_policies
from hpkit.program.recording import record
from tests import builders
from tests.changes.review.builders import review_of
from tests.security.evaluation import Request, allows, managed

ROOT = Path(__file__).parents[2]
WORKFLOWS = ROOT / ".github" / "workflows"
ACCOUNT = AwsAccount("aws", "us-west-2", "123456789012")
GITHUB = "token.actions.githubusercontent.com"


def trusts(page):
    """Return the trust policies that a page tells users to write."""
    blocks = re.findall(r"```json\n(.*?)```", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.DOTALL)
    found = [json.loads(block) for block in blocks if "AssumeRoleWithWebIdentity" in block]
    # GitHub or GitLab vouches for the principal, which has no resource.
    return [{"Statement": [{**each, "Resource": "*"} for each in document["Statement"]]} for document in found]


def assumes(trust, issuer, **claims):
    context = {f"{issuer}:{name}": value for name, value in claims.items()}
    return allows(Request("anybody", "sts:AssumeRoleWithWebIdentity", "*", context), identity=[trust])


@pytest.mark.parametrize(
    "subject",
    [
        "repo:acme/platform:environment:acme-dev",
        "repo:acme/platform:environment:acme-dev:ref:refs/heads/evil",
        "repo:acme/platform:environment:acme-dev:ref:refs/heads/main-evil",
        "repo:acme/platform:environment:acme-dev-preview:ref:refs/heads/main",
        "repo:acme/platform:pull_request",
        "repo:evil/platform:environment:acme-dev:ref:refs/heads/main",
    ],
)
def test_a_branchs_own_workflow_names_the_environment_and_takes_its_role(subject):
    (trust,) = trusts("guides/aws.md")
    assert not assumes(trust, GITHUB, aud="sts.amazonaws.com", sub=subject)
    main = "repo:acme/platform:environment:acme-dev:ref:refs/heads/main"
    assert assumes(trust, GITHUB, aud="sts.amazonaws.com", sub=main)


@pytest.mark.parametrize(
    ("audience", "branch"),
    [("https://gitlab.com/deploy", "evil"), ("https://gitlab.com/preview", "main"), ("https://gitlab.com", "main")],
)
def test_a_job_of_gitlab_that_only_looks_takes_the_role_that_deploys(audience, branch):
    (trust,) = trusts("guides/gitlab.md")
    subject = "project_path:acme/platform:ref_type:branch:ref:{}"
    assert not assumes(trust, "gitlab.com", aud=audience, sub=subject.format(branch))
    assert assumes(trust, "gitlab.com", aud="https://gitlab.com/deploy", sub=subject.format("main"))


def test_only_the_job_that_deploys_asks_gitlab_for_the_audience_that_deploys():
    text = (ROOT / "infra" / "hpkit" / "scaffold" / "templates" / "gitlab-ci.yml").read_text(encoding="utf-8")
    jobs = {name: job for name, job in yaml.safe_load(text).items() if isinstance(job, dict) and "script" in job}
    audiences = {name: job["id_tokens"]["AWS_TOKEN"]["aud"] for name, job in jobs.items() if "id_tokens" in job}
    assert {name for name, audience in audiences.items() if audience.endswith("/deploy")} == {"up"}
    assert set(audiences) == {"up", "preview", "drift"}


# Sources: GitHub's documentation, "OpenID Connect reference", example subject claims; GitLab's, "OpenID Connect (OIDC)
# authentication", `sub`. An environment, a pull request, a tag or a pattern doesn't identify the branch.
SUBJECT = re.compile(
    r"(?<![\w./-])(?:repo|repository|repository_owner|repository_id|project_path|project_id|namespace_path)"
    r":(?!/)[^\s\"'`,;()\[\]|]+"
)
CLAIMED_BY_MAIN = (
    re.compile(r"repo:[^/:*?]+/[^/:*?]+(?::environment:[^:*?]+)?:ref:refs/heads/main"),
    re.compile(r"project_path:[^:*?]+/[^/:*?]+:ref_type:branch:ref:main"),
)
CLAIM = re.compile(r"(?:githubusercontent\.com|gitlab[\w.-]*)[:/]sub\b|AssumeRoleWithWebIdentity")
PAGES = [
    *(ROOT / name for name in ("README.md", "SECURITY.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted(WORKFLOWS.glob("*.yml")),
]


def claimable(text):
    """Return the subjects in a text that principals other than the branch main can claim, in any notation.

    A block of code that names the claim without a whole subject is one too, because it composes the subject.
    """
    subjects = [subject.rstrip(".:") for subject in SUBJECT.findall(text)]
    bad = [each for each in subjects if not any(pattern.fullmatch(each) for pattern in CLAIMED_BY_MAIN)]
    blocks = [block for block in re.findall(r"```(.*?)```", text, re.DOTALL) if CLAIM.search(block)]
    ours = [block for block in blocks if "githubusercontent" in block or "gitlab" in block]
    return bad + [block for block in ours if not SUBJECT.search(block)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_tells_people_to_trust_what_a_branch_tag_pull_request_or_fork_can_claim(page):
    assert claimable(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "text",
    [
        "The roles trust `repo:<owner>/<repository>:environment:<stack>`; no key is stored.",
        "trust repo:acme/platform:pull_request.",
        '```hcl\nvalues = ["repo:acme/platform:*"]\n```',
        '```json\n{"gitlab.com:sub": "project_path:acme/platform:ref_type:tag:ref:v1"}\n```',
        "```yaml\ngitlab.com:sub: project_path:acme/*:ref_type:branch:ref:main\n```",
        "```yaml\nsub: [repo:acme/platform:ref:refs/heads/release-*]\n```",
        "repo:acme/platform:ref:refs/tags/v1",
        "repo:acme/*:ref:refs/heads/main",
        "repo:acme/platform:ref:refs/heads/main-evil",
        "repository_owner:acme",
        '```hcl\nvariable = "token.actions.githubusercontent.com:sub"\nvalues = [join(":", local.parts)]\n```',
        '```json\n{"Action": "sts:AssumeRoleWithWebIdentity", "gitlab.com:aud": "x"}\n```',
        '```hcl\nvalues = [format("repo:%s:environment:%s", var.repository, var.stack)]\n```',
    ],
)
def test_a_page_hides_such_a_subject_in_another_notation(text):
    assert claimable(text)


@pytest.fixture(scope="module")
def viewer():
    plan = derive(builders.typed(builders.organization()), "dev")
    types = calling_types(each.type for each in record(plan).resources.values())
    return [each.document for each in viewer_policies(plan, ACCOUNT, types)]


def test_the_role_that_previews_reads_the_whole_account(viewer):
    readable = [
        ("s3:GetObject", "arn:aws:s3:::payroll/salaries.csv"),
        ("dynamodb:Scan", "arn:aws:dynamodb:us-west-2:123456789012:table/customers"),
        ("logs:GetLogEvents", "arn:aws:logs:us-west-2:123456789012:log-group:/app:log-stream:x"),
        ("lambda:GetFunction", "arn:aws:lambda:us-west-2:123456789012:function:x"),
    ]
    for action, resource in readable:
        attack = Request("arn:aws:iam::123456789012:role/preview", action, resource)
        assert allows(attack, identity=[managed("ReadOnlyAccess")]), "so it was"
        assert not allows(attack, identity=viewer), action


def test_the_role_that_previews_changes_something(viewer):
    actions = {action for document in viewer for each in document["Statement"] for action in each["Action"]}
    assert {"ec2:DescribeVpcs", "eks:DescribeCluster", "iam:GetRole", "sagemaker:DescribeCluster"} <= actions
    for action in actions:
        service, _, name = action.partition(":")
        levels = {each["access_level"] for each in get_action_data(service, name)[service]}
        assert levels <= {"Read", "List"}, f"{action}: {levels}"


def test_no_page_gives_a_pipeline_read_only_access():
    for page in ROOT.glob("docs/**/*.md"):
        given = [line for line in page.read_text(encoding="utf-8").splitlines() if "`ReadOnlyAccess`" in line]
        assert all("Don't use" in line for line in given), page


def script_of(workflow, job, name):
    steps = yaml.safe_load((WORKFLOWS / workflow).read_text())["jobs"][job]["steps"]
    (found,) = [step for step in steps if step.get("name", "").startswith(name)]
    return found["run"]


def test_a_pull_request_brings_its_own_waivers_rules_and_links_to_the_judges_of_the_base(tmp_path):
    for path, text in {
        "stacks/acme.yaml": "base",
        "stacks/gone.yaml": "base",
        "stacks/teams/gone.yaml": "base",
        "stacks/acme.policy.json": "base",
        "policies/rules.py": "base",
        "change/stacks/acme.yaml": "change",
        "change/stacks/Pulumi.acme-dev.yaml": "change",
        "change/stacks/teams/nlp.yaml": "change",
        "change/stacks/acme.policy.json": "change",
        "change/policies/rules.py": "change",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    (tmp_path / "change/stacks/link.yaml").symlink_to("/etc/passwd")
    (tmp_path / "change/stacks/links").symlink_to("/etc")
    script = script_of("pull-request.yml", "base-rules", "Use the change's stacks")
    subprocess.run([shutil.which("bash"), "-e", "-c", script], cwd=tmp_path, check=True)
    left = {str(each.relative_to(tmp_path)): each.read_text() for each in tmp_path.rglob("*") if each.is_file()}
    assert left == {
        "stacks/acme.yaml": "change",
        "stacks/Pulumi.acme-dev.yaml": "change",
        "stacks/teams/nlp.yaml": "change",
        "stacks/acme.policy.json": "base",
        "policies/rules.py": "base",
    }


def test_the_judges_are_checked_out_of_what_the_change_is_merged_into():
    steps = yaml.safe_load((WORKFLOWS / "pull-request.yml").read_text())["jobs"]["base-rules"]["steps"]
    first, second = [step["with"] for step in steps if step.get("uses", "").startswith("actions/checkout@")]
    assert first["ref"] == "${{ github.event.pull_request.base.sha }}"
    assert "path" not in first
    assert second["path"] == "change"
    scripts = [step["run"] for step in steps if "run" in step]
    assert not any("change/" in script for script in scripts if "hpkit" in script or "make" in script)


def open_to_the_world(**waiver):
    data = builders.organization()
    data["environments"]["dev"]["eks"]["endpoint"]["publicCidrs"] = ["0.0.0.0/0"]
    path = "environments.dev.eks.endpoint.publicCidrs"
    data["environments"]["dev"]["waivers"] = [{"rule": "EKS001", "path": path, "reason": "demo", **waiver}]
    return data


def test_a_waiver_until_nobody_remembers_opens_the_api_to_the_world():
    assert {"EKS001", "WAI004"} <= builders.rules(open_to_the_world(until="2099-12-31"))
    assert builders.rules(open_to_the_world(until="2027-01-31")) & {"EKS001", "WAI004"} == set()


def test_a_new_or_longer_waiver_goes_unseen_by_the_review():
    shown = [builders.text_of(open_to_the_world(until=until)) for until in ("2027-01-31", "2027-03-31")]
    review = review_of(builders.text_of(builders.organization()), shown[0])
    (stack,) = review.stacks
    path = "environments.dev.eks.endpoint.publicCidrs"
    assert f"EKS001 at {path} is now waived until 2027-01-31: demo" in stack.reasons
    assert review.verdict != "ok"
    longer = review_of(*shown).stacks[0].reasons[0]
    assert longer == f"EKS001 at {path} is now waived until 2027-03-31 instead of 2027-01-31: demo"
    assert review_of(shown[1], shown[0]).stacks[0].reasons == (), "a shorter one is nothing to watch"


def test_up_does_something_else_than_what_was_approved():
    jobs = yaml.safe_load((WORKFLOWS / "deploy.yml").read_text())["jobs"]
    names = [step.get("name") for step in jobs["up"]["steps"]]
    assert names.index("Compare with the approved preview") == names.index("Up") - 1
    assert "exit 1" in script_of("deploy.yml", "up", "Compare with the approved preview")
    asked = [
        script_of("deploy.yml", job, name) for job, name in (("preview", "Save the preview"), ("up", "Compare with"))
    ]
    commands = {re.search(r'pulumi preview .*"\$STEPS"', script)[0] for script in asked}
    assert len(commands) == 1, "both say it in the same words"


@pytest.mark.skipif(not shutil.which("jq"), reason="the runner has jq")
def test_what_is_approved_names_every_step_and_no_value():
    wanted = yaml.safe_load((WORKFLOWS / "deploy.yml").read_text())["env"]["STEPS"]
    steps = [
        {"op": "update", "urn": "urn:b", "newState": {"inputs": {"password": "x"}}, "detailedDiff": {"tags": {}}},
        {"op": "same", "urn": "urn:c"},
        {"op": "delete", "urn": "urn:a"},
    ]
    asked = [shutil.which("jq"), "--sort-keys", wanted]
    said = subprocess.run(asked, input=json.dumps({"steps": steps}), capture_output=True, text=True, check=True).stdout
    assert json.loads(said) == [
        {"op": "delete", "urn": "urn:a", "changes": []},
        {"op": "update", "urn": "urn:b", "changes": ["tags"]},
    ]

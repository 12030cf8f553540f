"""Who can assume the roles of the pipelines, and what a pull request can waive."""

import json
import re
from pathlib import Path

import pytest
import yaml
from policy_sentry.querying.actions import get_action_data

from hpkit.plan.derive import derive
from hpkit.program.iam.deployer import calling_types, viewer_policies
from hpkit.program.iam.live import AwsAccount
from hpkit.program.recording import record
from tests import builders
from tests.changes.review.builders import review_of
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
    assert review_of(shown[1], shown[0]).verdict == "ok", "a shorter one needs no attention"

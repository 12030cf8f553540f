"""`hpkit aws team-policy`: its principals, its permissions, and its errors."""

import json

import pytest

from tests import builders
from tests.cli.invoke import hpkit
from tests.cli.test_validate import ROOT


def run(*arguments):
    return hpkit("aws", "team-policy", *arguments, cwd=ROOT)


def test_it_is_of_the_stacks_clusters_in_the_account_that_is_given(tmp_path):
    asked = ("aws", "team-policy", "--stack", "handson-dev", "--team", "john", "--account", "210987654321")
    done = hpkit(*asked, cwd=builders.copy_of_handson(tmp_path, builders.without_account))
    cluster, kubernetes, _ = json.loads(done.stdout)["Statement"]
    assert kubernetes["Resource"] == ["arn:aws:eks:us-west-2:210987654321:cluster/handson-dev"]
    assert cluster["Condition"]["StringEquals"] == {
        "aws:ResourceTag/hpkit:environment": "dev",
        "aws:ResourceTag/hpkit:organization": "handson",
    }
    assert "role/john-scientists" in done.stderr


def test_members_push_to_the_repositories_of_their_team_alone(tmp_path):
    def change(text):
        for name, wanted in (("john", "[train, serve]"), ("smith", "[others]")):
            text = text.replace(f"  - name: {name}\n", f"  - name: {name}\n    registry: {wanted}\n")
        return text

    done = hpkit(
        "aws", "team-policy", "--stack", "handson-dev", "--team", "john", cwd=builders.copy_of_handson(tmp_path, change)
    )
    statements = json.loads(done.stdout)["Statement"]
    pushing = [each for each in statements if "ecr:PutImage" in each["Action"]]
    assert [each["Resource"] for each in pushing] == [
        [f"arn:aws:ecr:us-west-2:123456789012:repository/handson-dev/john/{name}" for name in ("train", "serve")]
    ]
    (login,) = [each for each in statements if each["Action"] == ["ecr:GetAuthorizationToken"]]
    assert login["Resource"] == ["*"]


def test_without_an_account_it_says_that_it_allows_nothing(tmp_path):
    done = hpkit(
        "aws",
        "team-policy",
        "--stack",
        "handson-dev",
        "--team",
        "john",
        cwd=builders.copy_of_handson(tmp_path, builders.without_account),
    )
    assert "grants nothing yet:" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--stack", "handson-dev", "--team", "ann"),
            "handson-dev has no team ann with quota; teams with quota: john, smith",
        ),
        (("--stack", "handson-dev", "--team", "john", "--account", "1"), "which has 12 digits"),
        (("--stack", "enterprise-prod", "--team", "vision", "--account", "210987654321"), "belongs to account"),
        (("--stack", "enterprise-prod", "--team", "shared"), "has no team shared with quota"),
    ],
)
def test_what_cannot_be_is_said_with_what_can(arguments, message):
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in " ".join(done.stderr.split())

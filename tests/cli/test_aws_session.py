"""The session of the AWS SDK, and the message if no credentials exist."""

import json

import click
import pytest

from hpkit.cli.common.aws_session import aws_session, hint_of_local_cloud
from hpkit.errors import MissingClusterError
from tests import builders
from tests.builders import organization, text_of
from tests.cli.invoke import hpkit
from tests.cli.test_validate import HPKIT, ROOT


@pytest.fixture
def nobody(tmp_path, monkeypatch):
    """Return a repository and a shell without credentials."""
    (tmp_path / "Pulumi.yaml").write_text("name: hpkit\n")
    monkeypatch.chdir(tmp_path)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("SHELL", "/bin/bash")
    return tmp_path


def test_without_credentials_it_says_where_they_are_had(nobody):
    with pytest.raises(click.UsageError, match=r"no AWS credentials: .*with `aws sso login`$"):
        aws_session(None, "us-west-2")


def make(root, *names, stack="", of=""):
    for name in names:
        state = root / ".local" / name / "pulumi-state" / ".pulumi" / "stacks" / "hpkit"
        state.mkdir(parents=True)
        if name == of:
            made = {"type": "aws:ec2/vpc:Vpc", "custom": True}
            (state / f"{stack}.json").write_text(json.dumps({"checkpoint": {"latest": {"resources": [made]}}}))


def test_where_several_instances_are_it_names_the_one_with_the_stack_or_all(nobody):
    make(nobody, "one", "two", stack="acme-dev", of="two")
    two = 'eval "$(hpkit local env --name two)"'
    assert hint_of_local_cloud("acme-dev") == f"; for the local cloud: {two}"
    both = f'eval "$(hpkit local env --name one)" or {two}'
    assert hint_of_local_cloud() == f"; for the local cloud: {both}"
    command = click.Command("status", params=[click.Option(["--stack"])], callback=lambda **_: aws_session(None, "x"))
    with command.make_context("status", ["--stack", "acme-dev"]) as context, pytest.raises(click.UsageError) as said:
        command.invoke(context)
    assert str(said.value).endswith(two)


def test_a_cluster_that_is_missing_may_be_on_the_instance_that_has_the_stack(nobody, monkeypatch):
    def read(*_, **__):
        raise MissingClusterError("us-west-2 has no cluster train")

    (nobody / "stacks").mkdir()
    (nobody / "stacks" / "acme.yaml").write_bytes(text_of(organization()))
    make(nobody, "one", "two", stack="acme-dev", of="two")
    monkeypatch.setattr("hpkit.cluster.live.read.read", read)
    keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    answer = hpkit("cluster", "status", "--stack", "acme-dev", cwd=nobody, HPKIT_STACK="other-dev", **keys)
    hint = f'for the local cloud: eval "$({HPKIT} local env --name two)"'
    assert (answer.returncode, answer.stderr) == (1, f"error: us-west-2 has no cluster train; {hint}\n")


def test_where_the_local_cloud_has_an_instance_it_says_how_to_look_at_that(nobody):
    (nobody / ".local" / "handson-dev").mkdir(parents=True)
    with pytest.raises(click.UsageError, match=r'for the local cloud: eval "\$\(hpkit local env\)"$'):
        aws_session(None, "us-west-2")


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

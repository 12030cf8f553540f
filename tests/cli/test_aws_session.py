"""The session of the AWS SDK, and what is said where there is none."""

import click
import pytest

from hpkit.cli.aws_session import aws_session


@pytest.fixture
def nobody(tmp_path, monkeypatch):
    """A repository, and a shell without credentials."""
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
    with pytest.raises(click.UsageError, match=r"no AWS credentials: .*\(aws sso login\)$"):
        aws_session(None, "us-west-2")


def test_where_the_local_cloud_has_an_instance_it_says_how_to_look_at_that(nobody):
    (nobody / ".local" / "handson-dev").mkdir(parents=True)
    with pytest.raises(click.UsageError, match=r'for the local cloud: eval "\$\(hpkit local env\)"$'):
        aws_session(None, "us-west-2")

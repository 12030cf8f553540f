"""The session of the AWS SDK that a command calls with."""

from typing import TYPE_CHECKING

import click

from hpkit.errors import ToolError

if TYPE_CHECKING:
    from boto3 import Session

__all__ = ["aws_session"]


def aws_session(profile: str | None, region: str) -> "Session":
    """Return a session with credentials; raises click.UsageError where there are none, ToolError where they fail."""
    import boto3
    from botocore.exceptions import BotoCoreError, ProfileNotFound

    try:
        session = boto3.Session(profile_name=profile, region_name=region)
        found = session.get_credentials()
    except ProfileNotFound as error:
        known = ", ".join(boto3.Session().available_profiles) or "none"
        raise click.UsageError(f"{error} (known: {known})") from None
    except BotoCoreError as error:
        raise ToolError(f"{error} (credentials are those of the AWS SDK: --profile, AWS_PROFILE, …)") from None
    if found is None:
        raise click.UsageError("no AWS credentials: name a --profile, or set AWS_PROFILE, or log in (aws sso login)")
    return session

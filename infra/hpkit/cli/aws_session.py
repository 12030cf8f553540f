"""The session of the AWS SDK that a command calls with."""

from typing import TYPE_CHECKING

import click

from hpkit.cli.local_common import called
from hpkit.cli.local_shells import own_shell, to_use
from hpkit.errors import ToolError
from hpkit.project import project_root

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
        on_aws = "name a --profile, or set AWS_PROFILE, or log in (aws sso login)"
        raise click.UsageError(f"no AWS credentials: {on_aws}{_for_the_local_cloud()}")
    return session


def _for_the_local_cloud() -> str:
    """Return how to look at the local cloud instead, where the repository has one."""
    if not any((project_root() / ".local").glob("*")):
        return ""
    return f"; for the local cloud: {to_use(own_shell(), f'{called()} local env')}"

"""The session of the AWS SDK that a command calls with."""

from typing import TYPE_CHECKING

import click

from hpkit.cli.common.output import line_to_use
from hpkit.errors import ToolError
from hpkit.extensions import extension, is_installed
from hpkit.project import project_root

if TYPE_CHECKING:
    from boto3 import Session

__all__ = ["STACK", "aws_session", "hint_of_local_cloud"]

# The name under which a command keeps the stack that it asks AWS about, for messages about a failure.
STACK = "hpkit.stack"


def aws_session(profile: str | None, region: str) -> "Session":
    """Return a session with credentials; raises click.UsageError where there are none, ToolError where they fail."""
    context = click.get_current_context(silent=True)
    stack = context.params.get("stack") if context is not None else None
    if context is not None:
        context.meta[STACK] = stack
    import boto3
    from botocore.exceptions import BotoCoreError, ProfileNotFound

    try:
        session = boto3.Session(profile_name=profile, region_name=region)
        credentials = session.get_credentials()
    except ProfileNotFound as error:
        profiles = ", ".join(boto3.Session().available_profiles) or "none"
        raise click.UsageError(f"{error} (known: {profiles})") from None
    except BotoCoreError as error:
        raise ToolError(f"{error} (credentials come from the AWS SDK, such as --profile or AWS_PROFILE)") from None
    if credentials is None:
        on_aws = "set AWS_PROFILE (or --profile), or log in with `aws sso login`"
        raise click.UsageError(f"no AWS credentials: {on_aws}{hint_of_local_cloud(stack)}")
    return session


def hint_of_local_cloud(stack: str | None = None) -> str:
    """Return the command for the local cloud of the stack, if the repository has one.

    If several local clouds match, each has its line.
    """
    root = project_root()
    if not any((root / ".local").glob("*")) or not is_installed("local-clouds"):
        return ""
    found = extension("local-clouds")(root)
    with_stack = [each for each in found if any(there.name == stack for there in each.stacks)]
    names = [each.cloud.name for each in with_stack or found] if len(found) > 1 else [""]
    return f"; for the local cloud: {' or '.join(map(line_to_use, names))}"

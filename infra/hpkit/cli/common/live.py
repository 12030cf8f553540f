"""Common parts of the commands for a running platform: stack, credentials, and warnings about unread data."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from hpkit.cli.common.aws_session import aws_session
from hpkit.cli.common.completion import stack_option
from hpkit.errors import HpkitError, ToolError
from hpkit.plan.model import Plan
from hpkit.program.iam.commands import COMMANDS
from hpkit.text.formatting import seconds_in

if TYPE_CHECKING:
    from boto3 import Session

    from hpkit.cluster.live.kubernetes import Kubernetes
    from hpkit.cluster.live.model import Observed, Platform
    from hpkit.cluster.live.read import AwsPart

Command = TypeVar("Command", bound=Callable[..., object])

__all__ = [
    "kubernetes_api",
    "observe",
    "observe_instances",
    "platform_options",
    "profile_option",
    "rights",
    "seconds_of",
]

# Ten years, so that all times are valid dates.
_MOST_SECONDS: Final = 3650 * 86400


def profile_option(command: Command) -> Command:
    """Add the option for the AWS configuration profile."""
    return click.option("--profile", metavar="P", help="AWS configuration profile. Default: the AWS SDK's choice.")(
        command
    )


def platform_options(command: Command) -> Command:
    """Add the options that say which platform is looked at."""
    return stack_option("Running stack; required if the project has several")(profile_option(command))


def rights(name: str) -> str:
    """Return a command's required permissions, for the end of its help."""
    needed = COMMANDS[name]
    verbs: dict[str, list[str]] = {}
    for verb, resource in needed.kubernetes:
        verbs.setdefault(verb, []).append(resource)
    inside = "; ".join(f"{verb} {', '.join(resources)}" for verb, resources in verbs.items())
    return f"IAM permissions: {', '.join(sorted(needed.iam))}. Kubernetes permissions: {inside or 'none'}."


def observe(
    plan: Plan,
    profile: str | None,
    *,
    aws: Collection[AwsPart] | None = None,
    settings: bool = False,
    on_workload: Callable[[Mapping[str, Any]], None] | None = None,
) -> Observed:
    """Return the current state of a plan's platform; what could not be read is reported on standard error.

    aws, settings and on_workload are those of `read`; aws None is all.
    """
    from hpkit.cluster.live.read import AWS_PARTS, read

    session = aws_session(profile, plan.spec.region)
    parts = AWS_PARTS if aws is None else aws
    namespaces = [team.namespace for team in plan.teams]
    observed = read(
        session,
        cluster=plan.spec.cluster.name,
        eks=plan.eks_name,
        aws=parts,
        settings=settings,
        namespaces=namespaces,
        on_workload=on_workload,
    )
    for each in observed.unknown:
        click.echo(f"warning: not read: {each}", err=True)
    if plan.manages_topology and not plan.topology_aware_scheduling:
        # Kueue ignores topologies, of flavors and in requests.
        flavors = {name: replace(each, topology=None) for name, each in observed.flavors.items()}
        return replace(observed, flavors=flavors)
    return observed


def observe_instances(plan: Plan, profile: str | None) -> Platform | None:
    """Return the cluster with its instances and the logs of failed ones; None if the caller can't list them."""
    from hpkit.cluster.live.read import instances

    return instances(aws_session(profile, plan.spec.region), plan.spec.cluster.name)


@contextmanager
def kubernetes_api(session: Session, eks: Mapping[str, Any], *, needs: str) -> Iterator[Kubernetes]:
    """Return a client of the Kubernetes API of an EKS cluster, from its DescribeCluster.

    Any failure is a ToolError; needs: the caller's required permissions, as text.
    """
    from kubernetes.client import ApiException

    from hpkit.clients.kubernetes import KUBERNETES_ERRORS, api_client
    from hpkit.cluster.live.kubernetes import Kubernetes, message_of

    try:
        with api_client(session, eks) as client:
            yield Kubernetes(client)
    except HpkitError:
        raise
    except ApiException as error:
        raise ToolError(
            f"the Kubernetes API rejects the request: {message_of(error)}. Use a role that can {needs}"
        ) from None
    except KUBERNETES_ERRORS as error:
        raise ToolError(
            f"the Kubernetes API of {eks['name']} doesn't respond ({error}). Run the command from a network that can "
            "reach it"
        ) from None


def seconds_of(_context: click.Context, _option: click.Parameter, text: str | None) -> int | None:
    """Return the seconds of a duration that an option gives, such as `90s` or `30d`."""
    if text is None:
        return None
    try:
        seconds = int(seconds_in(text))
    except ValueError:
        seconds = 0
    if not 0 < seconds <= _MOST_SECONDS:
        raise click.BadParameter(f"{text}: write a number with its unit, such as 90s, 15m, 2h or 3d, at most 3650d")
    return seconds

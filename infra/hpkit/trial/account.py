"""The account in which a trial runs: the caller, a zone, and what an hour costs."""

from __future__ import annotations

import os
from collections import defaultdict
from contextlib import suppress
from decimal import Decimal
from typing import Final

from boto3 import Session
from botocore.exceptions import BotoCoreError, ClientError

from hpkit.catalog.prices import HOURS_PER_MONTH
from hpkit.changes.review.cost import maximum_cost, platform_cost
from hpkit.clients.calls import FailedCall
from hpkit.clients.network import find_address
from hpkit.errors import ToolError
from hpkit.plan.model import Plan
from hpkit.trial.organization import NAME, STACK, TAGGED, TYPES, Place
from hpkit.trial.site import Site

__all__ = ["admit", "hourly_cost", "place_of", "require_no_trial"]

# For the local cloud, which admits every caller: from a documentation range (RFC 5737).
_ANY_ADDRESS: Final = "203.0.113.7"


def place_of(session: Session) -> Place:
    """Return the caller, a zone of the session's region, and this machine's address. Raises ToolError."""
    try:
        caller = session.client("sts").get_caller_identity()
        zones = session.client("ec2").describe_availability_zones(
            Filters=[
                {"Name": "zone-type", "Values": ["availability-zone"]},
                {"Name": "state", "Values": ["available"]},
            ]
        )["AvailabilityZones"]
        offered = _offered(session)
        principal = _principal(session, str(caller["Arn"]))
    except (BotoCoreError, ClientError) as error:
        raise ToolError(f"the account can't be read, and nothing was created: {error}") from None
    address = find_address(os.environ.get("AWS_ENDPOINT_URL", ""))
    if isinstance(address, FailedCall):
        raise ToolError(
            f"this machine's public address can't be determined ({address.action}: {address.message}), and the "
            "Kubernetes API would admit no one. Run the trial from a network with internet access"
        )
    names = {str(each["ZoneName"]) for each in zones}
    # Which zone `a` is differs between accounts: in us-east-1 it can be one that has neither these types nor EKS.
    suited = {name for name in names if len(offered[name]) == len(TYPES)}
    zone = min(suited or names)
    return Place(str(session.region_name), zone, str(caller["Account"]), principal, address or _ANY_ADDRESS)


def require_no_trial(session: Session) -> None:
    """Raise ToolError if the region has another trial's VPC: this one's teardown would delete that platform too."""
    try:
        vpcs = [str(vpc["VpcId"]) for vpc in session.client("ec2").describe_vpcs(Filters=TAGGED)["Vpcs"]]
    except (BotoCoreError, ClientError) as error:
        raise ToolError(f"the account can't be read, and nothing was created: {error}") from None
    if vpcs:
        raise ToolError(
            f"another trial is running in {session.region_name}, or left resources: {', '.join(vpcs)}. If none is "
            "running, run `hpkit aws trial` with its --directory. If that folder is lost, delete the resources with "
            f"the tag hpkit:organization={NAME}"
        )


def admit(site: Site) -> None:
    """Let this machine call the cluster's Kubernetes API if its address has changed: Pulumi deletes charts only there.

    What can't be read or changed stays as it is. Raises StepError if the trial must end.
    """
    address = find_address(os.environ.get("AWS_ENDPOINT_URL", ""))
    if isinstance(address, FailedCall) or not address:
        return
    eks = site.session.client("eks")
    with suppress(BotoCoreError, ClientError):
        admitted = eks.describe_cluster(name=STACK)["cluster"]["resourcesVpcConfig"].get("publicAccessCidrs") or []
        if not {f"{address}/32", "0.0.0.0/0"}.isdisjoint(admitted):
            return
        access = {"publicAccessCidrs": [*admitted, f"{address}/32"]}
        update = eks.update_cluster_config(name=STACK, resourcesVpcConfig=access)["update"]["id"]
        site.wait(
            lambda: eks.describe_update(name=STACK, updateId=update)["update"]["status"] != "InProgress",
            f"the cluster's endpoint to admit {address}",
        )


def _offered(session: Session) -> defaultdict[str, set[str]]:
    """Return which of the trial's instance types each zone offers."""
    types = [name.removeprefix("ml.") for name in TYPES]
    pages = (
        session.client("ec2")
        .get_paginator("describe_instance_type_offerings")
        .paginate(LocationType="availability-zone", Filters=[{"Name": "instance-type", "Values": types}])
    )
    offered = defaultdict[str, set[str]](set)
    for page in pages:
        for each in page["InstanceTypeOfferings"]:
            offered[str(each["Location"])].add(str(each["InstanceType"]))
    return offered


def _principal(session: Session, arn: str) -> str:
    """Return the ARN of the caller's role, which its session's ARN lacks the path of, or of its user.

    Raises ToolError for others: a session of GetFederationToken can't call IAM or AssumeRole, and root users can't
    assume roles. Sources: https://docs.aws.amazon.com/STS/latest/APIReference/API_GetFederationToken.html and
    https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html
    """
    partition, account, resource = arn.split(":")[1], arn.split(":")[4], arn.split(":", 5)[5]
    if resource == "root":
        raise ToolError("these are the credentials of the account's root user. Use those of a role or a user")
    if resource.startswith("user/"):
        return f"arn:{partition}:iam::{account}:{resource}"
    if not resource.startswith("assumed-role/"):
        raise ToolError(
            f"these are the credentials of {arn}, which can't create or assume roles. Use those of a role or a user"
        )
    role = session.client("iam").get_role(RoleName=resource.split("/")[1])["Role"]
    return str(role["Arn"])


def hourly_cost(plan: Plan) -> tuple[Decimal, tuple[str, ...]]:
    """Return US dollars per hour while everything exists, Karpenter's nodes included, and what has no known price."""
    costs = (maximum_cost(plan), platform_cost(plan))
    return sum((cost.known for cost in costs), Decimal(0)) / HOURS_PER_MONTH, tuple(
        label for cost in costs for label in (*cost.unknown, *cost.unbounded)
    )

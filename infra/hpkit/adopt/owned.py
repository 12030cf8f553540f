"""Whether a resource whose ID consists of inputs exists, and has a stack's tags."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import boto3
    from botocore.exceptions import ClientError

__all__ = ["is_missing", "is_owned", "tags_of"]

_Props = Mapping[str, Any]
_LiveTags = Callable[[Any, _Props], Mapping[str, str] | None]
# Instead of tags: the resource is part of another, and has none.
_PART: Final[Mapping[str, str]] = {}


def is_owned(session: boto3.Session, resource_type: str, inputs: _Props, tags: Mapping[str, str]) -> bool:
    """Return whether the resource exists with these tags. Raises botocore's ClientError.

    Resources without tags belong to the stack if they're part of one of its resources.
    """
    from botocore.exceptions import ClientError

    try:
        live_tags = _LIVE_TAGS[resource_type](session, inputs)
    except ClientError as error:
        if error.response["Error"]["Code"] == "NoSuchTagSet":  # killed between CreateBucket and PutBucketTagging
            return True
        if is_missing(error):
            return False
        raise
    return live_tags is _PART or (live_tags is not None and tags.items() <= live_tags.items())


def is_missing(error: ClientError) -> bool:
    """Return whether a call failed because the resource doesn't exist."""
    code = error.response["Error"]["Code"]
    return "NotFound" in code or "NoSuch" in code


def tags_of(tags: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Return the tags of a response by key."""
    return {tag["Key"]: tag["Value"] for tag in tags}


def _alert_manager(session: boto3.Session, inputs: _Props) -> Mapping[str, str]:
    session.client("amp").describe_alert_manager_definition(workspaceId=inputs["workspaceId"])
    return _PART


def _log_group(session: boto3.Session, inputs: _Props) -> Mapping[str, str] | None:
    client = session.client("logs")
    groups = client.describe_log_groups(logGroupNamePrefix=inputs["name"])["logGroups"]
    for group in groups:
        if group["logGroupName"] == inputs["name"]:
            arn = group["arn"].removesuffix(":*")
            tags: Mapping[str, str] = client.list_tags_for_resource(resourceArn=arn)["tags"]
            return tags
    return None


def _repository(session: boto3.Session, inputs: _Props) -> Mapping[str, str]:
    client = session.client("ecr")
    (repository,) = client.describe_repositories(repositoryNames=[inputs["name"]])["repositories"]
    return tags_of(client.list_tags_for_resource(resourceArn=repository["repositoryArn"])["tags"])


def _in_table(member: str, key: str, name: str) -> _LiveTags:
    """Return the search for an entry of a route table whose key has the value of an input."""

    def find(session: boto3.Session, inputs: _Props) -> Mapping[str, str] | None:
        (table,) = session.client("ec2").describe_route_tables(RouteTableIds=[inputs["routeTableId"]])["RouteTables"]
        return _PART if inputs[name] in [each.get(key) for each in table[member]] else None

    return find


_LIVE_TAGS: Final[Mapping[str, _LiveTags]] = {
    "aws:amp/alertManagerDefinition:AlertManagerDefinition": _alert_manager,
    "aws:cloudwatch/logGroup:LogGroup": _log_group,
    "aws:ec2/route:Route": _in_table("Routes", "DestinationCidrBlock", "destinationCidrBlock"),
    "aws:ec2/routeTableAssociation:RouteTableAssociation": _in_table("Associations", "SubnetId", "subnetId"),
    "aws:ecr/repository:Repository": _repository,
    "aws:eks/accessEntry:AccessEntry": lambda session, inputs: session.client("eks").describe_access_entry(
        clusterName=inputs["clusterName"], principalArn=inputs["principalArn"]
    )["accessEntry"]["tags"],
    "aws:eks/addon:Addon": lambda session, inputs: session.client("eks").describe_addon(
        clusterName=inputs["clusterName"], addonName=inputs["addonName"]
    )["addon"]["tags"],
    "aws:eks/cluster:Cluster": lambda session, inputs: session.client("eks").describe_cluster(name=inputs["name"])[
        "cluster"
    ]["tags"],
    "aws:iam/role:Role": lambda session, inputs: tags_of(
        session.client("iam").list_role_tags(RoleName=inputs["name"])["Tags"]
    ),
    "aws:s3/bucket:Bucket": lambda session, inputs: tags_of(
        session.client("s3").get_bucket_tagging(Bucket=inputs["bucket"])["TagSet"]
    ),
}

"""Tags that an organization requires, and adds automatically if it sets their values."""

import json
from collections.abc import Mapping
from typing import Any, Final

from hpkit.text.formatting import listing
from hpkit_policies.model import (
    UNKNOWN,
    Parameter,
    Policy,
    Resource,
    Results,
    Settings,
    UnknownInputError,
    Violation,
    is_known,
)

__all__ = ["POLICIES"]

# Tags of the plugin's resources are a list of {key, value}, as in the SageMaker API; all others have a map.
_LISTED: Final = ("hyperpod:index:Cluster", "hyperpod:index:ClusterSchedulerConfig", "hyperpod:index:ComputeQuota")
_MAPPED: Final = (
    "aws:cloudwatch/logGroup:LogGroup",
    "aws:ec2/eip:Eip",
    "aws:ec2/internetGateway:InternetGateway",
    "aws:ec2/natGateway:NatGateway",
    "aws:ec2/routeTable:RouteTable",
    "aws:ec2/securityGroup:SecurityGroup",
    "aws:ec2/subnet:Subnet",
    "aws:ec2/vpc:Vpc",
    "aws:ec2/vpcEndpoint:VpcEndpoint",
    "aws:ecr/repository:Repository",
    "aws:eks/accessEntry:AccessEntry",
    "aws:eks/addon:Addon",
    "aws:eks/cluster:Cluster",
    "aws:eks/podIdentityAssociation:PodIdentityAssociation",
    "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation",
    "aws:fsx/lustreFileSystem:LustreFileSystem",
    "aws:iam/policy:Policy",
    "aws:iam/role:Role",
    "aws:kms/key:Key",
    "aws:s3/bucket:Bucket",
    "aws:s3/bucketV2:BucketV2",
)
_KEYS = Parameter(
    "keys",
    "Required tags.",
    {"type": "array", "items": {"type": "string", "minLength": 1}},
    ["hpkit:organization", "hpkit:environment"],
)
_VALUES = Parameter(
    "values",
    "Values of tags to add where they're missing, if the level of this policy is remediate.",
    {"type": "object", "additionalProperties": {"type": "string"}},
    {},
)


def _tagged(resource: Resource, settings: Settings) -> Results:
    missing = _missing(resource, settings[_KEYS.name])
    if missing:
        yield Violation(
            f"`{resource.name}` has no tag {listing(missing)}",
            "Add it. To have it added automatically, set its value in the parameter values, and the level to "
            "remediate.",
            property_path="tags",
        )


def _tag(resource: Resource, settings: Settings) -> Mapping[str, Any]:
    missing = {key: settings[_VALUES.name][key] for key in _missing(resource, settings[_VALUES.name])}
    # A tag whose value isn't known yet can't be written back.
    if not missing or not is_known(resource.get_or_unknown("tags", [])):
        return {}
    if resource.type in _LISTED:
        added = [{"key": key, "value": value} for key, value in missing.items()]
        return {"tags": [*resource.get("tags", []), *added]}
    return {"tags": {**resource.get("tags", {}), **missing}}


def _missing(resource: Resource, keys: Any) -> list[str]:
    # With `manageTags: false`, a resource keeps the tags that it has.
    if "tags" in resource.ignored:
        return []
    tags = resource.get_or_unknown("tags", [])
    # Only keys count here; values can come from elsewhere.
    own = [tag.get("key") if isinstance(tag, Mapping) else tag for tag in tags] if isinstance(tags, list) else tags
    if tags is UNKNOWN or UNKNOWN in own:
        raise UnknownInputError("tags")
    return [key for key in keys if key not in own and key not in _inherited(resource)]


def _inherited(resource: Resource) -> Mapping[str, Any]:
    """Return the tags that the provider adds to all its resources; nested inputs of a provider are JSON text."""
    given = resource.provider.get("defaultTags")
    default = json.loads(given) if isinstance(given, str) else given
    tags = default.get("tags") if isinstance(default, Mapping) else None
    return tags if isinstance(tags, Mapping) else {}


POLICIES = (
    Policy(
        name="mandatory-tags",
        description="Resources have the tags that the organization requires, except where the program ignores tags.",
        types=(*_LISTED, *_MAPPED),
        validate=_tagged,
        remediate=_tag,
        parameters=(_KEYS, _VALUES),
    ),
)

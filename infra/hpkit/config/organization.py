"""The root of an organization file, and one environment."""

import datetime
from typing import Annotated, Literal

from pydantic import Field

from hpkit.config.addons import Addon
from hpkit.config.autoscaling import Autoscaling
from hpkit.config.base import Api, Model, Name
from hpkit.config.cluster import Cluster
from hpkit.config.governance import ClusterPolicy, Governance, Team
from hpkit.config.inference import Inference
from hpkit.config.network import Eks, Network
from hpkit.config.observability import Observability
from hpkit.config.registry import Registry
from hpkit.config.storage import Storage

__all__ = ["AllowDelete", "Environment", "Organization", "Waiver"]


ENVIRONMENT_PATTERN = r"^[a-z0-9]+$"


class Waiver(Model):
    """A rule that is knowingly broken, for a reason and until a day."""

    rule: str = Field(pattern=r"^[A-Z]{3}[0-9]{3}$", description="Rule id, such as CAP005.")
    path: str = Field(min_length=1, description="The finding's path, or one above it.")
    reason: str = Field(min_length=1, description="Why, for whoever reads it next year.")
    until: Annotated[datetime.date, Field(strict=False)] = Field(
        description="Last day on which it holds, such as `2027-01-31`."
    )


class AllowDelete(Model):
    """What a change may delete with everything on it, named one by one; without it such a preview fails."""

    instance_groups: tuple[str, ...] = Field(
        default=(), description="Instance groups that may leave although they have instances."
    )
    teams: tuple[str, ...] = Field(
        default=(), description="Teams that may lose their quota in this environment, and what waits in their queue."
    )
    node_pools: tuple[str, ...] = Field(
        default=(), description="NodePools that may leave: Karpenter evicts what runs on their nodes, and ends those."
    )
    addons: tuple[str, ...] = Field(
        default=(),
        description="Add-ons (`keda` and the chart `hyperpod-dependencies` too) that may leave, with all objects of "
        "the kinds that they brought.",
    )
    nat_gateways: tuple[str, ...] = Field(
        default=(), description="NAT gateways that may leave, with their public addresses: `nat`, `nat-us-west-2a`."
    )
    repositories: tuple[str, ...] = Field(
        default=(),
        description="Repositories of teams that may leave, such as `john/train`: delete their images first, ECR "
        "deletes none that has any.",
    )


class Environment(Model):
    """One stack: complete in itself."""

    region: str = Field(pattern=r"^[a-z]{2}(?:-[a-z]+)+-[0-9]+$", description="AWS region, such as `us-west-2`.")
    account: str | None = Field(
        default=None,
        pattern=r"^[0-9]{12}$",
        description="AWS account, 12 digits in quotes: with credentials of any other one nothing is read or changed. "
        "Absent: whichever the credentials are of.",
    )
    deployers: tuple[Annotated[str, Api("RoleArn")], ...] = Field(
        default=(),
        description="IAM roles that run `pulumi up` and `destroy`: beside `eks.administrators` the only ones that may "
        "write to the lifecycle bucket or change its policy. Absent: whoever ran the last `up`, and the policy can be "
        "changed by others.",
    )
    permissions_boundary: str | None = Field(
        default=None,
        pattern=r"^arn:aws[a-z-]*:iam::(?:[0-9]{12}|aws):policy/[\w+=,.@/-]+$",
        description="IAM policy that bounds every role that the kit makes. Who deploys by `hpkit aws deployer-policy` "
        "can then make no role without it, and take it from none.",
    )
    network: Network = Field(description="VPC, zones, way out.")
    eks: Eks = Field(description="The EKS cluster.")
    cluster: Cluster = Field(description="The HyperPod cluster.")
    storage: Storage | None = Field(default=None, description="Keys and file systems; absent = a bucket with SSE-S3.")
    registry: Registry | None = Field(
        default=None, description="What holds for the repositories that teams have in `registry`."
    )
    autoscaling: Autoscaling | None = Field(default=None, description="Managed Karpenter; absent = off.")
    governance: Governance | None = Field(default=None, description="Task governance; absent = off.")
    observability: Observability | None = Field(default=None, description="Metrics; absent = off.")
    inference: Inference | None = Field(default=None, description="The inference operator; absent = none.")
    addons: dict[str, Addon] = Field(
        default={}, description="EKS add-on → version, over the kit's default pins, or a map with its configuration."
    )
    manage_tags: bool = Field(
        default=True,
        description="False: the kit sets no tags and changes none, so that what is there keeps its own. Several "
        "HyperPod add-ons work only on resources with the tag `SageMaker: true`.",
    )
    protect: bool = Field(default=False, description="Deletion protection for cluster, EKS, VPC, buckets.")
    allow_replace: tuple[
        Literal["bucket", "cluster", "eks", "fileSystem", "grafana", "key", "prometheus", "vpc"], ...
    ] = Field(default=(), description="What a change may replace; without it such a preview fails.")
    allow_delete: AllowDelete = Field(
        default=AllowDelete(), description="What a change may delete; without it such a preview fails."
    )
    waivers: tuple[Waiver, ...] = Field(default=(), description="Rules that do not hold here for a while.")


class Organization(Model):
    """One organization file: who shares, and each environment."""

    organization: Name = Field(description="Name; stacks are called `<organization>-<environment>`.")
    tags: dict[Annotated[str, Api("TagKey")], Annotated[str, Api("TagValue")]] = Field(
        default={},
        description="Tags of every resource, where an environment's manageTags is true: letters, digits, spaces and "
        "_ . : / = + - @.",
        max_length=50,
    )
    cluster_policy: ClusterPolicy = Field(
        default=ClusterPolicy(), description="Policy of every environment that states none."
    )
    teams: tuple[Team, ...] = Field(default=(), description="Who exists, and how they share.")
    environments: dict[Annotated[str, Field(pattern=ENVIRONMENT_PATTERN, max_length=20)], Environment] = Field(
        description="Name → environment; letters and digits, since a stack's name is split at its last `-`.",
        min_length=1,
    )

"""The root of an organization file, and one environment."""

import datetime
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import Field, model_validator

from hpkit.config.models.addons import Addon
from hpkit.config.models.autoscaling import Autoscaling
from hpkit.config.models.base import Api, Model, Name
from hpkit.config.models.cluster import Cluster
from hpkit.config.models.governance import ClusterPolicy, Governance, Team
from hpkit.config.models.inference import Inference
from hpkit.config.models.network import Eks, Network
from hpkit.config.models.observability import Observability
from hpkit.config.models.registry import Registry
from hpkit.config.models.spaces import Spaces
from hpkit.config.models.storage import Storage

__all__ = ["FOR_ENVIRONMENTS", "KEYS_OF_FILES", "MOST_PATTERNS", "AllowDelete", "Environment", "Organization", "Waiver"]

FOR_ENVIRONMENTS: Final = "environmentDefaults"
# Key that names other files → the keys that those files can have.
KEYS_OF_FILES: Final[Mapping[str, tuple[str, ...]]] = {
    "include": ("teams",),
    "defaults": ("tags", "clusterPolicy", FOR_ENVIRONMENTS),
}
# Each is compared with the names in its folder.
MOST_PATTERNS: Final = 100

ENVIRONMENT_PATTERN = r"^[a-z0-9]+$"
REGION_PATTERN = r"^[a-z]{2}(?:-[a-z]+)+-[0-9]+$"


class Waiver(Model):
    """An accepted violation of a rule, with a reason and an end date."""

    rule: str = Field(pattern=r"^[A-Z]{3}[0-9]{3}$", description="Rule ID, such as CAP005.", examples=["CAP005"])
    path: str = Field(
        min_length=1,
        description="The finding's path, or one that contains it.",
        examples=["environments.dev.governance"],
    )
    reason: str = Field(
        min_length=1,
        description="Reason for the waiver.",
        examples=["The second half of the nodes is for a team that joins in January"],
    )
    until: Annotated[datetime.date, Field(strict=False)] = Field(
        description="Last day of the waiver, such as `2027-01-31`.", examples=["2027-01-31"]
    )


class AllowDelete(Model):
    """Resources that a change may delete, by name. Otherwise the preview fails."""

    instance_groups: tuple[str, ...] = Field(
        default=(), description="Instance groups that may be deleted with their instances.", examples=["gpu"]
    )
    teams: tuple[str, ...] = Field(
        default=(),
        description="Teams whose quota and jobs, including running ones, may be deleted in this environment.",
        examples=["john"],
    )
    node_pools: tuple[str, ...] = Field(
        default=(),
        description="NodePools that may be deleted. Karpenter evicts their pods and terminates their nodes.",
        examples=["inference"],
    )
    addons: tuple[str, ...] = Field(
        default=(),
        description="Add-ons, `keda`, `operators`, or the chart `hyperpod-dependencies`, that may be deleted with all "
        "objects of their kinds.",
        examples=["keda"],
        json_schema_extra={"values": "addonsAndCharts"},
    )
    nat_gateways: tuple[str, ...] = Field(
        default=(),
        description="NAT gateways that may be deleted with their public addresses: `nat`, `nat-us-west-2a`.",
        examples=["nat"],
    )
    repositories: tuple[str, ...] = Field(
        default=(),
        description="Repositories of teams that may be deleted, such as `john/train`. Delete their images first.",
        examples=["john/train"],
    )


class Environment(Model):
    """One environment, which is one stack."""

    region: str = Field(
        pattern=REGION_PATTERN,
        description="AWS region, such as `us-west-2`.",
        examples=["us-west-2"],
        json_schema_extra={"values": "regionNames"},
    )
    account: str | None = Field(
        default=None,
        pattern=r"^[0-9]{12}$",
        description="AWS account, 12 digits in quotes. Credentials of other accounts are rejected. Default: any "
        "account.",
        examples=["123456789012"],
    )
    deployers: tuple[Annotated[str, Api("RoleArn")], ...] = Field(
        default=(),
        description="IAM roles that run `pulumi up` and `destroy`. Only they and `eks.administrators` may write "
        "to the lifecycle bucket or change its policy. Default: the role of the last `up`; others can "
        "change the policy.",
        examples=["arn:aws:iam::123456789012:role/deployer"],
    )
    permissions_boundary: str | None = Field(
        default=None,
        pattern=r"^arn:aws[a-z-]*:iam::(?:[0-9]{12}|aws):policy/[A-Za-z0-9_+=,.@/-]+$",
        description="IAM policy that limits every role of the stack. Deployers with the policies of `hpkit aws "
        "deployer-policy` can't create a role without it or remove it.",
        examples=["arn:aws:iam::123456789012:policy/boundary"],
    )
    network: Network = Field(
        default=Network(), description="VPC, zones, and access to the internet. Not with `cluster: {existing: true}`."
    )
    eks: Eks = Field(description="The EKS cluster.")
    cluster: Cluster = Field(description="The HyperPod cluster.")
    storage: Storage | None = Field(
        default=None, description="Keys and file systems. Default: a bucket that is encrypted with SSE-S3."
    )
    registry: Registry | None = Field(default=None, description="Settings for the repositories in `teams[].registry`.")
    autoscaling: Autoscaling | None = Field(default=None, description="Managed Karpenter and KEDA. Default: off.")
    governance: Governance | None = Field(default=None, description="Task governance. Default: off.")
    observability: Observability | None = Field(
        default=None, description="Metrics. Default: CloudWatch metrics, or none for an existing EKS cluster."
    )
    inference: Inference | None = Field(
        default=None, description="The inference operator, with its roles and the add-ons that it needs. Default: none."
    )
    spaces: Spaces | None = Field(default=None, description="JupyterLab and Code Editor. Default: off.")
    addons: dict[str, Addon] = Field(
        default={},
        description="EKS add-ons. The value is a version, which replaces hpkit's pin, or a map with the configuration.",
        examples=[{"coredns": "v1.13.1-eksbuild.1"}],
        json_schema_extra={"keys": "addonNames"},
    )
    operators: tuple[Literal["kuberay-operator", "lws"], ...] = Field(
        default=(),
        description="Operators of jobs, from pinned charts. kuberay-operator: RayJob, RayCluster and RayService. lws: "
        "LeaderWorkerSet, for models that span instances. Default: none.",
        examples=["kuberay-operator"],
    )
    manage_tags: bool = Field(
        default=True,
        description="False: hpkit neither sets nor changes tags. Several HyperPod add-ons need resources with the "
        "tag `SageMaker: true`.",
    )
    protect: bool = Field(
        default=False,
        description="Deletion protection for the HyperPod cluster, the EKS cluster, the VPC and buckets, except those "
        "in `allowReplace`; for an existing cluster, its policy.",
    )
    allow_replace: tuple[
        Literal["bucket", "cluster", "eks", "fileSystem", "grafana", "key", "prometheus", "vpc"], ...
    ] = Field(default=(), description="Resources that a change may replace. Otherwise the preview fails.")
    allow_delete: AllowDelete = Field(
        default=AllowDelete(), description="Resources that a change may delete. Otherwise the preview fails."
    )
    waivers: tuple[Waiver, ...] = Field(default=(), description="Accepted violations of rules, with an end date.")

    @model_validator(mode="before")
    @classmethod
    def _observed(cls, value: Any) -> Any:
        """Turn metrics on unless the file sets them: without them, the console's task dashboard is empty.

        An existing EKS cluster may have them already, and adoption changes nothing.
        """
        if not isinstance(value, dict) or "observability" in value:
            return value
        sections = (value.get("eks"), value.get("cluster"))
        if any(isinstance(each, dict) and each.get("existing") for each in sections):
            return value
        return {**value, "observability": {}}

    @property
    def karpenter(self) -> Autoscaling | None:
        """Return the section `autoscaling` if it turns managed Karpenter on, instead of only KEDA."""
        return self.autoscaling if self.autoscaling is not None and self.autoscaling.node_classes else None


class Organization(Model):
    """Teams and environments of one organization.

    Paths in `include` and `defaults` are relative to the file's folder and can't leave it. Maps are merged by key; a
    list or a single value applies as a whole. An environment's own value wins over `environmentDefaults` in this file,
    which wins over the shared file's. `tags` and `clusterPolicy` in this file win too. `null` turns a default off.
    """

    organization: Name = Field(description="Name. Stacks are named `<organization>-<environment>`.", examples=["acme"])
    include: tuple[str, ...] = Field(
        default=(),
        max_length=MOST_PATTERNS,
        description="Files with more `teams`, such as `teams/*.yaml`. They can have no other key.",
        examples=["teams/*.yaml"],
    )
    defaults: str | None = Field(
        default=None,
        description="A file that organizations share, with `tags`, `clusterPolicy` and `environmentDefaults`.",
        examples=["shared.yaml"],
    )
    environment_defaults: dict[str, Any] = Field(
        default={},
        description="Keys that apply to each environment that doesn't set them.",
        examples=[{"region": "us-west-2"}],
    )
    tags: dict[Annotated[str, Api("TagKey")], Annotated[str, Api("TagValue")]] = Field(
        default={},
        description="Tags of every resource, if manageTags is true: letters, digits, spaces and _ . : / = + - @. At "
        "most 7, because the lifecycle script is an S3 object; at most 46 if the stack uploads none.",
        examples=[{"cost-center": "ml"}],
    )
    cluster_policy: ClusterPolicy = Field(
        default=ClusterPolicy(), description="Policy of environments without their own."
    )
    teams: tuple[Team, ...] = Field(default=(), description="Teams and their sharing settings.")
    environments: dict[Annotated[str, Field(pattern=ENVIRONMENT_PATTERN, max_length=20)], Environment] = Field(
        description="Map of names to environments. Names contain only letters and digits.", min_length=1
    )

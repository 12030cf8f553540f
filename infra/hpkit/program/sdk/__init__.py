"""Resource classes of the `hyperpod` package, and its provider: inputs are keywords."""

# Written by `make generate` from the schema of the plugin; do not edit.

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from pulumi import CustomResource, ProviderResource, ResourceOptions

from hpkit.program.sdk.properties import OutputOf, inputs_of
from hpkit.program.sdk.types import (
    AutoscaledGroupInputs,
    ChangeGuardInputs,
    ClusterInputs,
    ClusterSchedulerConfigInputs,
    ComputeQuotaInputs,
    ProviderInputs,
    ReadinessInputs,
)

__all__ = [
    "AutoscaledGroup",
    "ChangeGuard",
    "Cluster",
    "ClusterSchedulerConfig",
    "ComputeQuota",
    "Provider",
    "Readiness",
]


class AutoscaledGroup(CustomResource):
    """An instance group that managed Karpenter scales. Its NodeClass releases it before it's deleted."""

    def __init__(
        self, resource_name: str, opts: ResourceOptions | None = None, **inputs: Unpack[AutoscaledGroupInputs]
    ) -> None:
        super().__init__("hyperpod:index:AutoscaledGroup", resource_name, inputs_of(type(self), inputs), opts)


class ChangeGuard(CustomResource):
    """Rejects a change that would replace or delete guarded resources, in the preview. It creates nothing."""

    def __init__(
        self, resource_name: str, opts: ResourceOptions | None = None, **inputs: Unpack[ChangeGuardInputs]
    ) -> None:
        super().__init__("hyperpod:index:ChangeGuard", resource_name, inputs_of(type(self), inputs), opts)


class Cluster(CustomResource):
    """A HyperPod cluster orchestrated by Amazon EKS, with its instance groups."""

    cluster_arn = OutputOf[str]("clusterArn")
    """ARN of the cluster."""
    cluster_status = OutputOf[str]("clusterStatus")
    """Last status that the service reported."""
    creation_time = OutputOf[str]("creationTime")
    """Creation time of the cluster."""
    failure_message = OutputOf[str]("failureMessage")
    """Why the last change failed."""
    managed_instance_groups = OutputOf[Sequence[str]]("managedInstanceGroups")
    """Groups that this resource created or adopted. It deletes no others."""
    creation_failed = OutputOf[bool]("creationFailed")
    """Whether creation failed. The next update then replaces it."""

    def __init__(
        self, resource_name: str, opts: ResourceOptions | None = None, **inputs: Unpack[ClusterInputs]
    ) -> None:
        super().__init__("hyperpod:index:Cluster", resource_name, inputs_of(type(self), inputs), opts)


class ClusterSchedulerConfig(CustomResource):
    """The only scheduling policy of a cluster: task priorities, fair share, sharing of idle compute."""

    cluster_scheduler_config_arn = OutputOf[str]("clusterSchedulerConfigArn")
    """ARN of the policy."""
    cluster_scheduler_config_id = OutputOf[str]("clusterSchedulerConfigId")
    """ID of the policy."""
    cluster_scheduler_config_version = OutputOf[int]("clusterSchedulerConfigVersion")
    """Version, which increases with each update."""
    status = OutputOf[str]("status")
    """Last status that the service reported."""
    failure_reason = OutputOf[str]("failureReason")
    """Why the last change failed."""

    def __init__(
        self, resource_name: str, opts: ResourceOptions | None = None, **inputs: Unpack[ClusterSchedulerConfigInputs]
    ) -> None:
        super().__init__("hyperpod:index:ClusterSchedulerConfig", resource_name, inputs_of(type(self), inputs), opts)


class ComputeQuota(CustomResource):
    """A team's quota on a cluster, and its sharing settings."""

    compute_quota_arn = OutputOf[str]("computeQuotaArn")
    """ARN of the quota."""
    compute_quota_id = OutputOf[str]("computeQuotaId")
    """ID of the quota."""
    compute_quota_version = OutputOf[int]("computeQuotaVersion")
    """Version, which increases with each update."""
    status = OutputOf[str]("status")
    """Last status that the service reported."""
    failure_reason = OutputOf[str]("failureReason")
    """Why the last change failed."""

    def __init__(
        self, resource_name: str, opts: ResourceOptions | None = None, **inputs: Unpack[ComputeQuotaInputs]
    ) -> None:
        super().__init__("hyperpod:index:ComputeQuota", resource_name, inputs_of(type(self), inputs), opts)


class Provider(ProviderResource):
    """Explicit settings of the `hyperpod` plugin."""

    def __init__(
        self, resource_name: str, opts: ResourceOptions | None = None, **inputs: Unpack[ProviderInputs]
    ) -> None:
        super().__init__("hyperpod", resource_name, inputs_of(type(self), inputs), opts)


class Readiness(CustomResource):
    """Waits until the listed resources can be used. It creates nothing."""

    def __init__(
        self, resource_name: str, opts: ResourceOptions | None = None, **inputs: Unpack[ReadinessInputs]
    ) -> None:
        super().__init__("hyperpod:index:Readiness", resource_name, inputs_of(type(self), inputs), opts)

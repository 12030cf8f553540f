"""A team's reserved quota on a cluster, and its sharing settings."""

# Written by `make generate` from the schema of the plugin; do not edit.

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, cast

import pulumi

from hpkit.program.sdk.types import (
    ComputeQuotaConfig,
    ComputeQuotaTarget,
    Tag,
)

__all__ = ["ComputeQuota"]


class ComputeQuota(pulumi.CustomResource):
    """A team's reserved quota on a cluster, and its sharing settings."""

    def __init__(
        self,
        resource_name: str,
        *,
        cluster_arn: pulumi.Input[str],
        compute_quota_config: pulumi.Input[ComputeQuotaConfig],
        compute_quota_target: pulumi.Input[ComputeQuotaTarget],
        name: pulumi.Input[str],
        activation_state: pulumi.Input[Literal["Enabled", "Disabled"]] | None = None,
        description: pulumi.Input[str] | None = None,
        elastic_instance_types: pulumi.Input[Sequence[pulumi.Input[str]]] | None = None,
        future_instance_types: pulumi.Input[Sequence[pulumi.Input[str]]] | None = None,
        tags: pulumi.Input[Sequence[pulumi.Input[Tag]]] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Register it with the engine; resource_name is its name in the program.

        Args:
            resource_name: Name in the program.
            cluster_arn: ARN of the cluster. A change replaces the resource.
            compute_quota_config: Configuration of the compute allocation definition.
            compute_quota_target: The target entity to allocate compute resources to.
            name: The name of the compute allocation definition. A change replaces the resource.
            activation_state: The state of the compute allocation being described.
            description: Description of the compute allocation definition.
            elastic_instance_types: Instance types whose quota may rely on nodes that Karpenter adds. For
                policies; it isn't sent to SageMaker.
            future_instance_types: Instance types whose quota may exist before an instance group. For policies;
                it isn't sent to SageMaker.
            tags: Tags of the compute allocation definition.
            opts: Options of the engine.
        """
        super().__init__(
            "hyperpod:index:ComputeQuota",
            resource_name,
            {
                "clusterArn": cluster_arn,
                "computeQuotaConfig": compute_quota_config,
                "computeQuotaTarget": compute_quota_target,
                "name": name,
                "activationState": activation_state,
                "description": description,
                "elasticInstanceTypes": elastic_instance_types,
                "futureInstanceTypes": future_instance_types,
                "tags": tags,
                "computeQuotaArn": None,
                "computeQuotaId": None,
                "computeQuotaVersion": None,
                "status": None,
                "failureReason": None,
            },
            opts,
        )

    @property
    def compute_quota_arn(self) -> pulumi.Output[str]:
        """ARN of the quota."""
        return cast("pulumi.Output[str]", self.__dict__["computeQuotaArn"])

    @property
    def compute_quota_id(self) -> pulumi.Output[str]:
        """ID of the quota."""
        return cast("pulumi.Output[str]", self.__dict__["computeQuotaId"])

    @property
    def compute_quota_version(self) -> pulumi.Output[int]:
        """Version, which increases with each update."""
        return cast("pulumi.Output[int]", self.__dict__["computeQuotaVersion"])

    @property
    def status(self) -> pulumi.Output[str]:
        """Last status that the service reported."""
        return cast("pulumi.Output[str]", self.__dict__["status"])

    @property
    def failure_reason(self) -> pulumi.Output[str]:
        """Why the last change failed."""
        return cast("pulumi.Output[str]", self.__dict__["failureReason"])

"""The only scheduling policy of a cluster: task priorities, fair share, sharing of idle compute."""

# Written by `make generate` from the schema of the plugin; do not edit.

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import pulumi

from hpkit.program.sdk.types import (
    SchedulerConfig,
    Tag,
)

__all__ = ["ClusterSchedulerConfig"]


class ClusterSchedulerConfig(pulumi.CustomResource):
    """The only scheduling policy of a cluster: task priorities, fair share, sharing of idle compute."""

    def __init__(
        self,
        resource_name: str,
        *,
        cluster_arn: pulumi.Input[str],
        name: pulumi.Input[str],
        scheduler_config: pulumi.Input[SchedulerConfig],
        description: pulumi.Input[str] | None = None,
        tags: pulumi.Input[Sequence[pulumi.Input[Tag]]] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Register it with the engine; resource_name is its name in the program.

        Args:
            resource_name: Name in the program.
            cluster_arn: ARN of the cluster. A change replaces the resource.
            name: The name for the cluster policy. A change replaces the resource.
            scheduler_config: Configuration about the monitoring schedule.
            description: Description of the cluster policy.
            tags: Tags of the cluster policy.
            opts: Options of the engine.
        """
        super().__init__(
            "hyperpod:index:ClusterSchedulerConfig",
            resource_name,
            {
                "clusterArn": cluster_arn,
                "name": name,
                "schedulerConfig": scheduler_config,
                "description": description,
                "tags": tags,
                "clusterSchedulerConfigArn": None,
                "clusterSchedulerConfigId": None,
                "clusterSchedulerConfigVersion": None,
                "status": None,
                "failureReason": None,
            },
            opts,
        )

    @property
    def cluster_scheduler_config_arn(self) -> pulumi.Output[str]:
        """ARN of the policy."""
        return cast("pulumi.Output[str]", self.__dict__["clusterSchedulerConfigArn"])

    @property
    def cluster_scheduler_config_id(self) -> pulumi.Output[str]:
        """ID of the policy."""
        return cast("pulumi.Output[str]", self.__dict__["clusterSchedulerConfigId"])

    @property
    def cluster_scheduler_config_version(self) -> pulumi.Output[int]:
        """Version, which increases with each update."""
        return cast("pulumi.Output[int]", self.__dict__["clusterSchedulerConfigVersion"])

    @property
    def status(self) -> pulumi.Output[str]:
        """Last status that the service reported."""
        return cast("pulumi.Output[str]", self.__dict__["status"])

    @property
    def failure_reason(self) -> pulumi.Output[str]:
        """Why the last change failed."""
        return cast("pulumi.Output[str]", self.__dict__["failureReason"])

"""A HyperPod cluster orchestrated by Amazon EKS, with its instance groups."""

# Written by `make generate` from the schema of the plugin; do not edit.

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, cast

import pulumi

from hpkit.program.sdk.types import (
    ClusterAutoScalingConfig,
    ClusterInstanceGroupSpecification,
    ClusterOrchestrator,
    ClusterRestrictedInstanceGroupsConfig,
    ClusterRestrictedInstanceGroupSpecification,
    ClusterTieredStorageConfig,
    Tag,
    VpcConfig,
)

__all__ = ["Cluster"]


class Cluster(pulumi.CustomResource):
    """A HyperPod cluster orchestrated by Amazon EKS, with its instance groups."""

    def __init__(
        self,
        resource_name: str,
        *,
        cluster_name: pulumi.Input[str],
        orchestrator: pulumi.Input[ClusterOrchestrator],
        vpc_config: pulumi.Input[VpcConfig],
        allow_delete_instance_groups: pulumi.Input[Sequence[pulumi.Input[str]]] | None = None,
        allow_replace: pulumi.Input[bool] | None = None,
        auto_scaling: pulumi.Input[ClusterAutoScalingConfig] | None = None,
        autoscaled_instance_groups: pulumi.Input[Sequence[pulumi.Input[str]]] | None = None,
        cluster_role: pulumi.Input[str] | None = None,
        instance_groups: pulumi.Input[Sequence[pulumi.Input[ClusterInstanceGroupSpecification]]] | None = None,
        node_provisioning_mode: pulumi.Input[Literal["Continuous"]] | None = None,
        node_recovery: pulumi.Input[Literal["Automatic", "None"]] | None = None,
        restricted_instance_groups: pulumi.Input[Sequence[pulumi.Input[ClusterRestrictedInstanceGroupSpecification]]]
        | None = None,
        restricted_instance_groups_config: pulumi.Input[ClusterRestrictedInstanceGroupsConfig] | None = None,
        tags: pulumi.Input[Sequence[pulumi.Input[Tag]]] | None = None,
        tiered_storage_config: pulumi.Input[ClusterTieredStorageConfig] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Register it with the engine; resource_name is its name in the program.

        Args:
            resource_name: Name in the program.
            cluster_name: The name for the new SageMaker HyperPod cluster. A change replaces the resource.
            orchestrator: The type of orchestrator to use for the SageMaker HyperPod cluster. A change replaces
                the resource.
            vpc_config: Specifies the Amazon Virtual Private Cloud (VPC) that is associated with the Amazon
                SageMaker HyperPod cluster. A change replaces the resource.
            allow_delete_instance_groups: Names of groups with instances that a change may delete.
            allow_replace: Whether a change may replace the cluster.
            auto_scaling: The autoscaling configuration for the cluster.
            autoscaled_instance_groups: Names of the groups that managed Karpenter scales. Their counts are
                ignored after creation.
            cluster_role: The Amazon Resource Name (ARN) of the IAM role that HyperPod assumes to perform
                cluster autoscaling operations.
            instance_groups: The instance groups to be created in the SageMaker HyperPod cluster.
            node_provisioning_mode: The mode for provisioning nodes in the cluster. A change replaces the
                resource.
            node_recovery: The node recovery mode for the SageMaker HyperPod cluster.
            restricted_instance_groups: The specialized instance groups for training models like Amazon Nova to
                be created in the SageMaker HyperPod cluster.
            restricted_instance_groups_config: The configuration for the restricted instance groups (RIG) in the
                SageMaker HyperPod cluster.
            tags: Custom tags for managing the SageMaker HyperPod cluster as an Amazon Web Services resource.
            tiered_storage_config: The configuration for managed tier checkpointing on the HyperPod cluster.
            opts: Options of the engine.
        """
        super().__init__(
            "hyperpod:index:Cluster",
            resource_name,
            {
                "clusterName": cluster_name,
                "orchestrator": orchestrator,
                "vpcConfig": vpc_config,
                "allowDeleteInstanceGroups": allow_delete_instance_groups,
                "allowReplace": allow_replace,
                "autoScaling": auto_scaling,
                "autoscaledInstanceGroups": autoscaled_instance_groups,
                "clusterRole": cluster_role,
                "instanceGroups": instance_groups,
                "nodeProvisioningMode": node_provisioning_mode,
                "nodeRecovery": node_recovery,
                "restrictedInstanceGroups": restricted_instance_groups,
                "restrictedInstanceGroupsConfig": restricted_instance_groups_config,
                "tags": tags,
                "tieredStorageConfig": tiered_storage_config,
                "clusterArn": None,
                "clusterStatus": None,
                "creationTime": None,
                "failureMessage": None,
                "managedInstanceGroups": None,
                "creationFailed": None,
            },
            opts,
        )

    @property
    def cluster_arn(self) -> pulumi.Output[str]:
        """ARN of the cluster."""
        return cast("pulumi.Output[str]", self.__dict__["clusterArn"])

    @property
    def cluster_status(self) -> pulumi.Output[str]:
        """Last status that the service reported."""
        return cast("pulumi.Output[str]", self.__dict__["clusterStatus"])

    @property
    def creation_time(self) -> pulumi.Output[str]:
        """Creation time of the cluster."""
        return cast("pulumi.Output[str]", self.__dict__["creationTime"])

    @property
    def failure_message(self) -> pulumi.Output[str]:
        """Why the last change failed."""
        return cast("pulumi.Output[str]", self.__dict__["failureMessage"])

    @property
    def managed_instance_groups(self) -> pulumi.Output[Sequence[str]]:
        """Groups that this resource created or adopted. It deletes no others."""
        return cast("pulumi.Output[Sequence[str]]", self.__dict__["managedInstanceGroups"])

    @property
    def creation_failed(self) -> pulumi.Output[bool]:
        """Whether creation failed. The next update then replaces it."""
        return cast("pulumi.Output[bool]", self.__dict__["creationFailed"])

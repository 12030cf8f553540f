"""Typed resource classes of the `hyperpod` package, and its provider."""

# Written by `make generate` from the schema of the plugin; do not edit.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

import pulumi

from hpkit.program.sdk.types import (
    ClusterAutoScalingConfig,
    ClusterInstanceGroupSpecification,
    ClusterOrchestrator,
    ClusterRestrictedInstanceGroupsConfig,
    ClusterRestrictedInstanceGroupSpecification,
    ClusterTieredStorageConfig,
    ComputeQuotaConfig,
    ComputeQuotaTarget,
    SchedulerConfig,
    Tag,
    VpcConfig,
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


def _output(name: str) -> Any:
    """Return an output, which the engine sets by its name in the API."""
    return property(lambda resource: resource.__dict__[name])


class AutoscaledGroup(pulumi.CustomResource):
    """An instance group that managed Karpenter scales. Its NodeClass releases it before it's deleted."""

    def __init__(
        self,
        resource_name: str,
        *,
        cluster_arn: pulumi.Input[str],
        instance_group_name: pulumi.Input[str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Register it with the engine; resource_name is its name in the program.

        Args:
            resource_name: Name in the program.
            cluster_arn: ARN of the cluster that has the group. A change replaces the resource.
            instance_group_name: Name of the group, as the Cluster declares it. A change replaces the resource.
            opts: Options of the engine.
        """
        inputs = {
            "clusterArn": cluster_arn,
            "instanceGroupName": instance_group_name,
        }
        super().__init__("hyperpod:index:AutoscaledGroup", resource_name, inputs, opts)


class ChangeGuard(pulumi.CustomResource):
    """Rejects a change that would replace or delete guarded resources, in the preview. It creates nothing."""

    def __init__(
        self,
        resource_name: str,
        *,
        subject: pulumi.Input[str],
        allow_replace: pulumi.Input[Sequence[pulumi.Input[str]]] | None = None,
        contents: pulumi.Input[Mapping[str, pulumi.Input[str]]] | None = None,
        fixed: pulumi.Input[Mapping[str, pulumi.Input[str]]] | None = None,
        identity: pulumi.Input[Mapping[str, pulumi.Input[str]]] | None = None,
        nested: pulumi.Input[Sequence[pulumi.Input[str]]] | None = None,
        parts: pulumi.Input[Mapping[str, pulumi.Input[str]]] | None = None,
        remedy: pulumi.Input[str] | None = None,
        version: pulumi.Input[str] | None = None,
        where: pulumi.Input[str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Register it with the engine; resource_name is its name in the program.

        Args:
            resource_name: Name in the program.
            subject: Name of the guarded resource in messages.
            allow_replace: Names of resources that may be replaced or deleted, with a warning only.
            contents: Description of each guarded resource and of what is deleted with it, for messages.
            fixed: Settings that can't change in place: an existing setting keeps its value.
            identity: Live ID of each guarded resource, by its name in allowReplace.
            nested: Names of resources that depend on each other, in order: each depends on the one before it.
            parts: Live name of each part, such as `teams/nlp`; deleting one requires its name in allowReplace.
            remedy: What to do instead of changing a fixed setting.
            version: Kubernetes minor version. It can only increase, by one at a time.
            where: Where to set allowReplace, for messages.
            opts: Options of the engine.
        """
        inputs = {
            "subject": subject,
            "allowReplace": allow_replace,
            "contents": contents,
            "fixed": fixed,
            "identity": identity,
            "nested": nested,
            "parts": parts,
            "remedy": remedy,
            "version": version,
            "where": where,
        }
        super().__init__("hyperpod:index:ChangeGuard", resource_name, inputs, opts)


class Cluster(pulumi.CustomResource):
    """A HyperPod cluster orchestrated by Amazon EKS, with its instance groups."""

    cluster_arn = cast("pulumi.Output[str]", _output("clusterArn"))
    """ARN of the cluster."""
    cluster_status = cast("pulumi.Output[str]", _output("clusterStatus"))
    """Last status that the service reported."""
    creation_time = cast("pulumi.Output[str]", _output("creationTime"))
    """Creation time of the cluster."""
    failure_message = cast("pulumi.Output[str]", _output("failureMessage"))
    """Why the last change failed."""
    managed_instance_groups = cast("pulumi.Output[Sequence[str]]", _output("managedInstanceGroups"))
    """Groups that this resource created or adopted. It deletes no others."""
    creation_failed = cast("pulumi.Output[bool]", _output("creationFailed"))
    """Whether creation failed. The next update then replaces it."""

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
        inputs = {
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
        }
        super().__init__(
            "hyperpod:index:Cluster",
            resource_name,
            inputs
            | dict.fromkeys(
                [
                    "clusterArn",
                    "clusterStatus",
                    "creationTime",
                    "failureMessage",
                    "managedInstanceGroups",
                    "creationFailed",
                ]
            ),
            opts,
        )


class ClusterSchedulerConfig(pulumi.CustomResource):
    """The only scheduling policy of a cluster: task priorities, fair share, sharing of idle compute."""

    cluster_scheduler_config_arn = cast("pulumi.Output[str]", _output("clusterSchedulerConfigArn"))
    """ARN of the policy."""
    cluster_scheduler_config_id = cast("pulumi.Output[str]", _output("clusterSchedulerConfigId"))
    """ID of the policy."""
    cluster_scheduler_config_version = cast("pulumi.Output[int]", _output("clusterSchedulerConfigVersion"))
    """Version, which increases with each update."""
    status = cast("pulumi.Output[str]", _output("status"))
    """Last status that the service reported."""
    failure_reason = cast("pulumi.Output[str]", _output("failureReason"))
    """Why the last change failed."""

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
        inputs = {
            "clusterArn": cluster_arn,
            "name": name,
            "schedulerConfig": scheduler_config,
            "description": description,
            "tags": tags,
        }
        super().__init__(
            "hyperpod:index:ClusterSchedulerConfig",
            resource_name,
            inputs
            | dict.fromkeys(
                [
                    "clusterSchedulerConfigArn",
                    "clusterSchedulerConfigId",
                    "clusterSchedulerConfigVersion",
                    "status",
                    "failureReason",
                ]
            ),
            opts,
        )


class ComputeQuota(pulumi.CustomResource):
    """A team's reserved quota on a cluster, and its sharing settings."""

    compute_quota_arn = cast("pulumi.Output[str]", _output("computeQuotaArn"))
    """ARN of the quota."""
    compute_quota_id = cast("pulumi.Output[str]", _output("computeQuotaId"))
    """ID of the quota."""
    compute_quota_version = cast("pulumi.Output[int]", _output("computeQuotaVersion"))
    """Version, which increases with each update."""
    status = cast("pulumi.Output[str]", _output("status"))
    """Last status that the service reported."""
    failure_reason = cast("pulumi.Output[str]", _output("failureReason"))
    """Why the last change failed."""

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
        inputs = {
            "clusterArn": cluster_arn,
            "computeQuotaConfig": compute_quota_config,
            "computeQuotaTarget": compute_quota_target,
            "name": name,
            "activationState": activation_state,
            "description": description,
            "elasticInstanceTypes": elastic_instance_types,
            "futureInstanceTypes": future_instance_types,
            "tags": tags,
        }
        super().__init__(
            "hyperpod:index:ComputeQuota",
            resource_name,
            inputs
            | dict.fromkeys(["computeQuotaArn", "computeQuotaId", "computeQuotaVersion", "status", "failureReason"]),
            opts,
        )


class Provider(pulumi.ProviderResource):
    """Explicit settings of the `hyperpod` plugin."""

    def __init__(
        self,
        resource_name: str,
        *,
        account_id: pulumi.Input[str] | None = None,
        allow_replace: pulumi.Input[str] | None = None,
        assume_role_arn: pulumi.Input[str] | None = None,
        capacity_wait_seconds: pulumi.Input[str] | None = None,
        contents: pulumi.Input[str] | None = None,
        endpoint: pulumi.Input[str] | None = None,
        leaving_teams: pulumi.Input[str] | None = None,
        profile: pulumi.Input[str] | None = None,
        region: pulumi.Input[str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Register it with the engine; resource_name is its name in the program.

        Args:
            resource_name: Name in the program.
            account_id: Required account of the credentials. With credentials of another account, nothing is
                read or changed.
            allow_replace: `true` allows changes that replace clusters.
            assume_role_arn: Role to assume for each call.
            capacity_wait_seconds: Seconds during which an increase that the service rejects is tried again
                (300).
            contents: What a move to another account or region would delete, for messages.
            endpoint: URL of the SageMaker API, for a local cloud.
            leaving_teams: Comma-separated teams whose quotas this run deletes. They are set to 0 if the service
                rejects an increase of another quota.
            profile: Named profile. Default: aws:profile, or the profile in the environment variables.
            region: AWS region. Default: aws:region, or the region in the environment variables.
            opts: Options of the engine.
        """
        inputs = {
            "accountId": account_id,
            "allowReplace": allow_replace,
            "assumeRoleArn": assume_role_arn,
            "capacityWaitSeconds": capacity_wait_seconds,
            "contents": contents,
            "endpoint": endpoint,
            "leavingTeams": leaving_teams,
            "profile": profile,
            "region": region,
        }
        super().__init__("hyperpod", resource_name, inputs, opts)


class Readiness(pulumi.CustomResource):
    """Waits until the listed resources can be used. It creates nothing."""

    def __init__(
        self,
        resource_name: str,
        *,
        minutes: pulumi.Input[float],
        certificate_authority: pulumi.Input[str] | None = None,
        cluster_arn: pulumi.Input[str] | None = None,
        deployments: pulumi.Input[Sequence[pulumi.Input[str]]] | None = None,
        eks_cluster_name: pulumi.Input[str] | None = None,
        endpoint: pulumi.Input[str] | None = None,
        instance_counts: pulumi.Input[Mapping[str, pulumi.Input[float]]] | None = None,
        instance_groups: pulumi.Input[Sequence[pulumi.Input[str]]] | None = None,
        key_arn: pulumi.Input[str] | None = None,
        pod_identity_associations: pulumi.Input[Mapping[str, pulumi.Input[str]]] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Register it with the engine; resource_name is its name in the program.

        Args:
            resource_name: Name in the program.
            minutes: Maximum wait in minutes.
            certificate_authority: Certificate authority of the Kubernetes API, in base64.
            cluster_arn: HyperPod cluster that has the groups.
            deployments: Deployments that must be available, `namespace/name`.
            eks_cluster_name: EKS cluster whose Kubernetes API is read.
            endpoint: Address of the Kubernetes API. Without other inputs, only access for the caller is
                awaited.
            instance_counts: Instances that each instance group should have. When the time is up, the run
                continues with a warning.
            instance_groups: Instance groups whose nodes must be Ready and schedulable.
            key_arn: KMS key that must be enabled.
            pod_identity_associations: IDs of Pod Identity associations that must be effective, by
                `namespace/service-account`.
            opts: Options of the engine.
        """
        inputs = {
            "minutes": minutes,
            "certificateAuthority": certificate_authority,
            "clusterArn": cluster_arn,
            "deployments": deployments,
            "eksClusterName": eks_cluster_name,
            "endpoint": endpoint,
            "instanceCounts": instance_counts,
            "instanceGroups": instance_groups,
            "keyArn": key_arn,
            "podIdentityAssociations": pod_identity_associations,
        }
        super().__init__("hyperpod:index:Readiness", resource_name, inputs, opts)

"""Property types of the `hyperpod` package."""

# Written by `make generate` from the schema of the plugin; do not edit.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NotRequired, TypedDict

import pulumi

__all__ = [
    "AcceleratorPartitionConfig",
    "AlarmDetails",
    "CapacitySizeConfig",
    "ClusterAutoPatchConfig",
    "ClusterAutoScalingConfig",
    "ClusterCapacityRequirements",
    "ClusterDrainPolicy",
    "ClusterEbsVolumeConfig",
    "ClusterFsxLustreConfig",
    "ClusterFsxOpenZfsConfig",
    "ClusterInstanceGroupSpecification",
    "ClusterInstanceRequirements",
    "ClusterInstanceStorageConfig",
    "ClusterKubernetesConfig",
    "ClusterKubernetesTaint",
    "ClusterLifeCycleConfig",
    "ClusterNetworkInterface",
    "ClusterOnDemandOptions",
    "ClusterOrchestrator",
    "ClusterOrchestratorEksConfig",
    "ClusterPatchSchedule",
    "ClusterRestrictedInstanceGroupSpecification",
    "ClusterRestrictedInstanceGroupsConfig",
    "ClusterSharedEnvironmentConfig",
    "ClusterSpotOptions",
    "ClusterTieredStorageConfig",
    "ComputeQuotaConfig",
    "ComputeQuotaResourceConfig",
    "ComputeQuotaTarget",
    "DeploymentConfiguration",
    "EnvironmentConfig",
    "FSxLustreConfig",
    "PriorityClass",
    "ResourceSharingConfig",
    "RollingDeploymentPolicy",
    "ScheduledUpdateConfig",
    "SchedulerConfig",
    "Tag",
    "VpcConfig",
]


class AcceleratorPartitionConfig(TypedDict):
    """The accelerator partition configuration for fractional GPU allocation."""

    # The Multi-Instance GPU (MIG) profile type that defines the partition configuration.
    type: pulumi.Input[str]
    # The number of accelerator partitions to allocate with the specified partition type.
    count: pulumi.Input[int]


class AlarmDetails(TypedDict):
    """The details of the alarm to monitor during the AMI update."""

    # The name of the alarm.
    alarmName: pulumi.Input[str]


class CapacitySizeConfig(TypedDict):
    """The maximum amount of instances in the cluster that SageMaker can update at a time."""

    # Specifies whether SageMaker should process the update by amount or percentage of instances.
    type: pulumi.Input[Literal["INSTANCE_COUNT", "CAPACITY_PERCENTAGE"]]
    # Specifies the amount or percentage of instances SageMaker updates at a time.
    value: pulumi.Input[int]


class ClusterAutoPatchConfig(TypedDict):
    """The configuration for automatic OS security patching."""

    # The strategy for applying patches to instances in the group.
    patchingStrategy: pulumi.Input[Literal["WhenIdle", "WhenAllIdle", "DrainFirst"]]
    # The schedule for automatic patching, including the next patch date.
    patchSchedule: NotRequired[pulumi.Input[ClusterPatchSchedule]]
    # The deployment configuration for rolling patch updates, including rollback settings and batch sizes.
    deploymentConfig: NotRequired[pulumi.Input[DeploymentConfiguration]]
    # The maximum time, in seconds, that automatic patching waits for instances to become idle after a scheduled
    # patch starts.
    idleWaitWindowInSeconds: NotRequired[pulumi.Input[int]]
    # The policy that controls how pods are evicted from an instance before it is patched.
    drainPolicy: NotRequired[pulumi.Input[ClusterDrainPolicy]]


class ClusterAutoScalingConfig(TypedDict):
    """The autoscaling configuration for the cluster."""

    # Describes whether autoscaling is enabled or disabled for the cluster.
    mode: pulumi.Input[Literal["Enable", "Disable"]]
    # The type of autoscaler to use.
    autoScalerType: NotRequired[pulumi.Input[Literal["Karpenter"]]]


class ClusterCapacityRequirements(TypedDict):
    """Specifies the capacity requirements for the instance group."""

    # Configuration options specific to Spot instances.
    spot: NotRequired[pulumi.Input[ClusterSpotOptions]]
    # Configuration options specific to On-Demand instances.
    onDemand: NotRequired[pulumi.Input[ClusterOnDemandOptions]]


class ClusterDrainPolicy(TypedDict):
    """The policy that controls how pods are evicted from an instance before it is patched."""

    # The maximum time, in seconds, to wait for the pods on an instance to drain.
    drainTimeoutInSeconds: NotRequired[pulumi.Input[int]]
    # The action to take if the pods on an instance don't drain within DrainTimeoutInSeconds.
    onDrainTimeout: NotRequired[pulumi.Input[Literal["Force", "Skip"]]]


class ClusterEbsVolumeConfig(TypedDict):
    """Defines the configuration for attaching additional Amazon Elastic Block Store (EBS) volumes to the …."""

    # The size in gigabytes (GB) of the additional EBS volume to be attached to the instances in the SageMaker
    # HyperPod cluster instance group.
    volumeSizeInGB: NotRequired[pulumi.Input[int]]
    # The ID of a KMS key to encrypt the Amazon EBS volume.
    volumeKmsKeyId: NotRequired[pulumi.Input[str]]
    # Specifies whether the configuration is for the cluster's root or secondary Amazon EBS volume.
    rootVolume: NotRequired[pulumi.Input[bool]]


class ClusterFsxLustreConfig(TypedDict):
    """Defines the configuration for attaching an Amazon FSx for Lustre file system to the instances in …."""

    # The DNS name of the Amazon FSx for Lustre file system.
    dnsName: pulumi.Input[str]
    # The mount name of the Amazon FSx for Lustre file system.
    mountName: pulumi.Input[str]
    # The local path where the Amazon FSx for Lustre file system is mounted on instances.
    mountPath: NotRequired[pulumi.Input[str]]


class ClusterFsxOpenZfsConfig(TypedDict):
    """Defines the configuration for attaching an Amazon FSx for OpenZFS file system to the instances in …."""

    # The DNS name of the Amazon FSx for OpenZFS file system.
    dnsName: pulumi.Input[str]
    # The local path where the Amazon FSx for OpenZFS file system is mounted on instances.
    mountPath: NotRequired[pulumi.Input[str]]


class ClusterInstanceGroupSpecification(TypedDict):
    """The specifications of an instance group that you need to define."""

    # Specifies the number of instances to add to the instance group of a SageMaker HyperPod cluster.
    instanceCount: pulumi.Input[int]
    # Defines the minimum number of instances required for an instance group to become InService.
    minInstanceCount: NotRequired[pulumi.Input[int]]
    # Specifies the name of the instance group.
    instanceGroupName: pulumi.Input[str]
    # Specifies the instance type of the instance group.
    instanceType: NotRequired[pulumi.Input[str]]
    # The instance requirements for the instance group, including the instance types to use.
    instanceRequirements: NotRequired[pulumi.Input[ClusterInstanceRequirements]]
    # Specifies the LifeCycle configuration for the instance group.
    lifeCycleConfig: NotRequired[pulumi.Input[ClusterLifeCycleConfig]]
    # Specifies an IAM execution role to be assumed by the instance group.
    executionRole: pulumi.Input[str]
    # Specifies the value for Threads per core.
    threadsPerCore: NotRequired[pulumi.Input[int]]
    # Specifies the additional storage configurations for the instances in the SageMaker HyperPod cluster
    # instance group.
    instanceStorageConfigs: NotRequired[pulumi.Input[Sequence[pulumi.Input[ClusterInstanceStorageConfig]]]]
    # A flag indicating whether deep health checks should be performed when the cluster instance group is
    # created or updated.
    onStartDeepHealthChecks: NotRequired[
        pulumi.Input[
            Sequence[pulumi.Input[Literal["InstanceStress", "InstanceConnectivity", "MultiNodeTrainingValidation"]]]
        ]
    ]
    # The Amazon Resource Name (ARN); of the training plan to use for this cluster instance group.
    trainingPlanArn: NotRequired[pulumi.Input[str]]
    # To configure multi-AZ deployments, customize the Amazon VPC configuration at the instance group level.
    overrideVpcConfig: NotRequired[pulumi.Input[VpcConfig]]
    # The configuration object of the schedule that SageMaker uses to update the AMI.
    scheduledUpdateConfig: NotRequired[pulumi.Input[ScheduledUpdateConfig]]
    # When configuring your HyperPod cluster, you can specify an image ID using one of the following options:
    # HyperPodPublicAmiId: Use a HyperPod public AMI CustomAmiId: Use your custom AMI default: Use the default
    # latest system image.
    imageId: NotRequired[pulumi.Input[str]]
    # The configuration for automatic OS security patching.
    autoPatchConfig: NotRequired[pulumi.Input[ClusterAutoPatchConfig]]
    # The version of the HyperPod-managed AMI to use for the instance group.
    imageReleaseVersion: NotRequired[pulumi.Input[str]]
    # Specifies the Kubernetes configuration for the instance group.
    kubernetesConfig: NotRequired[pulumi.Input[ClusterKubernetesConfig]]
    # Specifies the capacity requirements for the instance group.
    capacityRequirements: NotRequired[pulumi.Input[ClusterCapacityRequirements]]
    # The network interface configuration for the instance group.
    networkInterface: NotRequired[pulumi.Input[ClusterNetworkInterface]]


class ClusterInstanceRequirements(TypedDict):
    """The instance requirements for the instance group, including the instance types to use."""

    # The list of instance types that the instance group can use.
    instanceTypes: pulumi.Input[Sequence[pulumi.Input[str]]]


class ClusterInstanceStorageConfig(TypedDict):
    """Defines the configuration for attaching additional storage to the instances in the SageMaker …."""

    # Defines the configuration for attaching additional Amazon Elastic Block Store (EBS) volumes to the
    # instances in the SageMaker HyperPod cluster instance group.
    ebsVolumeConfig: NotRequired[pulumi.Input[ClusterEbsVolumeConfig]]
    # Defines the configuration for attaching an Amazon FSx for Lustre file system to the instances in the
    # SageMaker HyperPod cluster instance group.
    fsxLustreConfig: NotRequired[pulumi.Input[ClusterFsxLustreConfig]]
    # Defines the configuration for attaching an Amazon FSx for OpenZFS file system to the instances in the
    # SageMaker HyperPod cluster instance group.
    fsxOpenZfsConfig: NotRequired[pulumi.Input[ClusterFsxOpenZfsConfig]]


class ClusterKubernetesConfig(TypedDict):
    """Specifies the Kubernetes configuration for the instance group."""

    # Key-value pairs of labels to be applied to cluster nodes.
    labels: NotRequired[pulumi.Input[Mapping[str, pulumi.Input[str]]]]
    # List of taints to be applied to cluster nodes.
    taints: NotRequired[pulumi.Input[Sequence[pulumi.Input[ClusterKubernetesTaint]]]]


class ClusterKubernetesTaint(TypedDict):
    """A Kubernetes taint that can be applied to cluster nodes."""

    # The key of the taint.
    key: pulumi.Input[str]
    # The value of the taint.
    value: NotRequired[pulumi.Input[str]]
    # The effect of the taint.
    effect: pulumi.Input[Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]]


class ClusterLifeCycleConfig(TypedDict):
    """Specifies the LifeCycle configuration for the instance group."""

    # An Amazon S3 bucket path where your lifecycle scripts are stored.
    sourceS3Uri: NotRequired[pulumi.Input[str]]
    # The file name of the entrypoint script of lifecycle scripts under SourceS3Uri.
    onCreate: NotRequired[pulumi.Input[str]]
    # The file name of the entrypoint script of lifecycle scripts under SourceS3Uri.
    onInitComplete: NotRequired[pulumi.Input[str]]


class ClusterNetworkInterface(TypedDict):
    """The network interface configuration for the instance group."""

    # The type of network interface for the instance group.
    interfaceType: NotRequired[pulumi.Input[Literal["efa", "efa-only"]]]


class ClusterOnDemandOptions(TypedDict):
    """Configuration options specific to On-Demand instances."""


class ClusterOrchestrator(TypedDict):
    """The type of orchestrator to use for the SageMaker HyperPod cluster."""

    # The Amazon EKS cluster used as the orchestrator for the SageMaker HyperPod cluster.
    eks: pulumi.Input[ClusterOrchestratorEksConfig]


class ClusterOrchestratorEksConfig(TypedDict):
    """The Amazon EKS cluster used as the orchestrator for the SageMaker HyperPod cluster."""

    # The Amazon Resource Name (ARN) of the Amazon EKS cluster associated with the SageMaker HyperPod cluster.
    clusterArn: pulumi.Input[str]


class ClusterPatchSchedule(TypedDict):
    """The schedule for automatic patching, including the next patch date."""

    # The date and time of the next scheduled automatic patch.
    nextPatchDate: NotRequired[pulumi.Input[str]]


class ClusterRestrictedInstanceGroupSpecification(TypedDict):
    """The specifications of a restricted instance group that you need to define."""

    # Specifies the number of instances to add to the restricted instance group of a SageMaker HyperPod cluster.
    instanceCount: pulumi.Input[int]
    # Specifies the name of the restricted instance group.
    instanceGroupName: pulumi.Input[str]
    # Specifies the instance type of the restricted instance group.
    instanceType: pulumi.Input[str]
    # Specifies an IAM execution role to be assumed by the restricted instance group.
    executionRole: pulumi.Input[str]
    # The number you specified to TreadsPerCore in CreateCluster for enabling or disabling multithreading.
    threadsPerCore: NotRequired[pulumi.Input[int]]
    # Specifies the additional storage configurations for the instances in the SageMaker HyperPod cluster
    # restricted instance group.
    instanceStorageConfigs: NotRequired[pulumi.Input[Sequence[pulumi.Input[ClusterInstanceStorageConfig]]]]
    # A flag indicating whether deep health checks should be performed when the cluster restricted instance
    # group is created or updated.
    onStartDeepHealthChecks: NotRequired[
        pulumi.Input[
            Sequence[pulumi.Input[Literal["InstanceStress", "InstanceConnectivity", "MultiNodeTrainingValidation"]]]
        ]
    ]
    # The Amazon Resource Name (ARN) of the training plan to filter clusters by.
    trainingPlanArn: NotRequired[pulumi.Input[str]]
    # Specifies an Amazon Virtual Private Cloud (VPC) that your SageMaker jobs, hosted models, and compute
    # resources have access to.
    overrideVpcConfig: NotRequired[pulumi.Input[VpcConfig]]
    # The configuration object of the schedule that SageMaker follows when updating the AMI.
    scheduledUpdateConfig: NotRequired[pulumi.Input[ScheduledUpdateConfig]]
    # The configuration for the restricted instance groups (RIG) environment.
    environmentConfig: NotRequired[pulumi.Input[EnvironmentConfig]]


class ClusterRestrictedInstanceGroupsConfig(TypedDict):
    """The configuration for the restricted instance groups (RIG) in the SageMaker HyperPod cluster."""

    # The shared environment configuration for the restricted instance groups (RIG).
    sharedEnvironmentConfig: pulumi.Input[ClusterSharedEnvironmentConfig]


class ClusterSharedEnvironmentConfig(TypedDict):
    """The shared environment configuration for the restricted instance groups (RIG)."""

    # The deletion policy for the Amazon FSx for Lustre file system in the shared environment.
    fSxLustreDeletionPolicy: pulumi.Input[Literal["DeleteIfNotUsed", "Keep"]]
    # Configuration settings for an Amazon FSx for Lustre file system in the shared environment.
    fSxLustreConfig: pulumi.Input[FSxLustreConfig]


class ClusterSpotOptions(TypedDict):
    """Configuration options specific to Spot instances."""


class ClusterTieredStorageConfig(TypedDict):
    """The configuration for managed tier checkpointing on the HyperPod cluster."""

    # Specifies whether managed tier checkpointing is enabled or disabled for the HyperPod cluster.
    mode: pulumi.Input[Literal["Enable", "Disable"]]
    # The percentage (int) of cluster memory to allocate for checkpointing.
    instanceMemoryAllocationPercentage: NotRequired[pulumi.Input[int]]


class ComputeQuotaConfig(TypedDict):
    """Configuration of the compute allocation definition."""

    # Allocate compute resources by instance types.
    computeQuotaResources: NotRequired[pulumi.Input[Sequence[pulumi.Input[ComputeQuotaResourceConfig]]]]
    # Resource sharing configuration.
    resourceSharingConfig: NotRequired[pulumi.Input[ResourceSharingConfig]]
    # Allows workloads from within an entity to preempt same-team workloads.
    preemptTeamTasks: NotRequired[pulumi.Input[Literal["Never", "LowerPriority"]]]


class ComputeQuotaResourceConfig(TypedDict):
    """Configuration of the resources used for the compute allocation definition."""

    # The instance type of the instance group for the cluster.
    instanceType: pulumi.Input[str]
    # The number of instances to add to the instance group of a SageMaker HyperPod cluster.
    count: NotRequired[pulumi.Input[int]]
    # The number of accelerators to allocate.
    accelerators: NotRequired[pulumi.Input[int]]
    # The number of vCPU to allocate.
    vCpu: NotRequired[pulumi.Input[float]]
    # The amount of memory in GiB to allocate.
    memoryInGiB: NotRequired[pulumi.Input[float]]
    # The accelerator partition configuration for fractional GPU allocation.
    acceleratorPartition: NotRequired[pulumi.Input[AcceleratorPartitionConfig]]


class ComputeQuotaTarget(TypedDict):
    """The target entity to allocate compute resources to."""

    # Name of the team to allocate compute resources to.
    teamName: pulumi.Input[str]
    # Assigned entity fair-share weight.
    fairShareWeight: NotRequired[pulumi.Input[int]]


class DeploymentConfiguration(TypedDict):
    """The configuration to use when updating the AMI versions."""

    # The policy that SageMaker uses when updating the AMI versions of the cluster.
    rollingUpdatePolicy: NotRequired[pulumi.Input[RollingDeploymentPolicy]]
    # The duration in seconds that SageMaker waits before updating more instances in the cluster.
    waitIntervalInSeconds: NotRequired[pulumi.Input[int]]
    # An array that contains the alarms that SageMaker monitors to know whether to roll back the AMI update.
    autoRollbackConfiguration: NotRequired[pulumi.Input[Sequence[pulumi.Input[AlarmDetails]]]]


class EnvironmentConfig(TypedDict):
    """The configuration for the restricted instance groups (RIG) environment."""

    # Configuration settings for an Amazon FSx for Lustre file system to be used with the cluster.
    fSxLustreConfig: NotRequired[pulumi.Input[FSxLustreConfig]]


class FSxLustreConfig(TypedDict):
    """Configuration settings for an Amazon FSx for Lustre file system to be used with the cluster."""

    # The storage capacity of the Amazon FSx for Lustre file system, specified in gibibytes (GiB).
    sizeInGiB: pulumi.Input[int]
    # The throughput capacity of the Amazon FSx for Lustre file system, measured in MB/s per TiB of storage.
    perUnitStorageThroughput: pulumi.Input[int]


class PriorityClass(TypedDict):
    """Priority class configuration."""

    # Name of the priority class.
    name: pulumi.Input[str]
    # Weight of the priority class.
    weight: pulumi.Input[int]


class ResourceSharingConfig(TypedDict):
    """Resource sharing configuration."""

    # The strategy of how idle compute is shared within the cluster.
    strategy: pulumi.Input[Literal["Lend", "DontLend", "LendAndBorrow"]]
    # The limit on how much idle compute can be borrowed.The values can be 1 - 500 percent of idle compute that
    # the team is allowed to borrow.
    borrowLimit: NotRequired[pulumi.Input[int]]
    # The absolute limits on compute resources that can be borrowed from idle compute.
    absoluteBorrowLimits: NotRequired[pulumi.Input[Sequence[pulumi.Input[ComputeQuotaResourceConfig]]]]


class RollingDeploymentPolicy(TypedDict):
    """The policy that SageMaker uses when updating the AMI versions of the cluster."""

    # The maximum amount of instances in the cluster that SageMaker can update at a time.
    maximumBatchSize: pulumi.Input[CapacitySizeConfig]
    # The maximum amount of instances in the cluster that SageMaker can roll back at a time.
    rollbackMaximumBatchSize: NotRequired[pulumi.Input[CapacitySizeConfig]]


class ScheduledUpdateConfig(TypedDict):
    """The configuration object of the schedule that SageMaker uses to update the AMI."""

    # A cron expression that specifies the schedule that SageMaker follows when updating the AMI.
    scheduleExpression: pulumi.Input[str]
    # The configuration to use when updating the AMI versions.
    deploymentConfig: NotRequired[pulumi.Input[DeploymentConfiguration]]


class SchedulerConfig(TypedDict):
    """Configuration about the monitoring schedule."""

    # List of the priority classes, PriorityClass, of the cluster policy.
    priorityClasses: NotRequired[pulumi.Input[Sequence[pulumi.Input[PriorityClass]]]]
    # When enabled, entities borrow idle compute based on their assigned FairShareWeight.
    fairShare: NotRequired[pulumi.Input[Literal["Enabled", "Disabled"]]]
    # Configuration for sharing idle compute resources across entities in the cluster.
    idleResourceSharing: NotRequired[pulumi.Input[Literal["Enabled", "Disabled"]]]


class Tag(TypedDict):
    """A tag object that consists of a key and an optional value, used to manage metadata for SageMaker …."""

    # The tag key.
    key: pulumi.Input[str]
    # The tag value.
    value: pulumi.Input[str]


class VpcConfig(TypedDict):
    """To configure multi-AZ deployments, customize the Amazon VPC configuration at the instance group level."""

    # The VPC security group IDs, in the form sg-xxxxxxxx.
    securityGroupIds: pulumi.Input[Sequence[pulumi.Input[str]]]
    # The ID of the subnets in the VPC to which you want to connect your training job or model.
    subnets: pulumi.Input[Sequence[pulumi.Input[str]]]

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

    type: pulumi.Input[str]
    count: pulumi.Input[int]


class AlarmDetails(TypedDict):
    """The details of the alarm to monitor during the AMI update."""

    alarmName: pulumi.Input[str]


class CapacitySizeConfig(TypedDict):
    """The maximum amount of instances in the cluster that SageMaker can update at a time."""

    type: pulumi.Input[Literal["INSTANCE_COUNT", "CAPACITY_PERCENTAGE"]]
    value: pulumi.Input[int]


class ClusterAutoPatchConfig(TypedDict):
    """The configuration for automatic OS security patching."""

    patchingStrategy: pulumi.Input[Literal["WhenIdle", "WhenAllIdle", "DrainFirst"]]
    patchSchedule: NotRequired[pulumi.Input[ClusterPatchSchedule]]
    deploymentConfig: NotRequired[pulumi.Input[DeploymentConfiguration]]
    idleWaitWindowInSeconds: NotRequired[pulumi.Input[int]]
    drainPolicy: NotRequired[pulumi.Input[ClusterDrainPolicy]]


class ClusterAutoScalingConfig(TypedDict):
    """The autoscaling configuration for the cluster."""

    mode: pulumi.Input[Literal["Enable", "Disable"]]
    autoScalerType: NotRequired[pulumi.Input[Literal["Karpenter"]]]


class ClusterCapacityRequirements(TypedDict):
    """Specifies the capacity requirements for the instance group."""

    spot: NotRequired[pulumi.Input[ClusterSpotOptions]]
    onDemand: NotRequired[pulumi.Input[ClusterOnDemandOptions]]


class ClusterDrainPolicy(TypedDict):
    """The policy that controls how pods are evicted from an instance before it is patched."""

    drainTimeoutInSeconds: NotRequired[pulumi.Input[int]]
    onDrainTimeout: NotRequired[pulumi.Input[Literal["Force", "Skip"]]]


class ClusterEbsVolumeConfig(TypedDict):
    """Defines the configuration for attaching additional Amazon Elastic Block Store (EBS) volumes to the …."""

    volumeSizeInGB: NotRequired[pulumi.Input[int]]
    volumeKmsKeyId: NotRequired[pulumi.Input[str]]
    rootVolume: NotRequired[pulumi.Input[bool]]


class ClusterFsxLustreConfig(TypedDict):
    """Defines the configuration for attaching an Amazon FSx for Lustre file system to the instances in …."""

    dnsName: pulumi.Input[str]
    mountName: pulumi.Input[str]
    mountPath: NotRequired[pulumi.Input[str]]


class ClusterFsxOpenZfsConfig(TypedDict):
    """Defines the configuration for attaching an Amazon FSx for OpenZFS file system to the instances in …."""

    dnsName: pulumi.Input[str]
    mountPath: NotRequired[pulumi.Input[str]]


class ClusterInstanceGroupSpecification(TypedDict):
    """The specifications of an instance group that you need to define."""

    instanceCount: pulumi.Input[int]
    minInstanceCount: NotRequired[pulumi.Input[int]]
    instanceGroupName: pulumi.Input[str]
    instanceType: NotRequired[pulumi.Input[str]]
    instanceRequirements: NotRequired[pulumi.Input[ClusterInstanceRequirements]]
    lifeCycleConfig: NotRequired[pulumi.Input[ClusterLifeCycleConfig]]
    executionRole: pulumi.Input[str]
    threadsPerCore: NotRequired[pulumi.Input[int]]
    instanceStorageConfigs: NotRequired[pulumi.Input[Sequence[pulumi.Input[ClusterInstanceStorageConfig]]]]
    onStartDeepHealthChecks: NotRequired[
        pulumi.Input[
            Sequence[pulumi.Input[Literal["InstanceStress", "InstanceConnectivity", "MultiNodeTrainingValidation"]]]
        ]
    ]
    trainingPlanArn: NotRequired[pulumi.Input[str]]
    overrideVpcConfig: NotRequired[pulumi.Input[VpcConfig]]
    scheduledUpdateConfig: NotRequired[pulumi.Input[ScheduledUpdateConfig]]
    imageId: NotRequired[pulumi.Input[str]]
    autoPatchConfig: NotRequired[pulumi.Input[ClusterAutoPatchConfig]]
    imageReleaseVersion: NotRequired[pulumi.Input[str]]
    kubernetesConfig: NotRequired[pulumi.Input[ClusterKubernetesConfig]]
    capacityRequirements: NotRequired[pulumi.Input[ClusterCapacityRequirements]]
    networkInterface: NotRequired[pulumi.Input[ClusterNetworkInterface]]


class ClusterInstanceRequirements(TypedDict):
    """The instance requirements for the instance group, including the instance types to use."""

    instanceTypes: pulumi.Input[Sequence[pulumi.Input[str]]]


class ClusterInstanceStorageConfig(TypedDict):
    """Defines the configuration for attaching additional storage to the instances in the SageMaker …."""

    ebsVolumeConfig: NotRequired[pulumi.Input[ClusterEbsVolumeConfig]]
    fsxLustreConfig: NotRequired[pulumi.Input[ClusterFsxLustreConfig]]
    fsxOpenZfsConfig: NotRequired[pulumi.Input[ClusterFsxOpenZfsConfig]]


class ClusterKubernetesConfig(TypedDict):
    """Specifies the Kubernetes configuration for the instance group."""

    labels: NotRequired[pulumi.Input[Mapping[str, pulumi.Input[str]]]]
    taints: NotRequired[pulumi.Input[Sequence[pulumi.Input[ClusterKubernetesTaint]]]]


class ClusterKubernetesTaint(TypedDict):
    """A Kubernetes taint that can be applied to cluster nodes."""

    key: pulumi.Input[str]
    value: NotRequired[pulumi.Input[str]]
    effect: pulumi.Input[Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]]


class ClusterLifeCycleConfig(TypedDict):
    """Specifies the LifeCycle configuration for the instance group."""

    sourceS3Uri: NotRequired[pulumi.Input[str]]
    onCreate: NotRequired[pulumi.Input[str]]
    onInitComplete: NotRequired[pulumi.Input[str]]


class ClusterNetworkInterface(TypedDict):
    """The network interface configuration for the instance group."""

    interfaceType: NotRequired[pulumi.Input[Literal["efa", "efa-only"]]]


class ClusterOnDemandOptions(TypedDict):
    """Configuration options specific to On-Demand instances."""


class ClusterOrchestrator(TypedDict):
    """The type of orchestrator to use for the SageMaker HyperPod cluster."""

    eks: pulumi.Input[ClusterOrchestratorEksConfig]


class ClusterOrchestratorEksConfig(TypedDict):
    """The Amazon EKS cluster used as the orchestrator for the SageMaker HyperPod cluster."""

    clusterArn: pulumi.Input[str]


class ClusterPatchSchedule(TypedDict):
    """The schedule for automatic patching, including the next patch date."""

    nextPatchDate: NotRequired[pulumi.Input[str]]


class ClusterRestrictedInstanceGroupSpecification(TypedDict):
    """The specifications of a restricted instance group that you need to define."""

    instanceCount: pulumi.Input[int]
    instanceGroupName: pulumi.Input[str]
    instanceType: pulumi.Input[str]
    executionRole: pulumi.Input[str]
    threadsPerCore: NotRequired[pulumi.Input[int]]
    instanceStorageConfigs: NotRequired[pulumi.Input[Sequence[pulumi.Input[ClusterInstanceStorageConfig]]]]
    onStartDeepHealthChecks: NotRequired[
        pulumi.Input[
            Sequence[pulumi.Input[Literal["InstanceStress", "InstanceConnectivity", "MultiNodeTrainingValidation"]]]
        ]
    ]
    trainingPlanArn: NotRequired[pulumi.Input[str]]
    overrideVpcConfig: NotRequired[pulumi.Input[VpcConfig]]
    scheduledUpdateConfig: NotRequired[pulumi.Input[ScheduledUpdateConfig]]
    environmentConfig: NotRequired[pulumi.Input[EnvironmentConfig]]


class ClusterRestrictedInstanceGroupsConfig(TypedDict):
    """The configuration for the restricted instance groups (RIG) in the SageMaker HyperPod cluster."""

    sharedEnvironmentConfig: pulumi.Input[ClusterSharedEnvironmentConfig]


class ClusterSharedEnvironmentConfig(TypedDict):
    """The shared environment configuration for the restricted instance groups (RIG)."""

    fSxLustreDeletionPolicy: pulumi.Input[Literal["DeleteIfNotUsed", "Keep"]]
    fSxLustreConfig: pulumi.Input[FSxLustreConfig]


class ClusterSpotOptions(TypedDict):
    """Configuration options specific to Spot instances."""


class ClusterTieredStorageConfig(TypedDict):
    """The configuration for managed tier checkpointing on the HyperPod cluster."""

    mode: pulumi.Input[Literal["Enable", "Disable"]]
    instanceMemoryAllocationPercentage: NotRequired[pulumi.Input[int]]


class ComputeQuotaConfig(TypedDict):
    """Configuration of the compute allocation definition."""

    computeQuotaResources: NotRequired[pulumi.Input[Sequence[pulumi.Input[ComputeQuotaResourceConfig]]]]
    resourceSharingConfig: NotRequired[pulumi.Input[ResourceSharingConfig]]
    preemptTeamTasks: NotRequired[pulumi.Input[Literal["Never", "LowerPriority"]]]


class ComputeQuotaResourceConfig(TypedDict):
    """Configuration of the resources used for the compute allocation definition."""

    instanceType: pulumi.Input[str]
    count: NotRequired[pulumi.Input[int]]
    accelerators: NotRequired[pulumi.Input[int]]
    vCpu: NotRequired[pulumi.Input[float]]
    memoryInGiB: NotRequired[pulumi.Input[float]]
    acceleratorPartition: NotRequired[pulumi.Input[AcceleratorPartitionConfig]]


class ComputeQuotaTarget(TypedDict):
    """The target entity to allocate compute resources to."""

    teamName: pulumi.Input[str]
    fairShareWeight: NotRequired[pulumi.Input[int]]


class DeploymentConfiguration(TypedDict):
    """The configuration to use when updating the AMI versions."""

    rollingUpdatePolicy: NotRequired[pulumi.Input[RollingDeploymentPolicy]]
    waitIntervalInSeconds: NotRequired[pulumi.Input[int]]
    autoRollbackConfiguration: NotRequired[pulumi.Input[Sequence[pulumi.Input[AlarmDetails]]]]


class EnvironmentConfig(TypedDict):
    """The configuration for the restricted instance groups (RIG) environment."""

    fSxLustreConfig: NotRequired[pulumi.Input[FSxLustreConfig]]


class FSxLustreConfig(TypedDict):
    """Configuration settings for an Amazon FSx for Lustre file system to be used with the cluster."""

    sizeInGiB: pulumi.Input[int]
    perUnitStorageThroughput: pulumi.Input[int]


class PriorityClass(TypedDict):
    """Priority class configuration."""

    name: pulumi.Input[str]
    weight: pulumi.Input[int]


class ResourceSharingConfig(TypedDict):
    """Resource sharing configuration."""

    strategy: pulumi.Input[Literal["Lend", "DontLend", "LendAndBorrow"]]
    borrowLimit: NotRequired[pulumi.Input[int]]
    absoluteBorrowLimits: NotRequired[pulumi.Input[Sequence[pulumi.Input[ComputeQuotaResourceConfig]]]]


class RollingDeploymentPolicy(TypedDict):
    """The policy that SageMaker uses when updating the AMI versions of the cluster."""

    maximumBatchSize: pulumi.Input[CapacitySizeConfig]
    rollbackMaximumBatchSize: NotRequired[pulumi.Input[CapacitySizeConfig]]


class ScheduledUpdateConfig(TypedDict):
    """The configuration object of the schedule that SageMaker uses to update the AMI."""

    scheduleExpression: pulumi.Input[str]
    deploymentConfig: NotRequired[pulumi.Input[DeploymentConfiguration]]


class SchedulerConfig(TypedDict):
    """Configuration about the monitoring schedule."""

    priorityClasses: NotRequired[pulumi.Input[Sequence[pulumi.Input[PriorityClass]]]]
    fairShare: NotRequired[pulumi.Input[Literal["Enabled", "Disabled"]]]
    idleResourceSharing: NotRequired[pulumi.Input[Literal["Enabled", "Disabled"]]]


class Tag(TypedDict):
    """A tag object that consists of a key and an optional value, used to manage metadata for SageMaker …."""

    key: pulumi.Input[str]
    value: pulumi.Input[str]


class VpcConfig(TypedDict):
    """To configure multi-AZ deployments, customize the Amazon VPC configuration at the instance group level."""

    securityGroupIds: pulumi.Input[Sequence[pulumi.Input[str]]]
    subnets: pulumi.Input[Sequence[pulumi.Input[str]]]

"""Property types of the `hyperpod` package, and the inputs of its classes."""

# Written by `make generate` from the schema of the plugin; do not edit.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NotRequired, TypedDict

from pulumi import Input

__all__ = [
    "AcceleratorPartitionConfig",
    "AlarmDetails",
    "AutoscaledGroupInputs",
    "CapacitySizeConfig",
    "ChangeGuardInputs",
    "ClusterAutoPatchConfig",
    "ClusterAutoScalingConfig",
    "ClusterCapacityRequirements",
    "ClusterDrainPolicy",
    "ClusterEbsVolumeConfig",
    "ClusterFsxLustreConfig",
    "ClusterFsxOpenZfsConfig",
    "ClusterInputs",
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
    "ClusterSchedulerConfigInputs",
    "ClusterSharedEnvironmentConfig",
    "ClusterSpotOptions",
    "ClusterTieredStorageConfig",
    "ComputeQuotaConfig",
    "ComputeQuotaInputs",
    "ComputeQuotaResourceConfig",
    "ComputeQuotaTarget",
    "DeploymentConfiguration",
    "EnvironmentConfig",
    "FSxLustreConfig",
    "PriorityClass",
    "ProviderInputs",
    "ReadinessInputs",
    "ResourceSharingConfig",
    "RollingDeploymentPolicy",
    "ScheduledUpdateConfig",
    "SchedulerConfig",
    "Tag",
    "VpcConfig",
]


class AcceleratorPartitionConfig(TypedDict):
    """The accelerator partition configuration for fractional GPU allocation."""

    type: Input[str]
    count: Input[int]


class AlarmDetails(TypedDict):
    """The details of the alarm to monitor during the AMI update."""

    alarmName: Input[str]


class CapacitySizeConfig(TypedDict):
    """The maximum amount of instances in the cluster that SageMaker can update at a time."""

    type: Input[Literal["INSTANCE_COUNT", "CAPACITY_PERCENTAGE"]]
    value: Input[int]


class ClusterAutoPatchConfig(TypedDict):
    """The configuration for automatic OS security patching."""

    patchingStrategy: Input[Literal["WhenIdle", "WhenAllIdle", "DrainFirst"]]
    patchSchedule: NotRequired[Input[ClusterPatchSchedule]]
    deploymentConfig: NotRequired[Input[DeploymentConfiguration]]
    idleWaitWindowInSeconds: NotRequired[Input[int]]
    drainPolicy: NotRequired[Input[ClusterDrainPolicy]]


class ClusterAutoScalingConfig(TypedDict):
    """The autoscaling configuration for the cluster."""

    mode: Input[Literal["Enable", "Disable"]]
    autoScalerType: NotRequired[Input[Literal["Karpenter"]]]


class ClusterCapacityRequirements(TypedDict):
    """Specifies the capacity requirements for the instance group."""

    spot: NotRequired[Input[ClusterSpotOptions]]
    onDemand: NotRequired[Input[ClusterOnDemandOptions]]


class ClusterDrainPolicy(TypedDict):
    """The policy that controls how pods are evicted from an instance before it is patched."""

    drainTimeoutInSeconds: NotRequired[Input[int]]
    onDrainTimeout: NotRequired[Input[Literal["Force", "Skip"]]]


class ClusterEbsVolumeConfig(TypedDict):
    """Defines the configuration for attaching additional Amazon Elastic Block Store (EBS) volumes to the …."""

    volumeSizeInGB: NotRequired[Input[int]]
    volumeKmsKeyId: NotRequired[Input[str]]
    rootVolume: NotRequired[Input[bool]]


class ClusterFsxLustreConfig(TypedDict):
    """Defines the configuration for attaching an Amazon FSx for Lustre file system to the instances in the …."""

    dnsName: Input[str]
    mountName: Input[str]
    mountPath: NotRequired[Input[str]]


class ClusterFsxOpenZfsConfig(TypedDict):
    """Defines the configuration for attaching an Amazon FSx for OpenZFS file system to the instances in the …."""

    dnsName: Input[str]
    mountPath: NotRequired[Input[str]]


class ClusterInstanceGroupSpecification(TypedDict):
    """The specifications of an instance group that you need to define."""

    instanceCount: Input[int]
    minInstanceCount: NotRequired[Input[int]]
    instanceGroupName: Input[str]
    instanceType: NotRequired[Input[str]]
    instanceRequirements: NotRequired[Input[ClusterInstanceRequirements]]
    lifeCycleConfig: NotRequired[Input[ClusterLifeCycleConfig]]
    executionRole: Input[str]
    threadsPerCore: NotRequired[Input[int]]
    instanceStorageConfigs: NotRequired[Input[Sequence[Input[ClusterInstanceStorageConfig]]]]
    onStartDeepHealthChecks: NotRequired[
        Input[Sequence[Input[Literal["InstanceStress", "InstanceConnectivity", "MultiNodeTrainingValidation"]]]]
    ]
    trainingPlanArn: NotRequired[Input[str]]
    overrideVpcConfig: NotRequired[Input[VpcConfig]]
    scheduledUpdateConfig: NotRequired[Input[ScheduledUpdateConfig]]
    imageId: NotRequired[Input[str]]
    autoPatchConfig: NotRequired[Input[ClusterAutoPatchConfig]]
    imageReleaseVersion: NotRequired[Input[str]]
    kubernetesConfig: NotRequired[Input[ClusterKubernetesConfig]]
    capacityRequirements: NotRequired[Input[ClusterCapacityRequirements]]
    networkInterface: NotRequired[Input[ClusterNetworkInterface]]


class ClusterInstanceRequirements(TypedDict):
    """The instance requirements for the instance group, including the instance types to use."""

    instanceTypes: Input[Sequence[Input[str]]]


class ClusterInstanceStorageConfig(TypedDict):
    """Defines the configuration for attaching additional storage to the instances in the SageMaker HyperPod …."""

    ebsVolumeConfig: NotRequired[Input[ClusterEbsVolumeConfig]]
    fsxLustreConfig: NotRequired[Input[ClusterFsxLustreConfig]]
    fsxOpenZfsConfig: NotRequired[Input[ClusterFsxOpenZfsConfig]]


class ClusterKubernetesConfig(TypedDict):
    """Specifies the Kubernetes configuration for the instance group."""

    labels: NotRequired[Input[Mapping[str, Input[str]]]]
    taints: NotRequired[Input[Sequence[Input[ClusterKubernetesTaint]]]]


class ClusterKubernetesTaint(TypedDict):
    """A Kubernetes taint that can be applied to cluster nodes."""

    key: Input[str]
    value: NotRequired[Input[str]]
    effect: Input[Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]]


class ClusterLifeCycleConfig(TypedDict):
    """Specifies the LifeCycle configuration for the instance group."""

    sourceS3Uri: NotRequired[Input[str]]
    onCreate: NotRequired[Input[str]]
    onInitComplete: NotRequired[Input[str]]


class ClusterNetworkInterface(TypedDict):
    """The network interface configuration for the instance group."""

    interfaceType: NotRequired[Input[Literal["efa", "efa-only"]]]


class ClusterOnDemandOptions(TypedDict):
    """Configuration options specific to On-Demand instances."""


class ClusterOrchestrator(TypedDict):
    """The type of orchestrator to use for the SageMaker HyperPod cluster."""

    eks: Input[ClusterOrchestratorEksConfig]


class ClusterOrchestratorEksConfig(TypedDict):
    """The Amazon EKS cluster used as the orchestrator for the SageMaker HyperPod cluster."""

    clusterArn: Input[str]


class ClusterPatchSchedule(TypedDict):
    """The schedule for automatic patching, including the next patch date."""

    nextPatchDate: NotRequired[Input[str]]


class ClusterRestrictedInstanceGroupSpecification(TypedDict):
    """The specifications of a restricted instance group that you need to define."""

    instanceCount: Input[int]
    instanceGroupName: Input[str]
    instanceType: Input[str]
    executionRole: Input[str]
    threadsPerCore: NotRequired[Input[int]]
    instanceStorageConfigs: NotRequired[Input[Sequence[Input[ClusterInstanceStorageConfig]]]]
    onStartDeepHealthChecks: NotRequired[
        Input[Sequence[Input[Literal["InstanceStress", "InstanceConnectivity", "MultiNodeTrainingValidation"]]]]
    ]
    trainingPlanArn: NotRequired[Input[str]]
    overrideVpcConfig: NotRequired[Input[VpcConfig]]
    scheduledUpdateConfig: NotRequired[Input[ScheduledUpdateConfig]]
    environmentConfig: NotRequired[Input[EnvironmentConfig]]


class ClusterRestrictedInstanceGroupsConfig(TypedDict):
    """The configuration for the restricted instance groups (RIG) in the SageMaker HyperPod cluster."""

    sharedEnvironmentConfig: Input[ClusterSharedEnvironmentConfig]


class ClusterSharedEnvironmentConfig(TypedDict):
    """The shared environment configuration for the restricted instance groups (RIG)."""

    fSxLustreDeletionPolicy: Input[Literal["DeleteIfNotUsed", "Keep"]]
    fSxLustreConfig: Input[FSxLustreConfig]


class ClusterSpotOptions(TypedDict):
    """Configuration options specific to Spot instances."""


class ClusterTieredStorageConfig(TypedDict):
    """The configuration for managed tier checkpointing on the HyperPod cluster."""

    mode: Input[Literal["Enable", "Disable"]]
    instanceMemoryAllocationPercentage: NotRequired[Input[int]]


class ComputeQuotaConfig(TypedDict):
    """Configuration of the compute allocation definition."""

    computeQuotaResources: NotRequired[Input[Sequence[Input[ComputeQuotaResourceConfig]]]]
    resourceSharingConfig: NotRequired[Input[ResourceSharingConfig]]
    preemptTeamTasks: NotRequired[Input[Literal["Never", "LowerPriority"]]]


class ComputeQuotaResourceConfig(TypedDict):
    """Configuration of the resources used for the compute allocation definition."""

    instanceType: Input[str]
    count: NotRequired[Input[int]]
    accelerators: NotRequired[Input[int]]
    vCpu: NotRequired[Input[float]]
    memoryInGiB: NotRequired[Input[float]]
    acceleratorPartition: NotRequired[Input[AcceleratorPartitionConfig]]


class ComputeQuotaTarget(TypedDict):
    """The target entity to allocate compute resources to."""

    teamName: Input[str]
    fairShareWeight: NotRequired[Input[int]]


class DeploymentConfiguration(TypedDict):
    """The configuration to use when updating the AMI versions."""

    rollingUpdatePolicy: NotRequired[Input[RollingDeploymentPolicy]]
    waitIntervalInSeconds: NotRequired[Input[int]]
    autoRollbackConfiguration: NotRequired[Input[Sequence[Input[AlarmDetails]]]]


class EnvironmentConfig(TypedDict):
    """The configuration for the restricted instance groups (RIG) environment."""

    fSxLustreConfig: NotRequired[Input[FSxLustreConfig]]


class FSxLustreConfig(TypedDict):
    """Configuration settings for an Amazon FSx for Lustre file system to be used with the cluster."""

    sizeInGiB: Input[int]
    perUnitStorageThroughput: Input[int]


class PriorityClass(TypedDict):
    """Priority class configuration."""

    name: Input[str]
    weight: Input[int]


class ResourceSharingConfig(TypedDict):
    """Resource sharing configuration."""

    strategy: Input[Literal["Lend", "DontLend", "LendAndBorrow"]]
    borrowLimit: NotRequired[Input[int]]
    absoluteBorrowLimits: NotRequired[Input[Sequence[Input[ComputeQuotaResourceConfig]]]]


class RollingDeploymentPolicy(TypedDict):
    """The policy that SageMaker uses when updating the AMI versions of the cluster."""

    maximumBatchSize: Input[CapacitySizeConfig]
    rollbackMaximumBatchSize: NotRequired[Input[CapacitySizeConfig]]


class ScheduledUpdateConfig(TypedDict):
    """The configuration object of the schedule that SageMaker uses to update the AMI."""

    scheduleExpression: Input[str]
    deploymentConfig: NotRequired[Input[DeploymentConfiguration]]


class SchedulerConfig(TypedDict):
    """Configuration about the monitoring schedule."""

    priorityClasses: NotRequired[Input[Sequence[Input[PriorityClass]]]]
    fairShare: NotRequired[Input[Literal["Enabled", "Disabled"]]]
    idleResourceSharing: NotRequired[Input[Literal["Enabled", "Disabled"]]]


class Tag(TypedDict):
    """A tag object that consists of a key and an optional value, used to manage metadata for SageMaker Amazon …."""

    key: Input[str]
    value: Input[str]


class VpcConfig(TypedDict):
    """To configure multi-AZ deployments, customize the Amazon VPC configuration at the instance group level."""

    securityGroupIds: Input[Sequence[Input[str]]]
    subnets: Input[Sequence[Input[str]]]


class AutoscaledGroupInputs(TypedDict):
    """Inputs of AutoscaledGroup."""

    cluster_arn: Input[str]
    """ARN of the cluster that has the group. A change replaces the resource."""
    instance_group_name: Input[str]
    """Name of the group, as the Cluster declares it. A change replaces the resource."""


class ChangeGuardInputs(TypedDict):
    """Inputs of ChangeGuard."""

    subject: Input[str]
    """Name of the guarded resource in messages."""
    allow_replace: NotRequired[Input[Sequence[Input[str]]] | None]
    """Names of resources that may be replaced or deleted, with a warning only."""
    contents: NotRequired[Input[Mapping[str, Input[str]]] | None]
    """Description of each guarded resource and of what is deleted with it, for messages."""
    fixed: NotRequired[Input[Mapping[str, Input[str]]] | None]
    """`network`: the VPC; `group` or `group in zone`: the place of an instance group. They can't change."""
    identity: NotRequired[Input[Mapping[str, Input[str]]] | None]
    """Live ID of each guarded resource, by its name in allowReplace."""
    nested: NotRequired[Input[Sequence[Input[str]]] | None]
    """Names of resources that depend on each other, in order: each depends on the one before it."""
    parts: NotRequired[Input[Mapping[str, Input[str]]] | None]
    """Live name of each part, such as `teams/nlp`; deleting one requires its name in allowReplace."""
    protected: NotRequired[Input[Sequence[Input[str]]] | None]
    """Names of resources that their services don't delete until a run lifts their protection."""
    version: NotRequired[Input[str] | None]
    """Kubernetes minor version. It can only increase, by one at a time."""
    where: NotRequired[Input[str] | None]
    """Where to set allowReplace, for messages."""


class ClusterInputs(TypedDict):
    """Inputs of Cluster."""

    cluster_name: Input[str]
    """The name for the new SageMaker HyperPod cluster. A change replaces the resource."""
    orchestrator: Input[ClusterOrchestrator]
    """The type of orchestrator to use for the SageMaker HyperPod cluster. A change replaces the resource."""
    vpc_config: Input[VpcConfig]
    """Specifies the Amazon Virtual Private Cloud (VPC) that is associated with the Amazon SageMaker HyperPod …."""
    allow_delete_instance_groups: NotRequired[Input[Sequence[Input[str]]] | None]
    """Names of groups with instances that a change may delete."""
    allow_replace: NotRequired[Input[bool] | None]
    """Whether a change may replace the cluster."""
    auto_scaling: NotRequired[Input[ClusterAutoScalingConfig] | None]
    """The autoscaling configuration for the cluster."""
    autoscaled_instance_groups: NotRequired[Input[Sequence[Input[str]]] | None]
    """Names of the groups that managed Karpenter scales. Their counts are ignored after creation."""
    cluster_role: NotRequired[Input[str] | None]
    """The Amazon Resource Name (ARN) of the IAM role that HyperPod assumes to perform cluster autoscaling …."""
    instance_groups: NotRequired[Input[Sequence[Input[ClusterInstanceGroupSpecification]]] | None]
    """The instance groups to be created in the SageMaker HyperPod cluster."""
    node_provisioning_mode: NotRequired[Input[Literal["Continuous"]] | None]
    """The mode for provisioning nodes in the cluster. A change replaces the resource."""
    node_recovery: NotRequired[Input[Literal["Automatic", "None"]] | None]
    """The node recovery mode for the SageMaker HyperPod cluster."""
    restricted_instance_groups: NotRequired[Input[Sequence[Input[ClusterRestrictedInstanceGroupSpecification]]] | None]
    """The specialized instance groups for training models like Amazon Nova to be created in the SageMaker …."""
    restricted_instance_groups_config: NotRequired[Input[ClusterRestrictedInstanceGroupsConfig] | None]
    """The configuration for the restricted instance groups (RIG) in the SageMaker HyperPod cluster."""
    tags: NotRequired[Input[Sequence[Input[Tag]]] | None]
    """Custom tags for managing the SageMaker HyperPod cluster as an Amazon Web Services resource."""
    tiered_storage_config: NotRequired[Input[ClusterTieredStorageConfig] | None]
    """The configuration for managed tier checkpointing on the HyperPod cluster."""


class ClusterSchedulerConfigInputs(TypedDict):
    """Inputs of ClusterSchedulerConfig."""

    cluster_arn: Input[str]
    """ARN of the cluster. A change replaces the resource."""
    name: Input[str]
    """The name for the cluster policy. A change replaces the resource."""
    scheduler_config: Input[SchedulerConfig]
    """Configuration about the monitoring schedule."""
    description: NotRequired[Input[str] | None]
    """Description of the cluster policy."""
    tags: NotRequired[Input[Sequence[Input[Tag]]] | None]
    """Tags of the cluster policy."""


class ComputeQuotaInputs(TypedDict):
    """Inputs of ComputeQuota."""

    cluster_arn: Input[str]
    """ARN of the cluster. A change replaces the resource."""
    compute_quota_config: Input[ComputeQuotaConfig]
    """Configuration of the compute allocation definition."""
    compute_quota_target: Input[ComputeQuotaTarget]
    """The target entity to allocate compute resources to."""
    name: Input[str]
    """The name of the compute allocation definition. A change replaces the resource."""
    activation_state: NotRequired[Input[Literal["Enabled", "Disabled"]] | None]
    """The state of the compute allocation being described."""
    description: NotRequired[Input[str] | None]
    """Description of the compute allocation definition."""
    elastic_instance_types: NotRequired[Input[Sequence[Input[str]]] | None]
    """Instance types whose quota may rely on nodes that Karpenter adds. For policies; it isn't sent to SageMaker."""
    future_instance_types: NotRequired[Input[Sequence[Input[str]]] | None]
    """Instance types whose quota may exist before an instance group. For policies; it isn't sent to SageMaker."""
    tags: NotRequired[Input[Sequence[Input[Tag]]] | None]
    """Tags of the compute allocation definition."""


class ProviderInputs(TypedDict):
    """Inputs of Provider."""

    account_id: NotRequired[Input[str] | None]
    """Required account of the credentials. With credentials of another account, nothing is read or changed."""
    allow_replace: NotRequired[Input[str] | None]
    """`true` allows changes that replace clusters."""
    assume_role_arn: NotRequired[Input[str] | None]
    """Role to assume for each call."""
    capacity_wait_seconds: NotRequired[Input[str] | None]
    """Seconds during which an increase that the service rejects is tried again (300)."""
    contents: NotRequired[Input[str] | None]
    """What a move to another account or region would delete, for messages."""
    endpoint: NotRequired[Input[str] | None]
    """URL of the SageMaker API, for a local cloud."""
    leaving_teams: NotRequired[Input[str] | None]
    """Comma-separated teams whose quotas this run deletes. They are set to 0 if the service rejects an increase …."""
    profile: NotRequired[Input[str] | None]
    """Named profile. Default: aws:profile, or the profile in the environment variables."""
    region: NotRequired[Input[str] | None]
    """AWS region. Default: aws:region, or the region in the environment variables."""
    where: NotRequired[Input[str] | None]
    """Where to allow the loss of a cluster or instance group, for messages. Default: on the Cluster."""


class ReadinessInputs(TypedDict):
    """Inputs of Readiness."""

    minutes: Input[float]
    """Maximum wait in minutes."""
    certificate_authority: NotRequired[Input[str] | None]
    """Certificate authority of the Kubernetes API, in base64."""
    cluster_arn: NotRequired[Input[str] | None]
    """HyperPod cluster that has the groups."""
    deployments: NotRequired[Input[Sequence[Input[str]]] | None]
    """Deployments that must be available, `namespace/name`."""
    eks_cluster_name: NotRequired[Input[str] | None]
    """EKS cluster whose Kubernetes API is read."""
    endpoint: NotRequired[Input[str] | None]
    """Address of the Kubernetes API. Without other inputs, only access for the caller is awaited."""
    instance_counts: NotRequired[Input[Mapping[str, Input[float]]] | None]
    """Instances that each instance group should have. When the time is up, the run continues with a warning."""
    instance_groups: NotRequired[Input[Sequence[Input[str]]] | None]
    """Instance groups whose nodes must be Ready and schedulable."""
    key_arn: NotRequired[Input[str] | None]
    """KMS key that must be enabled."""
    pod_identity_associations: NotRequired[Input[Mapping[str, Input[str]]] | None]
    """IDs of Pod Identity associations that must be effective, by `namespace/service-account`."""

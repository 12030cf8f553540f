"""Converts sections of a cluster and its groups to the API's format; omitted settings are omitted."""

from typing import cast

from hpkit.config.cluster import (
    AutoPatch,
    BatchSize,
    DeploymentConfig,
    DrainPolicy,
    EnvironmentConfig,
    FSxLustreConfig,
    InstanceGroup,
    InstanceGroupBase,
    RestrictedInstanceGroupsConfig,
    ScheduledUpdate,
    Taint,
    TieredStorage,
)
from hpkit.plan.model import GroupPlan, RestrictedGroupPlan
from hpkit.program.sdk import types as api
from hpkit.program.sdk.types import (
    CapacitySizeConfig,
    ClusterAutoPatchConfig,
    ClusterDrainPolicy,
    ClusterInstanceGroupSpecification,
    ClusterInstanceStorageConfig,
    ClusterKubernetesConfig,
    ClusterKubernetesTaint,
    ClusterRestrictedInstanceGroupsConfig,
    ClusterRestrictedInstanceGroupSpecification,
    ClusterTieredStorageConfig,
    DeploymentConfiguration,
    RollingDeploymentPolicy,
    ScheduledUpdateConfig,
)

__all__ = [
    "add_capacity",
    "add_checks",
    "add_instances",
    "add_upkeep",
    "environment",
    "shared_environment",
    "tiered_storage",
]

_Group = ClusterInstanceGroupSpecification | ClusterRestrictedInstanceGroupSpecification


def add_capacity(config: ClusterInstanceGroupSpecification, group: GroupPlan) -> None:
    """Add an ordinary group's instances, and their image."""
    spec = group.spec
    if spec.instance_type:
        config["instanceType"] = spec.instance_type
    else:
        config["instanceRequirements"] = {"instanceTypes": list(spec.instance_types)}
    if spec.min_instance_count is not None:
        config["minInstanceCount"] = spec.min_instance_count
    if spec.capacity_type == "Spot":
        config["capacityRequirements"] = {"spot": {}}
    add_instances(config, group)
    if spec.image_id is not None:
        config["imageId"] = spec.image_id
    if spec.image_release_version is not None:
        config["imageReleaseVersion"] = spec.image_release_version
    if spec.network_interface is not None:
        config["networkInterface"] = {"interfaceType": spec.network_interface.interface_type}


def add_instances(config: _Group, group: GroupPlan | RestrictedGroupPlan) -> None:
    """Add the settings that all groups' instances share."""
    spec = group.spec
    if spec.training_plan_arn is not None:
        config["trainingPlanArn"] = spec.training_plan_arn
    if spec.instance_storage_configs:
        config["instanceStorageConfigs"] = [
            cast("ClusterInstanceStorageConfig", storage.model_dump(by_alias=True, exclude_defaults=True))
            for storage in spec.instance_storage_configs
        ]
    if spec.threads_per_core is not None:
        config["threadsPerCore"] = spec.threads_per_core


def add_upkeep(config: ClusterInstanceGroupSpecification, spec: InstanceGroup) -> None:
    """Add how nodes of an ordinary group are checked, labelled, patched and updated."""
    add_checks(config, spec)
    if spec.labels or spec.taints:
        config["kubernetesConfig"] = _kubernetes(spec)
    if spec.auto_patch is not None:
        config["autoPatchConfig"] = _auto_patch(spec.auto_patch)


def add_checks(config: _Group, spec: InstanceGroupBase) -> None:
    """Add how nodes of any group are checked, and when their AMI is updated."""
    if spec.deep_health_checks:
        config["onStartDeepHealthChecks"] = list(spec.deep_health_checks)
    if spec.scheduled_update is not None:
        config["scheduledUpdateConfig"] = _scheduled_update(spec.scheduled_update)


def environment(spec: EnvironmentConfig) -> api.EnvironmentConfig:
    """Return the environment of a restricted group as the API takes it."""
    return {"fSxLustreConfig": _lustre(spec.fsx_lustre_config)}


def shared_environment(spec: RestrictedInstanceGroupsConfig) -> ClusterRestrictedInstanceGroupsConfig:
    """Return the shared settings of all restricted groups in the API's format."""
    shared = spec.shared_environment_config
    return {
        "sharedEnvironmentConfig": {
            "fSxLustreDeletionPolicy": shared.fsx_lustre_deletion_policy,
            "fSxLustreConfig": _lustre(shared.fsx_lustre_config),
        }
    }


def _lustre(spec: FSxLustreConfig) -> api.FSxLustreConfig:
    return {"sizeInGiB": spec.size_in_gib, "perUnitStorageThroughput": spec.per_unit_storage_throughput}


def tiered_storage(spec: TieredStorage) -> ClusterTieredStorageConfig:
    """Return managed tiered checkpointing as the API takes it."""
    config: ClusterTieredStorageConfig = {"mode": spec.mode}
    if spec.instance_memory_allocation_percentage is not None:
        config["instanceMemoryAllocationPercentage"] = spec.instance_memory_allocation_percentage
    return config


def _kubernetes(spec: InstanceGroup) -> ClusterKubernetesConfig:
    config: ClusterKubernetesConfig = {}
    if spec.labels:
        config["labels"] = dict(sorted(spec.labels.items()))
    if spec.taints:
        config["taints"] = [_taint(each) for each in spec.taints]
    return config


def _taint(spec: Taint) -> ClusterKubernetesTaint:
    config: ClusterKubernetesTaint = {"key": spec.key, "effect": spec.effect}
    if spec.value is not None:
        config["value"] = spec.value
    return config


def _auto_patch(spec: AutoPatch) -> ClusterAutoPatchConfig:
    config: ClusterAutoPatchConfig = {"patchingStrategy": spec.patching_strategy}
    if spec.idle_wait_window_in_seconds is not None:
        config["idleWaitWindowInSeconds"] = spec.idle_wait_window_in_seconds
    if spec.drain_policy is not None:
        config["drainPolicy"] = _drain_policy(spec.drain_policy)
    if spec.deployment_config is not None:
        config["deploymentConfig"] = _deployment(spec.deployment_config)
    return config


def _drain_policy(spec: DrainPolicy) -> ClusterDrainPolicy:
    config: ClusterDrainPolicy = {}
    if spec.drain_timeout_in_seconds is not None:
        config["drainTimeoutInSeconds"] = spec.drain_timeout_in_seconds
    if spec.on_drain_timeout is not None:
        config["onDrainTimeout"] = spec.on_drain_timeout
    return config


def _scheduled_update(spec: ScheduledUpdate) -> ScheduledUpdateConfig:
    config: ScheduledUpdateConfig = {"scheduleExpression": spec.schedule_expression}
    if spec.deployment_config is not None:
        config["deploymentConfig"] = _deployment(spec.deployment_config)
    return config


def _deployment(spec: DeploymentConfig) -> DeploymentConfiguration:
    rolling: RollingDeploymentPolicy = {"maximumBatchSize": _batch(spec.maximum_batch_size)}
    if spec.rollback_maximum_batch_size is not None:
        rolling["rollbackMaximumBatchSize"] = _batch(spec.rollback_maximum_batch_size)
    config: DeploymentConfiguration = {"rollingUpdatePolicy": rolling}
    if spec.wait_interval_in_seconds is not None:
        config["waitIntervalInSeconds"] = spec.wait_interval_in_seconds
    if spec.auto_rollback_alarms:
        config["autoRollbackConfiguration"] = [{"alarmName": alarm} for alarm in spec.auto_rollback_alarms]
    return config


def _batch(spec: BatchSize) -> CapacitySizeConfig:
    return {"type": spec.type, "value": spec.value}

"""Converts sections of a cluster and its groups to the API's format; omitted settings are omitted.

The file's keys are the API's names, so a section is mostly the model's own dump.
"""

from typing import Any, Final, cast

from hpkit.config.models.base import Model
from hpkit.config.models.cluster import (
    AutoPatch,
    EnvironmentConfig,
    InstanceGroup,
    InstanceGroupBase,
    RestrictedInstanceGroupsConfig,
    ScheduledUpdate,
    TieredStorage,
)
from hpkit.plan.model import GroupPlan, RestrictedGroupPlan
from hpkit.program.sdk import types as api
from hpkit.program.sdk.types import (
    ClusterAutoPatchConfig,
    ClusterInstanceGroupSpecification,
    ClusterKubernetesConfig,
    ClusterRestrictedInstanceGroupsConfig,
    ClusterRestrictedInstanceGroupSpecification,
    ClusterTieredStorageConfig,
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
# Settings of a group that the API has under the same names.
_SHARED: Final = {"training_plan_arn", "instance_storage_configs", "threads_per_core"}
_ORDINARY: Final = {"instance_type", "min_instance_count", "image_id", "image_release_version", "network_interface"}


def add_capacity(config: ClusterInstanceGroupSpecification, group: GroupPlan) -> None:
    """Add an ordinary group's instances, and their image."""
    spec = group.spec
    if spec.instance_types:
        config["instanceRequirements"] = {"instanceTypes": list(spec.instance_types)}
    if spec.is_spot:
        config["capacityRequirements"] = {"spot": {}}
    config.update(cast("ClusterInstanceGroupSpecification", _stated(spec, _ORDINARY)))
    add_instances(config, group)


def add_instances(config: _Group, group: GroupPlan | RestrictedGroupPlan) -> None:
    """Add the settings that all groups' instances share."""
    config.update(cast("Any", _stated(group.spec, _SHARED)))


def add_upkeep(config: ClusterInstanceGroupSpecification, spec: InstanceGroup) -> None:
    """Add how nodes of an ordinary group are checked, labelled, patched and updated."""
    add_checks(config, spec)
    kubernetes = _stated(spec, {"labels", "taints"})
    if kubernetes:
        config["kubernetesConfig"] = cast("ClusterKubernetesConfig", kubernetes)
    if spec.auto_patch is not None:
        config["autoPatchConfig"] = cast("ClusterAutoPatchConfig", _update(spec.auto_patch))


def add_checks(config: _Group, spec: InstanceGroupBase) -> None:
    """Add how nodes of any group are checked, and when their AMI is updated."""
    if spec.deep_health_checks:
        config["onStartDeepHealthChecks"] = list(spec.deep_health_checks)
    if spec.scheduled_update is not None:
        config["scheduledUpdateConfig"] = cast("ScheduledUpdateConfig", _update(spec.scheduled_update))


def environment(spec: EnvironmentConfig) -> api.EnvironmentConfig:
    """Return the environment of a restricted group as the API takes it."""
    return cast("api.EnvironmentConfig", _stated(spec))


def shared_environment(spec: RestrictedInstanceGroupsConfig) -> ClusterRestrictedInstanceGroupsConfig:
    """Return the shared settings of all restricted groups in the API's format."""
    return cast("ClusterRestrictedInstanceGroupsConfig", _stated(spec))


def tiered_storage(spec: TieredStorage) -> ClusterTieredStorageConfig:
    """Return managed tiered checkpointing as the API takes it."""
    return cast("ClusterTieredStorageConfig", _stated(spec))


def _stated(spec: Model, names: set[str] | None = None) -> dict[str, Any]:
    """Return a section without omitted settings; names: the fields to include, by default all."""
    return spec.model_dump(mode="json", by_alias=True, exclude_defaults=True, include=names)


def _update(spec: AutoPatch | ScheduledUpdate) -> dict[str, Any]:
    """Return an update; the API has a level more for batches and alarms than the file."""
    config = _stated(spec)
    if "deploymentConfig" in config:
        stated = config["deploymentConfig"]
        sizes = ("maximumBatchSize", "rollbackMaximumBatchSize")
        deployment: dict[str, Any] = {
            "rollingUpdatePolicy": {size: stated.pop(size) for size in sizes if size in stated}
        }
        if alarms := stated.pop("autoRollbackAlarms", None):
            deployment["autoRollbackConfiguration"] = [{"alarmName": alarm} for alarm in alarms]
        config["deploymentConfig"] = deployment | stated
    return config

"""Members of the API's CreateCluster without a key in the organization file, from botocore's service model."""

from collections.abc import Iterator, Mapping

from botocore.loaders import Loader
from botocore.model import ServiceModel, Shape
from pydantic import BaseModel

from hpkit.config.models.cluster import (
    AutoPatch,
    BatchSize,
    Cluster,
    ClusterEbsVolumeConfig,
    ClusterInstanceStorageConfig,
    ClusterNetworkInterface,
    DeploymentConfig,
    DrainPolicy,
    EnvironmentConfig,
    FSxLustreConfig,
    InstanceGroup,
    OverrideVpcConfig,
    PatchSchedule,
    RestrictedInstanceGroup,
    RestrictedInstanceGroupsConfig,
    ScheduledUpdate,
    SharedEnvironmentConfig,
    Taint,
    TieredStorage,
)

__all__ = ["ELSEWHERE", "without_key", "without_key_text"]

# Names in the file that differ from the API's.
_NAMES = {
    "AutoPatchConfig": "autoPatch",
    "AutoRollbackConfiguration": "autoRollbackAlarms",
    "CapacityRequirements": "capacityType",
    "ClusterName": "name",
    "InstanceGroupName": "name",
    "InstanceRequirements": "instanceTypes",
    "KubernetesConfig": "labels",
    "LifeCycleConfig": "lifecycleScript",
    "OnStartDeepHealthChecks": "deepHealthChecks",
    "ScheduledUpdateConfig": "scheduledUpdate",
    "TieredStorageConfig": "tieredStorage",
}
# Structures whose members the file has; several members of the API may be one key, or values of one key.
_MODELS: Mapping[str, tuple[type[BaseModel], Mapping[str, str]]] = {
    "CreateClusterRequest": (Cluster, _NAMES),
    "ClusterAutoPatchConfig": (AutoPatch, _NAMES),
    "CapacitySizeConfig": (BatchSize, _NAMES),
    "ClusterDrainPolicy": (DrainPolicy, _NAMES),
    "ClusterEbsVolumeConfig": (ClusterEbsVolumeConfig, _NAMES),
    "ClusterPatchSchedule": (PatchSchedule, _NAMES),
    "ClusterInstanceGroupSpecification": (InstanceGroup, _NAMES),
    "ClusterInstanceStorageConfig": (ClusterInstanceStorageConfig, _NAMES),
    "ClusterKubernetesConfig": (InstanceGroup, _NAMES),
    "ClusterKubernetesTaint": (Taint, _NAMES),
    "ClusterLifeCycleConfig": (
        InstanceGroup,
        {"SourceS3Uri": "lifecycleScript", "OnCreate": "lifecycleScript"},
    ),
    "ClusterNetworkInterface": (ClusterNetworkInterface, _NAMES),
    "ClusterRestrictedInstanceGroupSpecification": (RestrictedInstanceGroup, _NAMES),
    "ClusterRestrictedInstanceGroupsConfig": (RestrictedInstanceGroupsConfig, _NAMES),
    "ClusterSharedEnvironmentConfig": (SharedEnvironmentConfig, _NAMES),
    "ClusterTieredStorageConfig": (TieredStorage, _NAMES),
    "DeploymentConfiguration": (DeploymentConfig, {**_NAMES, "RollingUpdatePolicy": "maximumBatchSize"}),
    "EnvironmentConfig": (EnvironmentConfig, _NAMES),
    "FSxLustreConfig": (FSxLustreConfig, _NAMES),
    "RollingDeploymentPolicy": (DeploymentConfig, _NAMES),
    "ScheduledUpdateConfig": (ScheduledUpdate, _NAMES),
    "VpcConfig": (OverrideVpcConfig, _NAMES),
}
# Values of one key, or of a list of texts.
_FLAT: Mapping[str, set[str]] = {
    "AlarmDetails": {"AlarmName"},
    "ClusterCapacityRequirements": {"OnDemand", "Spot"},
    "ClusterInstanceRequirements": {"InstanceTypes"},
    "ClusterOnDemandOptions": set(),
    "ClusterSpotOptions": set(),
}
# Other sections of the file set these, or they are the same on every platform. Slurm clusters aren't supported.
ELSEWHERE: Mapping[str, set[str]] = {
    "CreateClusterRequest": {
        "AutoScaling", "ClusterRole", "NodeProvisioningMode", "Orchestrator", "Tags", "VpcConfig",
    },
    "ClusterInstanceGroupSpecification": {"SlurmConfig"},
    # FSx systems of a group require Slurm (developer guide, "FSx configuration via InstanceStorageConfigs").
    "ClusterInstanceStorageConfig": {"FsxLustreConfig", "FsxOpenZfsConfig"},
    # Groups on EKS require OnCreate (developer guide, "Node lifecycle configuration options").
    "ClusterLifeCycleConfig": {"OnInitComplete"},
}  # fmt: skip


def without_key() -> dict[str, set[str]]:
    """Return the members of CreateCluster that no key of the file sets, by their shape."""
    model = ServiceModel(Loader().load_service_model("sagemaker", "service-2"), "sagemaker")
    missing = {}
    for shape in _structures(model.shape_for("CreateClusterRequest")):
        if shape.name in _FLAT:
            absent = set(shape.members) - _FLAT[shape.name]
        elif shape.name in _MODELS:
            config, names = _MODELS[shape.name]
            keys = {field.alias or name for name, field in config.model_fields.items()}
            absent = {each for each in shape.members if names.get(each, each[0].lower() + each[1:]) not in keys}
        else:
            absent = set(shape.members)
        if absent:
            missing[shape.name] = absent
    return missing


def without_key_text() -> str:
    """Return the section of the reference page that lists them."""
    lines = [
        f"- `{name}`: {', '.join(f'`{each}`' for each in sorted(absent))}" for name, absent in without_key().items()
    ]
    return "\n".join(
        [
            "",
            "## CreateCluster properties without a key",
            "",
            "hpkit sets most of these from other sections of the file. It doesn't support Slurm.",
            "",
            *lines,
            "",
        ]
    )


def _structures(shape: Shape) -> Iterator[Shape]:
    """Yield the structures of a request, without those that the file doesn't support."""
    if shape.type_name == "list":
        yield from _structures(shape.member)
    elif shape.type_name == "structure":
        yield shape
        for name, member in shape.members.items():
            if name not in ELSEWHERE.get(shape.name, ()):
                yield from _structures(member)

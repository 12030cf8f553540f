"""What CreateCluster takes and the organization file can't say: a property that AWS adds makes this test fail."""

import botocore.session

from hpkit.config.cluster import (
    AutoPatch,
    BatchSize,
    Cluster,
    ClusterEbsVolumeConfig,
    ClusterFsxLustreConfig,
    ClusterFsxOpenZfsConfig,
    ClusterInstanceStorageConfig,
    ClusterNetworkInterface,
    DeploymentConfig,
    DrainPolicy,
    EnvironmentConfig,
    FSxLustreConfig,
    InstanceGroup,
    OverrideVpcConfig,
    RestrictedInstanceGroup,
    RestrictedInstanceGroupsConfig,
    ScheduledUpdate,
    SharedEnvironmentConfig,
    Taint,
    TieredStorage,
)

# Names of the file where they differ from the API's.
NAMES = {
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
# Where the file has the members of a structure; several members of the API may be one key, or values of one.
MODELS = {
    "CreateClusterRequest": (Cluster, NAMES),
    "ClusterAutoPatchConfig": (AutoPatch, NAMES),
    "CapacitySizeConfig": (BatchSize, NAMES),
    "ClusterDrainPolicy": (DrainPolicy, NAMES),
    "ClusterEbsVolumeConfig": (ClusterEbsVolumeConfig, NAMES),
    "ClusterFsxLustreConfig": (ClusterFsxLustreConfig, NAMES),
    "ClusterFsxOpenZfsConfig": (ClusterFsxOpenZfsConfig, NAMES),
    "ClusterInstanceGroupSpecification": (InstanceGroup, NAMES),
    "ClusterInstanceStorageConfig": (ClusterInstanceStorageConfig, NAMES),
    "ClusterKubernetesConfig": (InstanceGroup, NAMES),
    "ClusterKubernetesTaint": (Taint, NAMES),
    "ClusterLifeCycleConfig": (
        InstanceGroup,
        {"SourceS3Uri": "lifecycleScript", "OnCreate": "lifecycleEvent", "OnInitComplete": "lifecycleEvent"},
    ),
    "ClusterNetworkInterface": (ClusterNetworkInterface, NAMES),
    "ClusterRestrictedInstanceGroupSpecification": (RestrictedInstanceGroup, NAMES),
    "ClusterRestrictedInstanceGroupsConfig": (RestrictedInstanceGroupsConfig, NAMES),
    "ClusterSharedEnvironmentConfig": (SharedEnvironmentConfig, NAMES),
    "ClusterTieredStorageConfig": (TieredStorage, NAMES),
    "DeploymentConfiguration": (DeploymentConfig, {**NAMES, "RollingUpdatePolicy": "maximumBatchSize"}),
    "EnvironmentConfig": (EnvironmentConfig, NAMES),
    "FSxLustreConfig": (FSxLustreConfig, NAMES),
    "RollingDeploymentPolicy": (DeploymentConfig, NAMES),
    "ScheduledUpdateConfig": (ScheduledUpdate, NAMES),
    "VpcConfig": (OverrideVpcConfig, NAMES),
}
# Values of one key, or of a list of texts.
FLAT = {
    "AlarmDetails": {"AlarmName"},
    "ClusterCapacityRequirements": {"OnDemand", "Spot"},
    "ClusterInstanceRequirements": {"InstanceTypes"},
    "ClusterOnDemandOptions": set(),
    "ClusterSpotOptions": set(),
}
# Other sections of the file set these, or they are the same on every platform. Slurm clusters are not supported. The
# service sets the date of the next patch; a file that states it would be out of date after each patch.
ELSEWHERE = {
    "CreateClusterRequest": {
        "AutoScaling", "ClusterRole", "NodeProvisioningMode", "Orchestrator", "Tags", "VpcConfig",
    },
    "ClusterAutoPatchConfig": {"PatchSchedule"},
    "ClusterInstanceGroupSpecification": {"SlurmConfig"},
}  # fmt: skip


def structures(shape):
    """Yield the structures of a request, without those that the file doesn't say."""
    if shape.type_name == "list":
        yield from structures(shape.member)
    elif shape.type_name == "structure":
        yield shape
        for name, member in shape.members.items():
            if name not in ELSEWHERE.get(shape.name, ()):
                yield from structures(member)


def test_the_file_says_every_property_of_create_cluster():
    request = botocore.session.get_session().get_service_model("sagemaker").shape_for("CreateClusterRequest")
    missing = {}
    for shape in structures(request):
        if shape.name in FLAT:
            absent = set(shape.members) - FLAT[shape.name]
        else:
            model, names = MODELS[shape.name]
            keys = {field.alias or name for name, field in model.model_fields.items()}
            absent = {each for each in shape.members if names.get(each, each[0].lower() + each[1:]) not in keys}
        if absent:
            missing[shape.name] = absent
    assert missing == ELSEWHERE

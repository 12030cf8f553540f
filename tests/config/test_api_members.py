"""What CreateCluster takes and the organization file can't say: a property that AWS adds makes this test fail."""

import botocore.session
import pytest

from hpkit.config.cluster import (
    Cluster,
    ClusterEbsVolumeConfig,
    ClusterFsxLustreConfig,
    ClusterFsxOpenZfsConfig,
    ClusterInstanceStorageConfig,
    ClusterNetworkInterface,
    InstanceGroup,
    RestrictedInstanceGroup,
)

GROUP = {
    "AutoPatchConfig": "autoPatch",
    "CapacityRequirements": "capacityType",
    "InstanceGroupName": "name",
    "InstanceRequirements": "instanceTypes",
    "KubernetesConfig": "labels",
    "LifeCycleConfig": "lifecycleScript",
    "OnStartDeepHealthChecks": "deepHealthChecks",
    "ScheduledUpdateConfig": "scheduledUpdate",
}
CLUSTER = {"ClusterName": "name", "TieredStorageConfig": "tieredStorage"}
# Other sections of the file set these, or they are the same on every platform. Slurm clusters are not supported.
ELSEWHERE = {
    "CreateClusterRequest": {
        "AutoScaling", "ClusterRole", "NodeProvisioningMode", "Orchestrator", "Tags", "VpcConfig",
    },
    "ClusterInstanceGroupSpecification": {"SlurmConfig"},
}  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "model", "names"),
    [
        ("CreateClusterRequest", Cluster, CLUSTER),
        ("ClusterInstanceGroupSpecification", InstanceGroup, GROUP),
        ("ClusterRestrictedInstanceGroupSpecification", RestrictedInstanceGroup, GROUP),
        ("ClusterInstanceStorageConfig", ClusterInstanceStorageConfig, {}),
        ("ClusterEbsVolumeConfig", ClusterEbsVolumeConfig, {}),
        ("ClusterFsxLustreConfig", ClusterFsxLustreConfig, {}),
        ("ClusterFsxOpenZfsConfig", ClusterFsxOpenZfsConfig, {}),
        ("ClusterNetworkInterface", ClusterNetworkInterface, {}),
    ],
)
def test_the_file_says_every_property_of_create_cluster(shape, model, names):
    members = botocore.session.get_session().get_service_model("sagemaker").shape_for(shape).members
    keys = {field.alias or name for name, field in model.model_fields.items()}
    missing = {member for member in members if names.get(member, member[0].lower() + member[1:]) not in keys}
    assert missing == ELSEWHERE.get(shape, set())

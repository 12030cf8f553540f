"""The HyperPod cluster: instance groups and their settings."""

from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from hpkit.config.models.base import Api, Model, amount

__all__ = [
    "AutoPatch",
    "BatchSize",
    "Cluster",
    "Dependencies",
    "DeploymentConfig",
    "DrainPolicy",
    "EnvironmentConfig",
    "FSxLustreConfig",
    "InstanceGroup",
    "InstanceGroupBase",
    "OverrideVpcConfig",
    "RestrictedInstanceGroup",
    "RestrictedInstanceGroupsConfig",
    "ScheduledUpdate",
    "SharedEnvironmentConfig",
    "Taint",
    "TieredStorage",
]

DeepHealthCheck = Literal["InstanceStress", "InstanceConnectivity", "MultiNodeTrainingValidation"]


class Taint(Model):
    """A Kubernetes taint."""

    key: Annotated[str, Api("ClusterKubernetesTaintKey")] = Field(description="Taint key.", examples=["dedicated"])
    value: Annotated[str, Api("ClusterKubernetesTaintValue")] | None = Field(
        default=None, description="Taint value.", examples=["training"]
    )
    effect: Annotated[Literal["NoSchedule", "PreferNoSchedule", "NoExecute"], Api("ClusterKubernetesTaintEffect")] = (
        Field(description="Effect on pods that don't tolerate the taint.")
    )


class BatchSize(Model):
    """How many nodes at a time."""

    type: Annotated[Literal["INSTANCE_COUNT", "CAPACITY_PERCENTAGE"], Api("NodeUnavailabilityType")] = Field(
        description="Unit of value: instances, or percent of the group."
    )
    value: Annotated[int, Api("NodeUnavailabilityValue")] = amount(
        "At least 1.", unit="instances, or percent of the group, depending on `type`", example=1
    )


class DeploymentConfig(Model):
    """Batches of an update."""

    maximum_batch_size: BatchSize = Field(description="Nodes that may be updated at once.")
    rollback_maximum_batch_size: BatchSize | None = Field(
        default=None, description="Nodes that may be rolled back at once."
    )
    wait_interval_in_seconds: Annotated[int, Api("WaitTimeIntervalInSeconds")] | None = amount(
        "Seconds between batches, 0–3600.", unit="seconds", default=None, example=30
    )
    auto_rollback_alarms: tuple[Annotated[str, Api("AlarmName")], ...] = Field(
        default=(),
        description="CloudWatch alarms that stop and roll back the update, at most 10.",
        max_length=10,
        examples=["gpu-errors"],
    )


class ScheduledUpdate(Model):
    """When AMI updates run."""

    schedule_expression: Annotated[str, Api("CronScheduleExpression")] = amount(
        "Cron expression, such as `cron(0 2 ? * SUN *)`.", unit="UTC", example="cron(0 2 ? * SUN *)"
    )
    deployment_config: DeploymentConfig | None = Field(default=None, description="Batches of the update.")


class DrainPolicy(Model):
    """How a node is drained before patching."""

    drain_timeout_in_seconds: Annotated[int, Api("DrainTimeoutInSecondsValue")] | None = amount(
        "Seconds, 0–5400. The service's default is 3600.", unit="seconds", default=None, example=3600
    )
    on_drain_timeout: Annotated[Literal["Force", "Skip"], Api("ClusterOnDrainTimeout")] | None = Field(
        default=None, description="Force, or Skip (the service's default)."
    )


def _with_time(value: object) -> object:
    """Reject a number, which pydantic reads as seconds, and a date without a time."""
    if not isinstance(value, str) or "T" not in value:
        raise PydanticCustomError("date_and_time", "no time")
    return value


class PatchSchedule(Model):
    """When the next patch is applied."""

    next_patch_date: Annotated[AwareDatetime, BeforeValidator(_with_time), Field(strict=False)] = Field(
        description="Time to which the next patch moves, with its zone, such as `2027-01-31T02:00:00Z`. HyperPod sets "
        "the dates of later patches.",
        examples=["2027-01-31T02:00:00Z"],
    )


class AutoPatch(Model):
    """Security patches, on dates that HyperPod sets."""

    patching_strategy: Annotated[Literal["WhenIdle", "WhenAllIdle", "DrainFirst"], Api("ClusterPatchingStrategy")] = (
        Field(description="When nodes are patched.")
    )
    idle_wait_window_in_seconds: Annotated[int, Api("IdleWaitWindowInSecondsValue")] | None = amount(
        "Seconds, 3600–2160000. The service's default is 86400.", unit="seconds", default=None, example=86400
    )
    patch_schedule: PatchSchedule | None = Field(
        default=None, description="Date of the next patch. Default: HyperPod's."
    )
    drain_policy: DrainPolicy | None = Field(default=None, description="Only with DrainFirst.")
    deployment_config: DeploymentConfig | None = Field(
        default=None, description="Batches of the update; DrainFirst requires maximumBatchSize."
    )


class OverrideVpcConfig(Model):
    """Subnets and security groups of a group that was created outside hpkit."""

    subnets: tuple[Annotated[str, Field(pattern=r"^subnet-[0-9a-f]{8,17}$")], ...] = Field(
        description="1–16 subnets of the nodes, in the VPC of network.existing.",
        min_length=1,
        max_length=16,
        examples=["subnet-0a1b2c3d4e5f60718"],
    )
    security_group_ids: tuple[Annotated[str, Field(pattern=r"^sg-[0-9a-f]{8,17}$")], ...] = Field(
        description="1–5 security groups of the nodes.", min_length=1, max_length=5, examples=["sg-0a1b2c3d4e5f60718"]
    )


_KEY = r"^(?:arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/)?[a-zA-Z0-9-]{36}$"


class ClusterEbsVolumeConfig(Model):
    """Encryption of the root volume, or an additional volume at /opt/sagemaker."""

    root_volume: bool = Field(
        default=False,
        description="true: configures the root volume, whose size AWS sets. false: adds a volume at /opt/sagemaker.",
    )
    volume_size_in_gb: Annotated[int, Api("ClusterEbsVolumeSizeInGB")] | None = amount(
        "Size of the additional volume in GiB.", unit="GiB", default=None, example=500, alias="volumeSizeInGB"
    )
    volume_kms_key_id: str | None = Field(
        default=None,
        pattern=_KEY,
        description="ARN or ID of your KMS key, not an alias. Default: AWS's key. Can't change on an existing group.",
        examples=["arn:aws:kms:us-west-2:123456789012:key/0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f"],
    )


class ClusterInstanceStorageConfig(Model):
    """One kind of storage."""

    ebs_volume_config: ClusterEbsVolumeConfig = Field(
        description="Encryption of the root volume, or an additional EBS volume."
    )


class ClusterNetworkInterface(Model):
    """The network interface of a node's EFA devices."""

    interface_type: Annotated[Literal["efa", "efa-only"], Api("ClusterInterfaceType")] = Field(
        description="efa: EFA and ENA. efa-only: EFA without an ENA device for IP traffic."
    )


class InstanceGroupBase(Model):
    """Settings that ordinary and restricted instance groups share."""

    name: Annotated[str, Api("ClusterInstanceGroupName")] = Field(
        description="Name. Changing it creates another group.", examples=["gpu"]
    )
    instance_count: Annotated[int, Api("ClusterInstanceCount")] = amount(
        "Number of nodes; 0 for a group that Karpenter fills.", unit="instances", example=4
    )
    availability_zone: str | None = Field(
        default=None,
        description="Zone of the group. Default: all zones. With overrideVpcConfig: the zone of its subnets, if "
        "the network doesn't list them.",
        examples=["us-west-2a"],
    )
    instance_storage_configs: tuple[ClusterInstanceStorageConfig, ...] = Field(
        default=(), max_length=4, description="EBS volumes of each node, at most 4."
    )
    threads_per_core: Annotated[int, Api("ClusterThreadsPerCore")] | None = amount(
        "Threads per CPU core, 1 or 2. With 1, pods and quotas have half the vCPUs. Default: AWS's, which "
        "isn't documented; hpkit counts 2. Can't change on an existing group.",
        unit="threads",
        default=None,
        example=2,
    )
    deep_health_checks: tuple[Annotated[DeepHealthCheck, Api("DeepHealthCheckType")], ...] = Field(
        default=(), description="Stress tests that run before a node accepts work. They take an hour or more."
    )
    training_plan_arn: Annotated[str, Api("TrainingPlanArn")] | None = Field(
        default=None,
        description="Training plan whose reserved capacity the group uses.",
        examples=["arn:aws:sagemaker:us-west-2:123456789012:training-plan/p5-december"],
    )
    override_vpc_config: OverrideVpcConfig | None = Field(
        default=None,
        description="Subnets and security groups, instead of availabilityZone. Requires network.existing. If they are "
        "exactly the cluster's, the API ignores the override.",
    )
    scheduled_update: ScheduledUpdate | None = Field(default=None, description="Scheduled AMI updates.")

    @property
    def types(self) -> tuple[str, ...]:
        """Return every instance type that the group can hold."""
        raise NotImplementedError

    @property
    def is_spot(self) -> bool:
        """Return whether its instances are Spot."""
        return False


class InstanceGroup(InstanceGroupBase):
    """A group of identical nodes, in one zone or in all zones."""

    instance_type: str | None = Field(
        default=None,
        description="An `ml.*` instance type.",
        examples=["ml.g5.12xlarge"],
        json_schema_extra={"values": "instanceTypeNames", "only": True},
    )
    instance_types: tuple[str, ...] = Field(
        default=(),
        description="Types of a flexible group in order of preference, at most 20.",
        examples=["ml.g5.12xlarge"],
        json_schema_extra={"values": "instanceTypeNames", "only": True},
    )
    min_instance_count: Annotated[int, Api("ClusterInstanceCount")] | None = amount(
        "Number of nodes that creation waits for, up to three hours.", unit="instances", default=None, example=2
    )
    capacity_type: Literal["OnDemand", "Spot"] = Field(default="OnDemand", description="Can't change after creation.")
    labels: dict[
        Annotated[str, Api("ClusterKubernetesLabelKey")], Annotated[str, Api("ClusterKubernetesLabelValue")]
    ] = Field(
        default={},
        description="Kubernetes labels of the nodes, at most 50.",
        max_length=50,
        examples=[{"team": "vision"}],
    )
    taints: tuple[Taint, ...] = Field(
        default=(), description="Kubernetes taints of the nodes, at most 50.", max_length=50
    )
    lifecycle_script: Annotated[str, Api("S3Uri")] | None = Field(
        default=None,
        description="S3 URI of another OnCreate script, such as `s3://bucket/on_create.sh`. Default: hpkit's script, "
        "which does nothing, because EKS groups require one.",
        examples=["s3://sagemaker-acme/on_create.sh"],
    )
    lifecycle_script_sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = Field(
        default=None,
        description="SHA-256 of all files in the script's folder. A node on which they differ fails. Print it in the "
        "folder: `find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum`.",
        examples=["9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"],
    )
    execution_role: Annotated[str, Api("RoleArn")] | None = Field(
        default=None,
        description="Existing IAM role of the nodes. Default: hpkit creates one.",
        examples=["arn:aws:iam::123456789012:role/nodes"],
    )
    network_interface: ClusterNetworkInterface | None = Field(
        default=None,
        description="Network interface of EFA devices. Default: AWS's. Can't be removed from an existing group.",
    )
    image_release_version: Annotated[str, Api("ImageReleaseVersion")] | None = Field(
        default=None,
        description="Version of HyperPod's AMI for new groups, such as `1.2.3`. Default: the latest.",
        examples=["1.2.3"],
    )
    image_id: Annotated[str, Api("ImageId")] | None = Field(
        default=None,
        description="Custom AMI, such as `ami-0a1b2c3d4e5f60718`, or `default`.",
        examples=["ami-0a1b2c3d4e5f60718"],
    )
    auto_patch: AutoPatch | None = Field(default=None, description="Security patches when nodes are idle.")

    @property
    def types(self) -> tuple[str, ...]:
        """Return every instance type that the group can hold."""
        return (self.instance_type,) if self.instance_type else self.instance_types

    @property
    def is_spot(self) -> bool:
        """Return whether its instances are Spot."""
        return self.capacity_type == "Spot"

    @property
    def auto_rollback_alarms(self) -> tuple[str, ...]:
        """Return the alarms that roll back an update of the group, by schedule or as a patch."""
        updates = (self.auto_patch, self.scheduled_update)
        configs = [each.deployment_config for each in updates if each is not None]
        return tuple(alarm for config in configs if config is not None for alarm in config.auto_rollback_alarms)

    @property
    def runs_kits_script(self) -> bool:
        """Return whether nodes run hpkit's own script when they are created, which does nothing."""
        return self.lifecycle_script is None

    @property
    def verified_script(self) -> tuple[str, str] | None:
        """Return URI and SHA-256 of the script that a script of hpkit fetches and verifies; None without."""
        if self.lifecycle_script is None or self.lifecycle_script_sha256 is None:
            return None
        return self.lifecycle_script, self.lifecycle_script_sha256


class FSxLustreConfig(Model):
    """FSx for Lustre file system that the service creates for restricted groups. Your account pays for it."""

    size_in_gib: Annotated[int, Api("FSxLustreSizeInGiB")] = amount(
        "Size in GiB: 1200, or a multiple of 2400, up to 100800.", unit="GiB", example=1200, alias="sizeInGiB"
    )
    per_unit_storage_throughput: Annotated[int, Api("FSxLustrePerUnitStorageThroughput")] = amount(
        "Throughput in MB/s per TiB: 125, 250, 500 or 1000.", unit="MB/s for each TiB", example=250
    )


class EnvironmentConfig(Model):
    """Environment of a restricted group."""

    fsx_lustre_config: FSxLustreConfig = Field(
        alias="fSxLustreConfig", description="File system for checkpoints and model state."
    )


class RestrictedInstanceGroup(InstanceGroupBase):
    """Nodes that only customize Amazon Nova models, without internet, shell, or custom images.

    Source: SageMaker developer guide, "Creating a HyperPod EKS cluster with restricted instance group (RIG)"; API
    reference. ClusterRestrictedInstanceGroupSpecification has no lifecycle script, labels, taints or image.
    """

    instance_type: str = Field(
        description="An `ml.*` instance type.",
        examples=["ml.g5.12xlarge"],
        json_schema_extra={"values": "instanceTypeNames", "only": True},
    )
    execution_role: Annotated[str, Api("RoleArn")] = Field(
        description="Existing IAM role of the nodes. It determines which buckets jobs can use. Can't change on an "
        "existing group.",
        examples=["arn:aws:iam::123456789012:role/nova"],
    )
    environment_config: EnvironmentConfig | None = Field(
        default=None, description="Settings of this group. Default: restrictedInstanceGroupsConfig."
    )

    @property
    def types(self) -> tuple[str, ...]:
        """Return its instance type, as the only type of the group."""
        return (self.instance_type,)


class SharedEnvironmentConfig(Model):
    """Environment of all restricted groups."""

    fsx_lustre_deletion_policy: Annotated[Literal["Keep", "DeleteIfNotUsed"], Api("ClusterFSxLustreDeletionPolicy")] = (
        Field(
            alias="fSxLustreDeletionPolicy",
            description="Keep the file system, or delete it when no restricted group uses it.",
        )
    )
    fsx_lustre_config: FSxLustreConfig = Field(alias="fSxLustreConfig", description="Shared file system.")


class RestrictedInstanceGroupsConfig(Model):
    """Settings that all restricted groups of a cluster share."""

    shared_environment_config: SharedEnvironmentConfig = Field(description="Settings of all restricted groups.")


class TieredStorage(Model):
    """Managed tiered checkpointing."""

    mode: Annotated[Literal["Enable", "Disable"], Api("ClusterConfigMode")] = Field(description="Turns it on or off.")
    # The API model accepts 0; the service doesn't (SageMaker developer guide, managed tiered checkpointing).
    instance_memory_allocation_percentage: Annotated[int, Field(ge=20, le=100)] | None = amount(
        "Percent of node memory, 20–100.", unit="percent of the node's memory", default=None, example=20
    )


class Dependencies(Model):
    """The chart that HyperPod requires on EKS: health monitoring agent, device plugins, EFA, training operators.

    Without `chart`, hpkit's pinned chart is installed.
    """

    installed: bool = Field(
        default=False, description="true: the cluster already has what the chart installs, so hpkit doesn't install it."
    )
    chart: str | None = Field(
        default=None,
        min_length=1,
        description="Your own chart: a folder or .tgz relative to Pulumi.yaml, or an `oci://` reference.",
        examples=["charts/hyperpod"],
    )
    version: str | None = Field(
        default=None,
        pattern=r"^[0-9]+\.[0-9]+\.[0-9]+(?:[-+][0-9A-Za-z.-]+)?$",
        description="Version of your chart. A branch isn't allowed.",
        examples=["0.1.0"],
    )
    sha256: str | None = Field(
        default=None,
        pattern=r"^[0-9a-f]{64}$",
        description="Hash of your chart. If it differs, `hpkit validate` prints the actual one.",
        examples=["0000000000000000000000000000000000000000000000000000000000000000"],
    )
    image_registry: str | None = Field(
        default=None,
        pattern=r"^[a-z0-9][a-z0-9.-]*(?::[0-9]+)?(?:/[a-z0-9]+(?:[._-][a-z0-9]+)*)*$",
        description="Registry, with an optional prefix, to which `hpkit aws images --mirror` copied the images. "
        "Required for closed networks. With your own chart, use `values` instead.",
        examples=["123456789012.dkr.ecr.us-west-2.amazonaws.com/hyperpod"],
    )
    values: dict[str, Any] = Field(
        default={}, description="Chart values, merged over hpkit's.", examples=[{"mlflow": {"enabled": False}}]
    )

    @property
    def is_kits(self) -> bool:
        """Return whether hpkit pins the chart."""
        return not self.installed and self.chart is None

    @property
    def is_in_repository(self) -> bool:
        """Return whether the chart is a folder or .tgz in the repository, not a reference to a registry."""
        return self.chart is not None and not self.chart.startswith("oci://")


class Cluster(Model):
    """The HyperPod cluster; provisioning is always continuous."""

    name: Annotated[str, Api("ClusterName")] = Field(
        description="Name. Changing it creates another cluster.", examples=["train"]
    )
    existing: bool = Field(
        default=False,
        description="true: another stack or tool manages the cluster, and this stack only its governance. A preview "
        "compares instanceGroups with the cluster.",
    )
    node_recovery: Annotated[Literal["Automatic", "None"], Api("ClusterNodeRecovery")] = Field(
        default="Automatic",
        description="Automatic: faulty nodes with accelerators are replaced. AWS doesn't replace CPU nodes. Karpenter "
        "requires Automatic.",
    )
    instance_groups: tuple[InstanceGroup, ...] = Field(
        description="Groups, identified by name.", min_length=1, max_length=100
    )
    restricted_instance_groups: tuple[RestrictedInstanceGroup, ...] = Field(
        default=(),
        description="Groups that only customize Amazon Nova models. Quotas don't count them.",
        max_length=100,
    )
    restricted_instance_groups_config: RestrictedInstanceGroupsConfig | None = Field(
        default=None,
        description="Settings that all restricted groups share. Without them, each group requires an "
        "environmentConfig.",
    )
    nodes_ready_minutes: int = amount(
        "Minutes that `up` waits until the nodes that run the add-ons are Ready in Kubernetes. Deep health "
        "checks take up to 120.",
        unit="minutes",
        default=45,
        example=120,
        ge=5,
        le=1440,
    )
    capacity_wait_minutes: int = amount(
        "Minutes that `up` waits for instances that HyperPod still requests, before it ends with a "
        "warning. Queues and teams don't wait for them. 0: `up` doesn't wait.",
        unit="minutes",
        default=20,
        example=0,
        ge=0,
        le=1440,
    )
    tiered_storage: TieredStorage | None = Field(
        default=None, description="Managed tiered checkpointing. Default: off."
    )
    dependencies: Dependencies = Field(
        default=Dependencies(), description="The dependencies chart. Default: hpkit's pinned chart."
    )

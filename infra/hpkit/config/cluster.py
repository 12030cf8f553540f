"""The HyperPod cluster: instance groups and what they run."""

from typing import Annotated, Any, Literal

from pydantic import Field

from hpkit.config.base import Api, Model

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

# What lifecycleScript says where there is none.
NO_SCRIPT = "None"


DeepHealthCheck = Literal["InstanceStress", "InstanceConnectivity", "MultiNodeTrainingValidation"]


class Taint(Model):
    """A Kubernetes taint."""

    key: Annotated[str, Api("ClusterKubernetesTaintKey")] = Field(description="Taint key.")
    value: Annotated[str, Api("ClusterKubernetesTaintValue")] | None = Field(default=None, description="Taint value.")
    effect: Annotated[Literal["NoSchedule", "PreferNoSchedule", "NoExecute"], Api("ClusterKubernetesTaintEffect")] = (
        Field(description="NoSchedule, PreferNoSchedule or NoExecute.")
    )


class BatchSize(Model):
    """How many nodes at a time."""

    type: Annotated[Literal["INSTANCE_COUNT", "CAPACITY_PERCENTAGE"], Api("NodeUnavailabilityType")] = Field(
        description="Instances, or percent of the group."
    )
    value: Annotated[int, Api("NodeUnavailabilityValue")] = Field(description="At least 1.")


class DeploymentConfig(Model):
    """How an update rolls through a group."""

    maximum_batch_size: BatchSize = Field(description="Nodes that may be away at once.")
    rollback_maximum_batch_size: BatchSize | None = Field(default=None, description="The same for a rollback.")
    wait_interval_in_seconds: Annotated[int, Api("WaitTimeIntervalInSeconds")] | None = Field(
        default=None, description="Seconds between batches, 0–3600."
    )
    auto_rollback_alarms: tuple[Annotated[str, Api("AlarmName")], ...] = Field(
        default=(),
        description="CloudWatch alarms that stop and roll back the update, at most 10.",
        max_length=10,
    )


class ScheduledUpdate(Model):
    """When AMI updates run."""

    schedule_expression: Annotated[str, Api("CronScheduleExpression")] = Field(
        description="Cron expression, such as `cron(0 2 ? * SUN *)`."
    )
    deployment_config: DeploymentConfig | None = Field(default=None, description="How it rolls.")


class DrainPolicy(Model):
    """How a node is drained before patching."""

    drain_timeout_in_seconds: Annotated[int, Api("DrainTimeoutInSecondsValue")] | None = Field(
        default=None, description="0–5400; the service takes 3600."
    )
    on_drain_timeout: Annotated[Literal["Force", "Skip"], Api("ClusterOnDrainTimeout")] | None = Field(
        default=None, description="Force, or Skip (the service's default)."
    )


class AutoPatch(Model):
    """Security patches without a schedule."""

    patching_strategy: Annotated[Literal["WhenIdle", "WhenAllIdle", "DrainFirst"], Api("ClusterPatchingStrategy")] = (
        Field(description="WhenIdle, WhenAllIdle or DrainFirst.")
    )
    idle_wait_window_in_seconds: Annotated[int, Api("IdleWaitWindowInSecondsValue")] | None = Field(
        default=None, description="3600–2160000; the service takes 86400."
    )
    drain_policy: DrainPolicy | None = Field(default=None, description="Only with DrainFirst.")
    deployment_config: DeploymentConfig | None = Field(
        default=None, description="How it rolls; DrainFirst needs maximumBatchSize."
    )


class OverrideVpcConfig(Model):
    """Where a group's nodes stand, as the API has it: for groups that were made outside the kit."""

    subnets: tuple[Annotated[str, Field(pattern=r"^subnet-[0-9a-f]{8,17}$")], ...] = Field(
        description="Subnets of its nodes, 1–16, of the VPC in network.existing.", min_length=1, max_length=16
    )
    security_group_ids: tuple[Annotated[str, Field(pattern=r"^sg-[0-9a-f]{8,17}$")], ...] = Field(
        description="Security groups of its nodes, 1–5.", min_length=1, max_length=5
    )


class InstanceGroupBase(Model):
    """What ordinary and restricted instance groups have alike."""

    name: Annotated[str, Api("ClusterInstanceGroupName")] = Field(
        description="Identity of the group: a new name is a new group."
    )
    instance_count: Annotated[int, Api("ClusterInstanceCount")] = Field(
        description="Nodes to keep; 0 for a group that Karpenter owns."
    )
    availability_zone: str | None = Field(
        default=None,
        description="Pins the group to this zone's subnet. Absent: all zones' subnets. With overrideVpcConfig: where "
        "its subnets are, if the network does not list them.",
    )
    ebs_volume_gib: Annotated[int, Api("ClusterEbsVolumeSizeInGB")] | None = Field(
        default=None,
        alias="ebsVolumeGiB",
        description="Extra volume at /opt/sagemaker in GiB, as EBS counts; the API calls it VolumeSizeInGB.",
    )
    threads_per_core: Annotated[int, Api("ClusterThreadsPerCore")] | None = Field(
        default=None,
        description="1 or 2; 1 halves the vCPUs that pods can use, and that quotas count. Default: 2 where all "
        "types of the group have it. Cannot change on a group that exists.",
    )
    deep_health_checks: tuple[Annotated[DeepHealthCheck, Api("DeepHealthCheckType")], ...] = Field(
        default=(),
        description="Stress tests before a node takes work (InstanceStress, InstanceConnectivity, "
        "MultiNodeTrainingValidation); they take an hour or more.",
    )
    training_plan_arn: Annotated[str, Api("TrainingPlanArn")] | None = Field(
        default=None, description="Reserved capacity that the group uses."
    )
    override_vpc_config: OverrideVpcConfig | None = Field(
        default=None,
        description="Subnets and security groups, exactly so, where network.existing is used, whatever "
        "availabilityZone says. The same as the cluster's own is the same as none to the API.",
    )
    scheduled_update: ScheduledUpdate | None = Field(default=None, description="AMI updates by schedule.")

    @property
    def types(self) -> tuple[str, ...]:
        """Return every instance type that the group can hold."""
        raise NotImplementedError

    @property
    def is_spot(self) -> bool:
        """Return whether its instances are Spot."""
        return False


class InstanceGroup(InstanceGroupBase):
    """Nodes of one kind, in one zone unless none is named."""

    instance_type: str | None = Field(default=None, description="An `ml.*` instance type.")
    instance_types: tuple[str, ...] = Field(
        default=(), description="Flexible group: types in order of preference, at most 20."
    )
    min_instance_count: Annotated[int, Api("ClusterInstanceCount")] | None = Field(
        default=None, description="Creation waits until so many are there (three hours at most)."
    )
    capacity_type: Literal["OnDemand", "Spot"] = Field(default="OnDemand", description="Cannot change after creation.")
    labels: dict[
        Annotated[str, Api("ClusterKubernetesLabelKey")], Annotated[str, Api("ClusterKubernetesLabelValue")]
    ] = Field(default={}, description="Kubernetes labels of its nodes, at most 50.", max_length=50)
    taints: tuple[Taint, ...] = Field(
        default=(), description="Kubernetes taints of its nodes, at most 50.", max_length=50
    )
    lifecycle_script: Annotated[str, Api("S3Uri", also="None")] | None = Field(
        default=None,
        description="S3 URI of another OnCreate script than the kit's, such as `s3://bucket/on_create.sh`. None, as a "
        "word: no lifecycle configuration, for nodes that need nothing but their AMI.",
    )
    lifecycle_script_sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = Field(
        default=None,
        description="SHA-256 of that script, as `sha256sum` prints it. Nodes then begin with a script of the kit, "
        "which fetches the other one and runs it if it is the one of this digest; any other fails the node.",
    )
    execution_role: Annotated[str, Api("RoleArn")] | None = Field(
        default=None,
        description="IAM role of its nodes that is there already. Absent: the kit's, made only for such groups.",
    )
    image_id: Annotated[str, Api("ImageId")] | None = Field(
        default=None, description="Custom AMI, such as `ami-0a1b2c3d4e5f60718`, or `default`."
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
    def has_lifecycle(self) -> bool:
        """Return whether nodes of the group run a script when they are created."""
        return self.lifecycle_script != NO_SCRIPT

    @property
    def runs_kits_script(self) -> bool:
        """Return whether that script is the kit's own, which does nothing."""
        return self.lifecycle_script is None

    @property
    def verified_script(self) -> tuple[str, str] | None:
        """Return URI and SHA-256 of the script that a script of the kit fetches and verifies; None without."""
        if self.lifecycle_script is None or self.lifecycle_script_sha256 is None:
            return None
        return self.lifecycle_script, self.lifecycle_script_sha256


class FSxLustreConfig(Model):
    """The FSx for Lustre file system that the service makes for nodes of restricted groups; the account pays it."""

    size_in_gib: Annotated[int, Api("FSxLustreSizeInGiB")] = Field(
        alias="sizeInGiB", description="GiB: 1200, or a multiple of 2400, at most 100800."
    )
    per_unit_storage_throughput: Annotated[int, Api("FSxLustrePerUnitStorageThroughput")] = Field(
        description="MB/s for each TiB: 125, 250, 500 or 1000."
    )


class EnvironmentConfig(Model):
    """What nodes of a restricted group work in."""

    fsx_lustre_config: FSxLustreConfig = Field(
        alias="fSxLustreConfig", description="Their file system: checkpoints, and the state of models in between."
    )


class RestrictedInstanceGroup(InstanceGroupBase):
    """Nodes that customize Amazon Nova models, and nothing else: no internet, no shell, no image of one's own.

    Source: SageMaker developer guide, "Creating a HyperPod EKS cluster with restricted instance group (RIG)"; API
    reference, ClusterRestrictedInstanceGroupSpecification, which has no lifecycle script, labels, taints or image.
    """

    instance_type: str = Field(description="An `ml.*` instance type.")
    execution_role: Annotated[str, Api("RoleArn")] = Field(
        description="IAM role of its nodes that is there already: it alone says which buckets a job reads and writes. "
        "Cannot change on a group that exists."
    )
    environment_config: EnvironmentConfig | None = Field(
        default=None, description="The group's own; absent: what restrictedInstanceGroupsConfig says for all."
    )

    @property
    def types(self) -> tuple[str, ...]:
        """Return its instance type, as the one that the group can hold."""
        return (self.instance_type,)


class SharedEnvironmentConfig(Model):
    """What nodes of all restricted groups work in."""

    fsx_lustre_deletion_policy: Annotated[Literal["Keep", "DeleteIfNotUsed"], Api("ClusterFSxLustreDeletionPolicy")] = (
        Field(
            alias="fSxLustreDeletionPolicy",
            description="Keep the file system, or DeleteIfNotUsed by a restricted group.",
        )
    )
    fsx_lustre_config: FSxLustreConfig = Field(alias="fSxLustreConfig", description="Their file system.")


class RestrictedInstanceGroupsConfig(Model):
    """What all restricted groups of a cluster share."""

    shared_environment_config: SharedEnvironmentConfig = Field(description="Their environment.")


class TieredStorage(Model):
    """Managed tiered checkpointing."""

    mode: Annotated[Literal["Enable", "Disable"], Api("ClusterConfigMode")] = Field(description="Enable or Disable.")
    instance_memory_allocation_percentage: Annotated[int, Api("ClusterInstanceMemoryAllocationPercentage")] | None = (
        Field(default=None, description="Percent of node memory, 20–100.")
    )


class Dependencies(Model):
    """The chart of what HyperPod expects on EKS: health monitoring agent, device plugins, EFA, training operators.

    Absent, or without `chart`: the one that the kit pins.
    """

    installed: bool = Field(
        default=False,
        description="true: the cluster has what the chart brings (of the console or a template, say), and nothing is "
        "installed.",
    )
    chart: str | None = Field(
        default=None,
        min_length=1,
        description="Another chart than the kit's: folder or .tgz in the repository (from Pulumi.yaml's folder), or "
        "`oci://` reference.",
    )
    version: str | None = Field(
        default=None,
        pattern=r"^[0-9]+\.[0-9]+\.[0-9]+(?:[-+][0-9A-Za-z.-]+)?$",
        description="Version of that chart; never a branch.",
    )
    sha256: str | None = Field(
        default=None,
        pattern=r"^[0-9a-f]{64}$",
        description="Hash of a chart in the repository, as `hpkit catalog hash-chart` prints it; it must match.",
    )
    image_registry: str | None = Field(
        default=None,
        pattern=r"^[a-z0-9][a-z0-9.-]*(?::[0-9]+)?(?:/[a-z0-9]+(?:[._-][a-z0-9]+)*)*$",
        description="Registry, with a prefix if you like, that `hpkit aws images --mirror` copied the images to: nodes "
        "pull from there. A closed network needs it. Of a chart of your own, its values must say so.",
    )
    values: dict[str, Any] = Field(default={}, description="Chart values, laid over the kit's own map by map.")

    @property
    def is_kits(self) -> bool:
        """Return whether the chart is the one that the kit pins."""
        return not self.installed and self.chart is None

    @property
    def is_in_repository(self) -> bool:
        """Return whether the chart is a folder or .tgz of the repository, not a reference to a registry."""
        return self.chart is not None and not self.chart.startswith("oci://")


class Cluster(Model):
    """The HyperPod cluster; provisioning is always continuous."""

    name: Annotated[str, Api("ClusterName")] = Field(description="A new name is a new cluster.")
    node_recovery: Annotated[Literal["Automatic", "None"], Api("ClusterNodeRecovery")] = Field(
        default="Automatic", description="Automatic: faulty nodes are replaced. Karpenter needs it."
    )
    instance_groups: tuple[InstanceGroup, ...] = Field(
        description="Groups, identified by name.", min_length=1, max_length=100
    )
    restricted_instance_groups: tuple[RestrictedInstanceGroup, ...] = Field(
        default=(),
        description="Groups that customize Amazon Nova models alone, with names of their own. No quota counts them.",
        max_length=100,
    )
    restricted_instance_groups_config: RestrictedInstanceGroupsConfig | None = Field(
        default=None, description="What they share. Absent = each has an environmentConfig."
    )
    tiered_storage: TieredStorage | None = Field(default=None, description="Absent = off.")
    dependencies: Dependencies = Field(
        default=Dependencies(), description="Absent: the chart that the kit pins is installed before the cluster."
    )

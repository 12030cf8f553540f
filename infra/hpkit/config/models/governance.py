"""Teams, their sharing, and the order of tasks."""

from typing import Annotated, Final, Literal

from pydantic import Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from hpkit.config.models.base import Api, Model, Name, amount
from hpkit.config.models.member_role import MemberRole
from hpkit.config.models.registry import RepositoryName
from hpkit.config.models.team_limits import TeamLimits
from hpkit.text.formatting import seconds_in

__all__ = [
    "MOST_ID",
    "AbsoluteBorrowLimit",
    "AcceleratorPartition",
    "ActivationState",
    "ClusterPolicy",
    "ComputeQuotaResource",
    "GangScheduling",
    "Governance",
    "MaxRunTime",
    "PreemptTeamTasks",
    "PriorityClass",
    "QuotaAmount",
    "RequeuingStrategy",
    "SharedPool",
    "Sharing",
    "SharingStrategy",
    "Team",
    "TeamOverride",
    "UserIds",
    "Workload",
]


# Kubernetes API, SecurityContext: runAsUser and runAsGroup are signed and of 32 bits.
MOST_ID: Final = 2**31 - 1

SharingStrategy = Literal["Lend", "DontLend", "LendAndBorrow"]
PreemptTeamTasks = Literal["Never", "LowerPriority"]
ActivationState = Literal["Enabled", "Disabled"]
Workload = Literal["training", "inference", "spaces"]

# Part of the durations that Go reads: whole hours, minutes and seconds, each at most once.
_DURATION: Final = r"^(?:[0-9]{1,4}h)?(?:[0-9]{1,4}m)?(?:[0-9]{1,6}s)?$"
_Duration = Annotated[str, Field(pattern=_DURATION, min_length=2)]
# Whole minutes, hours or days.
_RunTime = Annotated[str, Field(pattern="^[1-9][0-9]{0,4}[mhd]$")]
# Kueue's configuration has them as signed integers of 32 bits.
_Count = Annotated[int, Field(ge=0, le=2**31 - 1)]


class PriorityClass(Model):
    """A priority for tasks; becomes the WorkloadPriorityClass `<name>-priority`."""

    name: Annotated[str, Api("ClusterSchedulerPriorityClassName")] = Field(
        description="Name. Job labels use `<name>-priority`.", examples=["training"]
    )
    weight: Annotated[int, Api("PriorityWeight")] = amount(
        "0–100. Tasks with a higher weight go first; tasks without a class have weight 0.",
        unit="none, a rank",
        example=80,
    )


class ClusterPolicy(Model):
    """How the cluster orders tasks and shares idle compute (the API's ClusterSchedulerConfig)."""

    task_prioritization: Literal["Rank", "FirstComeFirstServed"] = Field(
        default="FirstComeFirstServed",
        description="Order of tasks. Rank: by priority class. FirstComeFirstServed: by age, without priority classes.",
    )
    priority_classes: tuple[PriorityClass, ...] = Field(default=(), description="At most 10, with different weights.")
    fair_share: Annotated[Literal["Enabled", "Disabled"], Api("FairShare")] = Field(
        default="Enabled",
        description="Order in which teams get idle compute. Enabled: by weight. Disabled: by priority and age of the "
        "tasks.",
    )
    description: Annotated[str, Api("EntityDescription")] | None = Field(
        default=None,
        description="Description of the policy in the API, at most 1024 characters.",
        examples=["Training before experiments"],
    )
    idle_resource_sharing: Annotated[Literal["Enabled", "Disabled"], Api("IdleResourceSharing")] = Field(
        default="Disabled", description="Enabled: the service lends unallocated capacity."
    )


class AcceleratorPartition(Model):
    """MIG partitions of one profile."""

    type: str = Field(
        description="MIG profile, such as `mig-1g.5gb`.",
        examples=["mig-1g.5gb"],
        json_schema_extra={"values": "migProfiles"},
    )
    count: Annotated[int, Api("AcceleratorPartitionConfigCountInteger")] = amount(
        "Number of partitions.", unit="partitions", example=7
    )


class QuotaAmount(Model):
    """Amount of one instance type: whole instances, or parts of an instance."""

    instance_type: str = Field(
        description="An `ml.*` instance type.",
        examples=["ml.g5.12xlarge"],
        json_schema_extra={"values": "instanceTypeNames"},
    )
    count: Annotated[int, Api("InstanceCount")] | None = amount(
        "Whole instances.", unit="instances", default=None, example=3
    )
    accelerators: Annotated[int, Api("AcceleratorsAmount")] | None = amount(
        "GPUs or Trainium chips. Unless you set vCPUs and memory, they are added in proportion.",
        unit="GPUs or Trainium chips",
        default=None,
        example=4,
    )
    v_cpu: Annotated[float, Api("VCpuAmount")] | None = amount("vCPUs.", unit="vCPUs", default=None, example=24.0)
    memory_in_gib: Annotated[float, Api("MemoryInGiBAmount")] | None = amount(
        "Memory in GiB.", unit="GiB", default=None, example=96.0, alias="memoryInGiB"
    )
    accelerator_partition: AcceleratorPartition | None = Field(default=None, description="MIG partitions.")


class AbsoluteBorrowLimit(QuotaAmount):
    """Borrow limit of a team for one instance type."""


class Sharing(Model):
    """Whether a team lends idle quota, and whether it may borrow."""

    strategy: Annotated[SharingStrategy, Api("ResourceSharingStrategy")] = Field(
        default="LendAndBorrow", description="Lend: lends but never borrows. DontLend: neither lends nor borrows."
    )
    borrow_limit: int | None = Field(
        default=None,
        description="Percent of its quota that the team may borrow in addition: up to 500 in AWS's API reference, "
        "10,000 in its guide. The service's default is 50. For amounts, use absoluteBorrowLimits.",
        examples=[50],
        json_schema_extra={"minimum": 1, "maximum": 10000, "unit": "percent of the team's own quota"},
    )
    absolute_borrow_limits: tuple[AbsoluteBorrowLimit, ...] = Field(
        default=(),
        description="Limits per type, in instances or parts of one; they replace the percentage. Of other types, a "
        "team without borrowLimit borrows nothing.",
    )


class UserIds(Model):
    """User and group IDs of a team on the shared file system."""

    first: Annotated[int, Field(ge=1000, le=MOST_ID)] = amount(
        "Lowest ID, at least 1000.", unit="user and group ids", example=20000
    )
    count: Annotated[int, Field(ge=1, le=1_000_000)] = amount("Number of IDs.", unit="ids", default=1000)


class MaxRunTime(Model):
    """Longest run time of a team's jobs, after which Kueue ends them. It doesn't apply to Deployments and spaces."""

    limit: _RunTime = Field(
        description="Longest run time that a job may have, such as `7d`. Admission policies reject jobs without one.",
        examples=["7d"],
    )
    default: _RunTime | None = Field(
        default=None, description="Run time that `hpkit job new` writes. Default: limit.", examples=["24h"]
    )

    @field_validator("default")
    @classmethod
    def _within_limit(cls, default: str | None, info: ValidationInfo) -> str | None:
        if default is not None and "limit" in info.data and seconds_in(default) > seconds_in(info.data["limit"]):
            raise PydanticCustomError("max_run_time", "above the limit")
        return default


class Team(Model):
    """A team. Its quota is set in each environment."""

    name: str = Field(
        description="DNS label of at most 40 characters; the namespace is `hyperpod-ns-<name>`.", examples=["john"]
    )
    fair_share_weight: Annotated[int, Api("FairShareWeight")] = amount(
        "0–100. A higher weight gets idle compute earlier; 0 is last.",
        unit="none, a ratio to other teams' weights",
        default=0,
        example=50,
    )
    sharing: Sharing = Field(default=Sharing(), description="Lending and borrowing.")
    preempt_team_tasks: Annotated[PreemptTeamTasks, Api("PreemptTeamTasks")] = Field(
        default="LowerPriority",
        description="LowerPriority: a task preempts tasks of its team with a lower priority. Never: it waits.",
    )
    activation_state: Annotated[ActivationState, Api("ActivationState")] = Field(
        default="Enabled",
        description="Disabled: pauses the team. Its queue admits no jobs, and running ones can stop, because AWS "
        "doesn't document what happens to them. Others can still borrow its quota.",
    )
    members: tuple[Annotated[str, Api("RoleArn")], ...] = Field(
        default=(),
        description="IAM roles of the team's data scientists, such as `arn:aws:iam::123456789012:role/vision`. "
        "With `account`, an environment admits only roles of that account. `overrides` replaces them "
        "in one environment.",
        examples=["arn:aws:iam::123456789012:role/john-scientists"],
    )
    member_role: MemberRole | None = Field(
        default=None,
        description="A role for the team's data scientists, with the policy of `hpkit aws team-policy`. It is a member "
        "in addition to `members`. Requires `account`.",
    )
    service_accounts: tuple[Name, ...] = Field(
        default=(),
        description="Service accounts that the team's pods may use in addition to `default`. Members get their "
        "permissions in the cluster and, by Pod Identity, at AWS.",
        examples=["trainer"],
    )
    workloads: tuple[Workload, ...] = Field(
        default=("training",),
        min_length=1,
        description="What members can run. training: Jobs, and the kinds of Kubeflow, Ray, JobSet and HyperPod's "
        "training operator. inference: Deployments, HorizontalPodAutoscalers and ScaledObjects. spaces: JupyterLab "
        "and Code Editor, where an environment has `spaces`. All include pods, ConfigMaps, Secrets, Services and "
        "claims.",
    )
    console_access: bool = Field(
        default=False,
        description="Members also get AWS's access policies for HyperPod in the console and in SageMaker Studio. They "
        "cover the team's `workloads` in its namespace, and reading the names of nodes and queues.",
    )
    priority_classes: tuple[str, ...] = Field(
        default=(),
        description="Priority classes that members may use. Default: all of the cluster policy.",
        examples=["training"],
    )
    space_priority_class: str | None = Field(
        default=None,
        description="Priority class that the team's spaces must have; `priorityClasses` need not name it. Default: as "
        "for other work.",
        examples=["interactive"],
    )
    max_run_time: MaxRunTime | None = Field(
        default=None,
        description="Longest run time of the team's jobs. `hpkit job why` then estimates when waiting jobs start.",
    )
    user_ids: UserIds | None = Field(
        default=None,
        description="User and group IDs of pods with the claim `fsx-claim` (`storage.lustre.teams`). Default: a "
        "range of 1000 IDs derived from the team's name; `hpkit quota --team` shows it. After a change, "
        "an administrator must change the owner of existing files.",
    )
    description: Annotated[str, Api("EntityDescription")] | None = Field(
        default=None,
        description="Description of the team's quota in the API, at most 1024 characters.",
        examples=["Vision models"],
    )
    registry: tuple[RepositoryName, ...] = Field(
        default=(),
        description="ECR repositories for the team's images, where it has quota: `<stack>/<team>/<name>`. They "
        "are encrypted and scanned on push, with immutable tags. Members can push only to these "
        "(`hpkit aws team-policy`).",
        examples=["train"],
    )


class TeamOverride(Model):
    """Settings of a team in one environment. Missing keys are as in `teams`."""

    fair_share_weight: Annotated[int, Api("FairShareWeight")] | None = amount(
        "Replaces the team's fairShareWeight.", unit="none, a ratio to other teams' weights", default=None, example=50
    )
    sharing: Sharing | None = Field(default=None, description="Replaces the team's sharing as a whole.")
    preempt_team_tasks: Annotated[PreemptTeamTasks, Api("PreemptTeamTasks")] | None = Field(
        default=None, description="Replaces the team's preemptTeamTasks."
    )
    activation_state: Annotated[ActivationState, Api("ActivationState")] | None = Field(
        default=None, description="Replaces the team's activationState: pauses it in one environment."
    )
    members: tuple[Annotated[str, Api("RoleArn")], ...] | None = Field(
        default=None,
        description="Replaces all members of the team. An empty list admits no one.",
        examples=["arn:aws:iam::123456789012:role/john-scientists"],
    )
    member_role: MemberRole | None = Field(
        default=None, description="Replaces the team's memberRole, which `members` alone removes."
    )


class ComputeQuotaResource(QuotaAmount):
    """Quota of a team for one instance type: whole instances, a share, or parts of an instance."""

    share: str | None = Field(
        default=None,
        pattern=r"^(?:100|[1-9]?[0-9])(?:\.[0-9]{1,3})?%$",
        description="Percent of the type's permanent instances (with `elastic`, of the maximum), such as `40%`. "
        "Whole instances: the sum of a type's shares is rounded down, so a single `60%` of 3 is 1.",
        examples=["40%"],
    )
    # Developer guide, task governance, "Policies": reserved quota "should not surpass" the capacity. Whether the API
    # rejects more than the running instances isn't documented.
    elastic: bool = Field(
        default=False, description="Quota relies on Karpenter: it must fit the maximum, not the permanent capacity."
    )
    future: bool = Field(
        default=False, description="The instance type will be added later; its absence is only a warning."
    )


class RequeuingStrategy(Model):
    """When and where Kueue requeues a workload that it evicted because its pods weren't ready."""

    timestamp: Literal["Eviction", "Creation"] = Field(
        default="Eviction",
        description="Position in the queue. Eviction: by the time of the eviction. Creation: the previous position.",
    )
    backoff_limit_count: _Count | None = amount(
        "Retries before Kueue deactivates the workload. Default: no limit.", unit="retries", default=None, example=5
    )
    backoff_base_seconds: _Count = amount(
        "Seconds until the first retry. The wait doubles with each retry.", unit="seconds", default=60, example=30
    )
    backoff_max_seconds: _Count = amount("Longest wait before a retry, in seconds.", unit="seconds", default=3600)


class GangScheduling(Model):
    """Gang scheduling of task governance (Kueue's `waitForPodsReady`): all pods start, or none of them keeps quota."""

    enable: bool = Field(description="true: evict and requeue workloads whose pods don't all become ready in time.")
    timeout: _Duration = Field(
        default="5m",
        description="How long the pods of an admitted workload may take to become ready.",
        examples=["30m"],
    )
    recovery_timeout: _Duration | None = Field(
        default=None,
        description="Time for a running workload to replace failed pods. `0s` disables it. Default: timeout. "
        "Not simulated.",
        examples=["5m"],
    )
    block_admission: bool = Field(
        default=False,
        description="true: admit no workload, of any team, until all admitted ones are ready. Prevents deadlocks, but "
        "starts workloads one by one.",
    )
    requeuing_strategy: RequeuingStrategy = Field(
        default=RequeuingStrategy(), description="How evicted workloads are retried."
    )

    @property
    def timeout_seconds(self) -> int:
        """Return how long Kueue waits for all pods of a workload, in seconds."""
        return int(seconds_in(self.timeout))

    @property
    def recovery_seconds(self) -> int:
        """Return the recovery timeout in seconds; 0 disables it."""
        return self.timeout_seconds if self.recovery_timeout is None else int(seconds_in(self.recovery_timeout))


class SharedPool(Model):
    """A team that gets unallocated capacity, in whole instances or parts of them, and lends it all."""

    name: str = Field(default="shared", description="Team name of the pool.", examples=["shared"])
    fair_share_weight: Annotated[int, Api("FairShareWeight")] = amount(
        "0–100.", unit="none, a ratio to other teams' weights", default=0
    )


class Governance(Model):
    """Task governance of one environment: policy and quotas."""

    cluster_policy: ClusterPolicy | None = Field(default=None, description="Replaces the organization's whole policy.")
    allocations: dict[str, tuple[ComputeQuotaResource, ...]] = Field(
        default={}, description="Quota of each team. A team without an allocation has no queue in this environment."
    )
    overrides: dict[str, TeamOverride] = Field(
        default={}, description="Settings of a team that differ from `teams` in this environment."
    )
    shared_pool: SharedPool | None = Field(
        default=None,
        description="A team that gets unallocated capacity, in whole instances or parts of them, and lends it all. "
        "Default: none.",
    )
    topology_aware_scheduling: Literal["Enabled", "Disabled", "Unmanaged"] | None = Field(
        default=None,
        description="Default: Enabled, or Disabled with autoscaling. Unmanaged: hpkit doesn't change Kueue's "
        "configuration, except for gangScheduling.",
    )
    gang_scheduling: GangScheduling | None = Field(
        default=None,
        description="Gang scheduling. Default: off. With `topologyAwareScheduling: Unmanaged`, the cluster's setting "
        "is kept.",
    )
    policy_name: Annotated[str, Api("EntityName")] | None = Field(
        default=None,
        description="Name of the cluster policy in the API, which can't change. With `cluster.existing`, names of "
        "repositories and of roles for `memberRole` also begin with it. Default: the stack's name.",
        examples=["acme-dev"],
    )
    quota_names: dict[str, Annotated[str, Api("EntityName")]] = Field(
        default={},
        description="Name of a team's quota in the API, which can't change. Default: the team's name.",
        examples=[{"john": "john-quota"}],
    )
    team_limits: TeamLimits = Field(default=TeamLimits(), description="Limits on what members run.")
    installed: bool = Field(
        default=False,
        description="true: the EKS cluster already has the task governance add-on, so hpkit neither installs it nor "
        "changes Kueue's configuration.",
    )

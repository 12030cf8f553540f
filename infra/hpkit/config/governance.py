"""Who the teams are, how they share, and how tasks are ranked."""

from typing import Annotated, Final, Literal

from pydantic import Field

from hpkit.config.base import Api, Model, Name
from hpkit.config.registry import RepositoryName
from hpkit.config.team_limits import TeamLimits

__all__ = [
    "MOST_ID",
    "AbsoluteBorrowLimit",
    "AcceleratorPartition",
    "ClusterPolicy",
    "ComputeQuotaResource",
    "Governance",
    "PreemptTeamTasks",
    "PriorityClass",
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
Workload = Literal["training", "inference"]


class PriorityClass(Model):
    """A rank that tasks can carry; becomes the WorkloadPriorityClass `<name>-priority`."""

    name: Annotated[str, Api("ClusterSchedulerPriorityClassName")] = Field(
        description="Name that job labels carry, with `-priority` behind it."
    )
    weight: Annotated[int, Api("PriorityWeight")] = Field(
        description="0–100; a task of a higher weight goes first. A task without a class has weight 0."
    )


class ClusterPolicy(Model):
    """How the cluster ranks tasks and hands out idle compute (the API's ClusterSchedulerConfig)."""

    task_prioritization: Literal["Rank", "FirstComeFirstServed"] = Field(
        default="FirstComeFirstServed",
        description="Rank: by priority class. FirstComeFirstServed: by age; takes no priority classes.",
    )
    priority_classes: tuple[PriorityClass, ...] = Field(
        default=(), description="At most 10, each with a weight of its own."
    )
    fair_share: Annotated[Literal["Enabled", "Disabled"], Api("FairShare")] = Field(
        default="Enabled", description="Enabled: idle compute by the teams' weights. Disabled: by age."
    )
    description: Annotated[str, Api("EntityDescription")] | None = Field(
        default=None, description="Description that the API keeps with the policy, at most 1024 characters."
    )
    idle_resource_sharing: Annotated[Literal["Enabled", "Disabled"], Api("IdleResourceSharing")] = Field(
        default="Disabled", description="Enabled: the service lends the capacity that no team reserved."
    )


class AcceleratorPartition(Model):
    """MIG partitions of one profile."""

    type: str = Field(description="MIG profile, such as `mig-1g.5gb`.")
    count: Annotated[int, Api("AcceleratorPartitionConfigCountInteger")] = Field(description="Number of partitions.")


class AbsoluteBorrowLimit(Model):
    """What a team may borrow at most of one instance type."""

    instance_type: str = Field(description="An `ml.*` instance type.")
    count: Annotated[int, Api("InstanceCount")] = Field(description="Whole instances.")


class Sharing(Model):
    """Whether a team's idle quota is lent, and whether it may borrow."""

    strategy: Annotated[SharingStrategy, Api("ResourceSharingStrategy")] = Field(
        default="LendAndBorrow",
        description="LendAndBorrow; Lend: lends, never borrows; DontLend: neither lends nor borrows.",
    )
    borrow_limit: int | None = Field(
        default=None,
        description="Percent of the team's own quota that it may borrow on top, 1–500. "
        "With LendAndBorrow and no limit the service takes 50. In instances: absoluteBorrowLimits.",
    )
    absolute_borrow_limits: tuple[AbsoluteBorrowLimit, ...] = Field(
        default=(),
        description="Limits in instances, per type; for a type named here they replace the percentage.",
    )


class UserIds(Model):
    """The user and group ids of a team's processes on a file system that teams share."""

    first: Annotated[int, Field(ge=1000, le=MOST_ID)] = Field(
        description="Lowest id. Ids below 1000 belong to the system (useradd, UID_MIN)."
    )
    count: Annotated[int, Field(ge=1, le=1_000_000)] = Field(default=1000, description="Number of ids.")


class Team(Model):
    """A team; its compute allocations stand in each environment."""

    name: str = Field(description="DNS label of at most 40 characters; the namespace is `hyperpod-ns-<name>`.")
    fair_share_weight: Annotated[int, Api("FairShareWeight")] = Field(
        default=0, description="0–100; a higher weight gets idle compute earlier, 0 is last."
    )
    sharing: Sharing = Field(default=Sharing(), description="Lending and borrowing.")
    preempt_team_tasks: Annotated[PreemptTeamTasks, Api("PreemptTeamTasks")] = Field(
        default="LowerPriority",
        description="LowerPriority: within the team a higher class evicts a lower one. Never: it waits.",
    )
    members: tuple[Annotated[str, Api("RoleArn")], ...] = Field(
        default=(),
        description="IAM roles of the team's data scientists, such as `arn:aws:iam::123456789012:role/vision`. An "
        "environment with an `account` admits only that account's roles; `overrides` names others for one environment.",
    )
    service_accounts: tuple[Name, ...] = Field(
        default=(),
        description="Service accounts of the team's namespace that its pods may run as, beside `default`: whoever is "
        "in the team has their rights, in the cluster and, by Pod Identity, at AWS.",
    )
    workloads: tuple[Workload, ...] = Field(
        default=("training",),
        min_length=1,
        description="What members run. training: Jobs and the kinds of Kubeflow, Ray, JobSet and HyperPod's training "
        "operator. inference: Deployments, HorizontalPodAutoscalers and KEDA's ScaledObjects. Pods, ConfigMaps, "
        "Secrets, Services and claims come with either.",
    )
    priority_classes: tuple[str, ...] = Field(
        default=(),
        description="Priority classes of the cluster policy that members may give their work. Absent: all of them.",
    )
    user_ids: UserIds | None = Field(
        default=None,
        description="User and group ids that pods with the claim `fsx-claim` run as (`storage.lustre.teams`). Absent: "
        "a range of 1000 that the team's name determines; `hpkit describe` shows it. A change makes files inaccessible "
        "to the team until an administrator changes their owner.",
    )
    description: Annotated[str, Api("EntityDescription")] | None = Field(
        default=None, description="Description that the API keeps with the team's quota, at most 1024 characters."
    )
    registry: tuple[RepositoryName, ...] = Field(
        default=(),
        description="Repositories of Amazon ECR for the team's images, in each environment where it has quota: "
        "`<stack>/<team>/<name>`, encrypted with the stack's key, scanned on push, their tags immutable. Members push "
        "to these alone (`hpkit aws team-policy`), nodes pull from them.",
    )


class TeamOverride(Model):
    """How a team shares in one environment, where that differs; what is absent is as `teams` says."""

    fair_share_weight: Annotated[int, Api("FairShareWeight")] | None = Field(
        default=None, description="In place of the team's fairShareWeight."
    )
    sharing: Sharing | None = Field(default=None, description="In place of the team's sharing, whole.")
    preempt_team_tasks: Annotated[PreemptTeamTasks, Api("PreemptTeamTasks")] | None = Field(
        default=None, description="In place of the team's preemptTeamTasks."
    )
    members: tuple[Annotated[str, Api("RoleArn")], ...] | None = Field(
        default=None, description="In place of the team's members, all of them. An empty list admits nobody."
    )


class ComputeQuotaResource(Model):
    """What a team reserves of one instance type: one measure, or fractions that belong together."""

    instance_type: str = Field(description="An `ml.*` instance type of this environment.")
    count: Annotated[int, Api("InstanceCount")] | None = Field(default=None, description="Whole instances.")
    accelerators: Annotated[int, Api("AcceleratorsAmount")] | None = Field(
        default=None, description="GPUs or Trainium chips; vCPU and memory follow pro rata unless given."
    )
    v_cpu: Annotated[float, Api("VCpuAmount")] | None = Field(default=None, description="vCPUs.")
    memory_in_gib: Annotated[float, Api("MemoryInGiBAmount")] | None = Field(
        default=None, alias="memoryInGiB", description="Memory in GiB."
    )
    accelerator_partition: AcceleratorPartition | None = Field(default=None, description="MIG partitions.")
    share: str | None = Field(
        default=None,
        pattern=r"^(?:100|[1-9]?[0-9])(?:\.[0-9]{1,3})?%$",
        description="Percent of the type's guaranteed instances (with `elastic`, of the maximum), such as `40%`; "
        "turned into whole instances by the largest remainder.",
    )
    elastic: bool = Field(
        default=False, description="Counts on Karpenter: must fit the maximum, not the guaranteed capacity."
    )
    future: bool = Field(default=False, description="The type comes later: its absence is a warning, not an error.")


class SharedPool(Model):
    """A team that takes whole instances nobody reserved, and lends them all."""

    name: str = Field(default="shared", description="Team name of the pool.")
    fair_share_weight: Annotated[int, Api("FairShareWeight")] = Field(default=0, description="0–100.")


class Governance(Model):
    """Task governance of one environment: policy and every team's share."""

    cluster_policy: ClusterPolicy | None = Field(default=None, description="Replaces the organization's policy, whole.")
    allocations: dict[str, tuple[ComputeQuotaResource, ...]] = Field(
        default={}, description="Team → what it has reserved. A team without any has no queue in this environment."
    )
    overrides: dict[str, TeamOverride] = Field(
        default={}, description="Team → how it shares here, where that differs from `teams`."
    )
    shared_pool: SharedPool | None = Field(default=None, description="Absent: no pool.")
    topology_aware_scheduling: Literal["Enabled", "Disabled", "Unmanaged"] | None = Field(
        default=None,
        description="Default: Enabled, and Disabled where autoscaling is on, since absent nodes have no topology. "
        "Unmanaged: Kueue's configuration stays as the add-on has it.",
    )
    policy_name: Annotated[str, Api("EntityName")] | None = Field(
        default=None,
        description="The API's name of the cluster policy, which cannot change; absent: the stack's name.",
    )
    quota_names: dict[str, Annotated[str, Api("EntityName")]] = Field(
        default={},
        description="Team → the API's name of its quota, which cannot change, where that is not the team's.",
    )
    team_limits: TeamLimits = Field(
        default=TeamLimits(), description="What the work of members may ask for beyond the safe defaults."
    )

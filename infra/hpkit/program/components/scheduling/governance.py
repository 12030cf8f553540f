"""Task governance: the cluster policy, and one compute quota per team.

It doesn't create team namespaces or queues, because the service creates them with the quota.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pulumi

from hpkit.config.models.governance import ClusterPolicy
from hpkit.plan.model import Plan, QuotaResource, TeamPlan
from hpkit.program.components.cluster.hyperpod import tags_of
from hpkit.program.components.common.base import Component
from hpkit.program.sdk import ClusterSchedulerConfig, ComputeQuota
from hpkit.program.sdk.types import (
    ComputeQuotaConfig,
    ComputeQuotaResourceConfig,
    ResourceSharingConfig,
    SchedulerConfig,
)

__all__ = ["Governance"]


class Governance(Component):
    """The policy, and the quotas by team, for resources that must wait for a team's namespace."""

    policy: ClusterSchedulerConfig
    quotas: Mapping[str, ComputeQuota]

    def __init__(
        self,
        name: str,
        plan: Plan,
        policy: ClusterPolicy,
        *,
        cluster_arn: pulumi.Input[str],
        after: Sequence[pulumi.Resource],
        opts: pulumi.ResourceOptions,
    ) -> None:
        super().__init__(name, opts=opts)
        self.policy = ClusterSchedulerConfig(
            "policy",
            name=plan.policy_name,
            description=policy.description,
            cluster_arn=cluster_arn,
            scheduler_config=_scheduler_config(policy),
            tags=tags_of(plan),
            # For an existing cluster, nothing else tells `hpkit aws destroy` that the file protects the stack.
            opts=self.child(after=after, protect=(plan.spec.protect and plan.spec.cluster.existing) or None),
        )
        self.quotas = {
            team.name: ComputeQuota(
                team.name,
                name=team.quota_name,
                description=team.spec.description,
                cluster_arn=cluster_arn,
                compute_quota_target={"teamName": team.name, "fairShareWeight": team.spec.fair_share_weight},
                compute_quota_config=_quota_config(team),
                activation_state=None if team.spec.activation_state == "Enabled" else team.spec.activation_state,
                elastic_instance_types=_types(each for each in team.quota_resources if each.elastic),
                future_instance_types=_types(each for each in team.quota_resources if each.future),
                tags=tags_of(plan),
                # Quotas must be deleted before the policy (SageMaker developer guide, "Delete policies").
                opts=self.child(after=[*after, self.policy]),
            )
            for team in plan.teams
        }
        self.register_outputs({"teams": sorted(self.quotas)})


def _scheduler_config(policy: ClusterPolicy) -> SchedulerConfig:
    config: SchedulerConfig = {
        "fairShare": policy.fair_share,
        "idleResourceSharing": policy.idle_resource_sharing,
    }
    classes = sorted(policy.priority_classes, key=lambda each: (-each.weight, each.name))
    if classes:
        config["priorityClasses"] = [{"name": each.name, "weight": each.weight} for each in classes]
    return config


def _types(quota_resources: Iterable[QuotaResource]) -> list[str] | None:
    """Return the instance types of some quota resources; None, which registers nothing, if there aren't any."""
    return sorted({each.instance_type for each in quota_resources}) or None


def _quota_config(team: TeamPlan) -> ComputeQuotaConfig:
    sharing: ResourceSharingConfig = {"strategy": team.spec.sharing.strategy}
    if team.spec.sharing.borrow_limit is not None:
        sharing["borrowLimit"] = team.spec.sharing.borrow_limit
    if team.absolute_borrow_limits:
        sharing["absoluteBorrowLimits"] = [
            _quota_resource(each) for limit in team.absolute_borrow_limits.values() for each in limit
        ]
    return {
        "computeQuotaResources": [_quota_resource(each) for each in team.quota_resources],
        "resourceSharingConfig": sharing,
        "preemptTeamTasks": team.spec.preempt_team_tasks,
    }


def _quota_resource(reserved: QuotaResource) -> ComputeQuotaResourceConfig:
    config: ComputeQuotaResourceConfig = {"instanceType": reserved.instance_type}
    if reserved.count is not None:
        config["count"] = reserved.count
    if reserved.accelerators is not None:
        config["accelerators"] = reserved.accelerators
    if reserved.v_cpu is not None:
        config["vCpu"] = float(reserved.v_cpu)
    if reserved.memory_in_gib is not None:
        config["memoryInGiB"] = float(reserved.memory_in_gib)
    if reserved.partition is not None:
        config["acceleratorPartition"] = {"type": reserved.partition.type, "count": reserved.partition.count}
    return config

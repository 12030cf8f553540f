"""Requests to the service for a plan's teams: API parameters, from which it creates Kueue's objects."""

from __future__ import annotations

from typing import Any

from hpkit.plan.model import Plan, QuotaResource, TeamPlan

__all__ = ["policy_request", "quota_requests"]

Document = dict[str, Any]


def quota_requests(plan: Plan) -> list[Document]:
    """Return the parameters of CreateComputeQuota of each team, without cluster, description and tags."""
    return [
        {
            "Name": team.quota_name,
            "ActivationState": team.spec.activation_state,
            "ComputeQuotaTarget": {"TeamName": team.name, "FairShareWeight": team.spec.fair_share_weight},
            "ComputeQuotaConfig": {
                "ComputeQuotaResources": [_resource(each) for each in team.quota_resources],
                "ResourceSharingConfig": _sharing(team),
                "PreemptTeamTasks": team.spec.preempt_team_tasks,
            },
        }
        for team in plan.teams
    ]


def policy_request(plan: Plan) -> Document | None:
    """Return the SchedulerConfig of CreateClusterSchedulerConfig; None without a policy."""
    policy = plan.policy
    if policy is None:
        return None
    classes = [{"Name": each.name, "Weight": each.weight} for each in policy.priority_classes]
    return {
        "FairShare": policy.fair_share,
        "IdleResourceSharing": policy.idle_resource_sharing,
        **({"PriorityClasses": classes} if classes else {}),
    }


def _sharing(team: TeamPlan) -> Document:
    sharing: Document = {"Strategy": team.spec.sharing.strategy}
    if team.spec.sharing.borrow_limit is not None:
        sharing["BorrowLimit"] = team.spec.sharing.borrow_limit
    if team.absolute_borrow_limits:
        sharing["AbsoluteBorrowLimits"] = [
            _resource(each) for limit in team.absolute_borrow_limits.values() for each in limit
        ]
    return sharing


def _resource(reserved: QuotaResource) -> Document:
    partition = reserved.partition
    row: Document = {
        "InstanceType": reserved.instance_type,
        "Count": reserved.count,
        "Accelerators": reserved.accelerators,
        "VCpu": None if reserved.v_cpu is None else float(reserved.v_cpu),
        "MemoryInGiB": None if reserved.memory_in_gib is None else float(reserved.memory_in_gib),
        "AcceleratorPartition": partition and {"Type": partition.type, "Count": partition.count},
    }
    return {name: value for name, value in row.items() if value is not None}

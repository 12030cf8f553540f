"""What each team gets, as the stack's outputs say it."""

from typing import Any

from hpkit.plan.derive import quotas_of
from hpkit.plan.model import Plan
from hpkit.text.formatting import json_number

__all__ = ["team_table"]


def team_table(plan: Plan) -> dict[str, dict[str, Any]]:
    """Return team → namespace, queue, ranks, and by instance type what is guaranteed, elastic and may be borrowed.

    Elastic quota counts on Karpenter's instances, which may not be there: it is no guarantee, and only types that have
    any are listed. Amounts are instances; ranks are the labels of the priority classes that its members may use, the
    highest first.
    """
    guarantee: dict[str, dict[str, float]] = {team.name: {} for team in plan.teams}
    elastic: dict[str, dict[str, float]] = {team.name: {} for team in plan.teams}
    borrowable: dict[str, dict[str, float]] = {team.name: {} for team in plan.teams}
    for quota in quotas_of(plan):
        for share in quota.teams:
            guarantee[share.team][quota.instance_type] = json_number(share.reserved)
            if share.elastic:
                elastic[share.team][quota.instance_type] = json_number(share.elastic)
            borrowable[share.team][quota.instance_type] = json_number(share.borrowable)
    ranked = sorted(plan.policy.priority_classes if plan.policy else (), key=lambda each: -each.weight)
    return {
        team.name: {
            "namespace": team.namespace,
            "queue": team.local_queue,
            "priorityClasses": [
                f"{each.name}-priority"
                for each in ranked
                if not team.spec.priority_classes or each.name in team.spec.priority_classes
            ],
            "guarantee": guarantee[team.name],
            "elastic": elastic[team.name],
            "borrowable": borrowable[team.name],
        }
        for team in plan.teams
    }

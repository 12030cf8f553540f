"""Each team's resources, as stack outputs."""

from collections.abc import Mapping
from typing import NotRequired, TypedDict

import pulumi

from hpkit.plan.derive import quotas_of
from hpkit.plan.model import Plan
from hpkit.text.document import json_number

__all__ = ["TeamOutputs", "team_table"]


class TeamOutputs(TypedDict):
    """A team's resources: namespace, queue, and amounts in instances, by instance type.

    - priorityClasses: labels of the priority classes that its members can use, the highest first.
    - elastic: quota on instances that Karpenter might not have started. Only types with elastic quota are listed.
    - repositories: repository name → URI, for teams with ECR repositories.
    """

    namespace: str
    queue: str
    priorityClasses: list[str]
    guarantee: dict[str, float]
    elastic: dict[str, float]
    borrowable: dict[str, float]
    repositories: NotRequired[Mapping[str, pulumi.Input[str]]]


def team_table(plan: Plan) -> dict[str, TeamOutputs]:
    """Return each team's resources, by its name."""
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
                f"{priority_class.name}-priority"
                for priority_class in ranked
                if not team.spec.priority_classes or priority_class.name in team.spec.priority_classes
            ],
            "guarantee": guarantee[team.name],
            "elastic": elastic[team.name],
            "borrowable": borrowable[team.name],
        }
        for team in plan.teams
    }

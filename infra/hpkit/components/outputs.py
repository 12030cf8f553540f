"""What each team gets, as the stack's outputs say it."""

from fractions import Fraction
from typing import Any

from hpkit.plan.capacity import Amount
from hpkit.plan.derive import quotas_of
from hpkit.plan.model import Plan

__all__ = ["team_table"]


def team_table(plan: Plan) -> dict[str, dict[str, Any]]:
    """Return team → namespace, queue, and by instance type what is guaranteed and what may be borrowed (instances)."""
    guarantee: dict[str, dict[str, float]] = {team.name: {} for team in plan.teams}
    borrowable: dict[str, dict[str, float]] = {team.name: {} for team in plan.teams}
    for quota in quotas_of(plan):
        for share in quota.teams:
            guarantee[share.team][quota.instance_type] = _number(Fraction(share.reserved) + Fraction(share.elastic))
            borrowable[share.team][quota.instance_type] = _number(share.borrowable)
    return {
        team.name: {
            "namespace": team.namespace,
            "queue": team.local_queue,
            "guarantee": guarantee[team.name],
            "borrowable": borrowable[team.name],
        }
        for team in plan.teams
    }


def _number(value: Amount) -> float:
    exact = Fraction(value)
    return exact.numerator if exact.denominator == 1 else float(exact)

"""Alert rules over Kueue's own metrics, as Prometheus takes them.

Source of the metrics: Kueue documentation, "Prometheus metrics"; the HyperPod observability add-on forwards them with
its task-governance category.
"""

from typing import Any

from hpkit.plan.model import Plan, TeamPlan

__all__ = ["alert_rules"]

_WAITING_MINUTES = 30
_PREEMPTIONS_AN_HOUR = 10


def alert_rules(plan: Plan) -> dict[str, Any]:
    """Return rule groups: one for the cluster, and one per team whose work waits or is taken away too often."""
    groups = [_group(team) for team in plan.teams if not team.is_shared_pool]
    return {"groups": [_cluster(), *groups]}


def _cluster() -> dict[str, Any]:
    return {
        "name": "cluster",
        "rules": [
            _alert(
                "KueueNotAdmitting",
                "sum(kueue_pending_workloads) > 0 and sum(rate(kueue_admission_attempts_total[15m])) == 0",
                "Workloads wait and Kueue tries to admit none of them.",
                severity="critical",
            )
        ],
    }


def _group(team: TeamPlan) -> dict[str, Any]:
    queue = f'cluster_queue="{team.cluster_queue}"'
    used = f"sum(kueue_cluster_queue_resource_usage{{{queue}}})"
    guaranteed = f"sum(kueue_cluster_queue_nominal_quota{{{queue}}})"
    return {
        "name": f"team-{team.name}",
        "rules": [
            _alert(
                "WaitingWithinGuarantee",
                f'sum(kueue_pending_workloads{{{queue},status="active"}}) > 0 and {used} < {guaranteed}',
                f"Work of {team.name} waits although the team is below its guarantee.",
            ),
            _alert(
                "PreemptedOften",
                f"sum(increase(kueue_preempted_workloads_total{{preempting_{queue}}}[1h])) > {_PREEMPTIONS_AN_HOUR}",
                f"{team.name} took compute back from others more than {_PREEMPTIONS_AN_HOUR} times in an hour.",
                minutes=0,
            ),
        ],
    }


def _alert(
    name: str, expression: str, summary: str, *, severity: str = "warning", minutes: int = _WAITING_MINUTES
) -> dict[str, Any]:
    return {
        "alert": name,
        "expr": expression,
        "for": f"{minutes}m",
        "labels": {"severity": severity},
        "annotations": {"summary": summary},
    }

"""Alert rules over Kueue's own metrics, in Prometheus's format, recipients of its alert manager, and cluster events.

Sources:
- Kueue documentation, "Prometheus metrics"; the HyperPod observability add-on forwards them with its task-governance
  category.
- SageMaker AI developer guide, "Events that Amazon SageMaker AI sends to Amazon EventBridge", the three sections on
  HyperPod, and "SageMaker HyperPod cluster events reference", section "EventBridge integration".
"""

import json
from typing import Any

from hpkit.config.models.observability import ClusterEvents
from hpkit.plan.model import Plan, TeamPlan
from hpkit.plan.names import EVENT_RULES

__all__ = ["alert_manager", "alert_rules", "event_patterns"]

_WAITING_MINUTES = 30
_PREEMPTIONS_AN_HOUR = 10


def alert_rules(plan: Plan) -> dict[str, Any]:
    """Return rule groups: one for the cluster, and one per team whose work waits or is taken away too often."""
    groups = [_group(team) for team in plan.teams if not team.is_shared_pool]
    return {"groups": [_cluster(), *groups]}


def alert_manager(plan: Plan, topic_arn: str) -> str:
    """Return the alert manager's definition: one message for all alerts with a name, repeated after four hours.

    Source: Amazon Managed Service for Prometheus user guide, "Configure alert manager to send messages to your Amazon
    SNS topic". The region is required; a subject is set because the default can be too long for SNS.
    """
    sns = {
        "topic_arn": topic_arn,
        "sigv4": {"region": topic_arn.split(":")[3]},
        "subject": f"[{{{{ .Status }}}}] {plan.stack} {{{{ .GroupLabels.alertname }}}}",
    }
    route = {
        "receiver": "sns",
        "group_by": ["alertname"],
        "group_wait": "30s",
        "group_interval": "5m",
        "repeat_interval": "4h",
    }
    config = {"route": route, "receivers": [{"name": "sns", "sns_configs": [sns]}]}
    # JSON is YAML, and the same text on every run.
    return json.dumps({"alertmanager_config": json.dumps(config, sort_keys=True)}, sort_keys=True)


def event_patterns(plan: Plan, events: ClusterEvents) -> dict[str, str]:
    """Return the patterns of the EventBridge rules, by purpose: only events of this cluster.

    The cluster is matched by its name, which is unique in an account and region, and known before the cluster exists.
    So a rule also reports a cluster that can't be created.
    """
    cluster_filter = {"ClusterName": [plan.spec.cluster.name]}
    status, health, event = EVENT_RULES
    patterns = {}
    if events.statuses:
        detail = {**cluster_filter, "ClusterStatus": sorted(events.statuses)}
        patterns[status] = _pattern("SageMaker HyperPod Cluster State Change", detail)
    if events.node_health:
        patterns[health] = _pattern("SageMaker HyperPod Cluster Node Health Event", cluster_filter)
    if events.levels:
        detail = {"EventDetails": {**cluster_filter, "EventLevel": sorted(events.levels)}}
        patterns[event] = _pattern("SageMaker HyperPod Cluster Event", detail)
    return patterns


def _pattern(detail_type: str, detail: dict[str, Any]) -> str:
    pattern = {"source": ["aws.sagemaker"], "detail-type": [detail_type], "detail": detail}
    # As the provider of the resource writes it.
    return json.dumps(pattern, sort_keys=True, separators=(",", ":"))


def _cluster() -> dict[str, Any]:
    return {
        "name": "cluster",
        "rules": [
            _alert(
                "KueueNotAdmitting",
                "sum(kueue_pending_workloads) > 0 and sum(rate(kueue_admission_attempts_total[15m])) == 0",
                "Workloads are pending, but Kueue isn't trying to admit any of them.",
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
                f"Tasks of {team.name} are pending although the team is below its guarantee.",
            ),
            _alert(
                "PreemptedOften",
                f"sum(increase(kueue_preempted_workloads_total{{preempting_{queue}}}[1h])) > {_PREEMPTIONS_AN_HOUR}",
                f"{team.name} reclaimed compute from other teams more than {_PREEMPTIONS_AN_HOUR} times in an hour.",
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

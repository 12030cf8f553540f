"""Dashboards and alert rules as files that Grafana imports."""

import hashlib
import json
from importlib.resources import files
from typing import Any, Final

from hpkit.catalog import find_instance_type
from hpkit.config.models.observability import GrafanaAlerts
from hpkit.plan.model import CLUSTER_QUEUE_SUFFIX, NAMESPACE_PREFIX, Plan

__all__ = ["DATA_SOURCE_NAME", "STACK_LABEL", "alert_rules", "dashboards", "export_files", "uid_of"]

# Grafana allows 40 letters, digits, `-` and `_` in a UID. A stack's name can be longer, and can be the beginning of
# another name, so UIDs contain a digest of it.
_MOST: Final = 40
_DIGITS: Final = 8


def uid_of(stack: str, name: str) -> str:
    """Return the UID of one object; name: its name within the stack."""
    prefix = f"hpkit-{_digest(stack)}-"
    room = _MOST - len(prefix)
    return prefix + (name if len(name) <= room else f"{name[: room - _DIGITS - 1]}-{_digest(name)}")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


# Source of the model: Grafana documentation, "Alerting provisioning HTTP API". One rule covers all teams, nodes or
# GPUs: Grafana creates an alert for each series that its query returns.
# A notification policy for this label sends only the stack's alerts.
STACK_LABEL: Final = "hpkit_stack"
_GROUP: Final = "hpkit"
_INTERVAL_SECONDS: Final = 60
_RANGE_SECONDS: Final = 600
_MINUTES_OF_AN_HOUR: Final = 60


def alert_rules(plan: Plan) -> list[dict[str, Any]]:
    """Return a stack's rules; none if its file requests none.

    Without the alerts that Managed Prometheus sends about waits and preemptions, because Grafana would repeat them.
    """
    spec = plan.spec.observability
    if spec is None or spec.grafana_alerts is None:
        return []
    of_queues = [] if spec.alerts is not None else _of_queues(plan, spec.grafana_alerts)
    return [*of_queues, *_of_gpus(plan, spec.grafana_alerts), *_of_nodes(plan, spec.grafana_alerts)]


def _contact_point(plan: Plan, topic_arn: str) -> dict[str, Any]:
    """Return the contact point: the topic, to which the workspace's role publishes.

    Source of the settings: Amazon Managed Grafana user guide, Alerting Notification Channels API; the Terraform
    provider of Grafana, contact point `sns`.
    """
    settings = {"topic": topic_arn, "authProvider": "default", "messageFormat": "text"}
    return {
        "uid": uid_of(plan.stack, "sns"),
        "name": f"hpkit {plan.stack}",
        "type": "sns",
        "settings": settings,
        "disableResolveMessage": False,
    }


def _rule_group(plan: Plan) -> dict[str, Any]:
    """Return the group of a stack's rules, as the HTTP API replaces it: rules that are missing in it are deleted."""
    return {
        "title": _GROUP,
        "folderUid": uid_of(plan.stack, "folder"),
        "interval": _INTERVAL_SECONDS,
        "rules": alert_rules(plan),
    }


def _of_queues(plan: Plan, spec: GrafanaAlerts) -> list[dict[str, Any]]:
    pending = "sum(max by (cluster_queue, status) (kueue_pending_workloads))"
    attempts = "sum(rate(kueue_admission_attempts_total[15m]))"
    waiting = _by_team('max by (cluster_queue, status) (kueue_pending_workloads{status="active"})', "cluster_queue")
    preempted = "sum by (preempting_cluster_queue, reason) (increase(kueue_preempted_workloads_total[1h]))"
    usage, quota = (
        f"max by (cluster_queue, flavor, resource) (kueue_cluster_queue_{name})"
        for name in ("resource_usage", "nominal_quota")
    )
    # The resource with the highest share of a team's quota: sums of GPUs and bytes would be meaningless.
    fullest = f"max by (cluster_queue) ({usage} / ({quota} > 0))"
    return [
        _rule(
            plan,
            "not-admitting",
            "Kueue admits nothing",
            f"{pending} > 0 and {attempts} == 0",
            "Workloads are pending, but Kueue isn't trying to admit any of them.",
            minutes=spec.waiting_minutes,
            severity="critical",
        ),
        _rule(
            plan,
            "waiting-within-quota",
            "Tasks wait although the team is below its quota",
            f"{waiting} > 0 and on (cluster_queue) {fullest} < 1",
            "Tasks of {{ $labels.team }} are pending although the team is below its quota.",
            minutes=spec.waiting_minutes,
        ),
        _rule(
            plan,
            "preempted-often",
            "A team preempts often",
            f"sum by (team) ({_by_team(preempted, 'preempting_cluster_queue')}) > {spec.preemptions_per_hour}",
            f"{{{{ $labels.team }}}} preempted other tasks more than {spec.preemptions_per_hour} times in an hour.",
            minutes=0,
        ),
    ]


def _of_gpus(plan: Plan, spec: GrafanaAlerts) -> list[dict[str, Any]]:
    # Over ten minutes, so that a pause between two training steps doesn't restart the count.
    busy = 'avg_over_time(DCGM_FI_DEV_GPU_UTIL{namespace=~"hyperpod-ns-.+"}[10m])'
    mean = _by_team(f"avg by (namespace) ({busy})", "namespace")
    return [
        _rule(
            plan,
            "gpu-hot",
            "GPU is too hot",
            f"max by (Hostname, gpu) (DCGM_FI_DEV_GPU_TEMP) > {spec.gpu_temperature}",
            f"GPU {{{{ $labels.gpu }}}} on {{{{ $labels.Hostname }}}} is above {spec.gpu_temperature} °C.",
            minutes=5,
        ),
        _rule(
            plan,
            "gpu-error",
            "GPU reports an XID error",
            "max by (Hostname, gpu) (DCGM_FI_DEV_XID_ERRORS) > 0",
            "GPU {{ $labels.gpu }} on {{ $labels.Hostname }} reports XID error {{ $values.A }}.",
            minutes=0,
            severity="critical",
        ),
        _rule(
            plan,
            "gpu-idle",
            "Allocated GPUs are idle",
            # The idle share, because a utilization of 0 isn't above the rule's threshold.
            f"100 - {mean} > {100 - spec.idle_gpu_percent}",
            f"GPUs of {{{{ $labels.team }}}} were less than {spec.idle_gpu_percent}% busy for {spec.idle_gpu_hours} h.",
            minutes=spec.idle_gpu_hours * _MINUTES_OF_AN_HOUR,
        ),
    ]


def _of_nodes(plan: Plan, spec: GrafanaAlerts) -> list[dict[str, Any]]:
    health = "sagemaker_amazonaws_com_node_health_status"
    sick = f'kubelet_node_name{{{health}!="Schedulable"}}'
    return [
        _rule(
            plan,
            "node-unhealthy",
            "Node is unhealthy",
            f"count by (node, {health}) ({sick})",
            f"Node {{{{ $labels.node }}}} is {{{{ $labels.{health} }}}}.",
            minutes=spec.unhealthy_node_minutes,
            severity="critical",
        )
    ]


def _by_team(expression: str, label: str) -> str:
    """Return an expression whose series also have the label `team`, taken from a ClusterQueue or a namespace."""
    suffix = "" if label == "namespace" else CLUSTER_QUEUE_SUFFIX
    return f'label_replace({expression}, "team", "$1", "{label}", "{NAMESPACE_PREFIX}(.*){suffix}")'


def _rule(
    plan: Plan, name: str, title: str, expression: str, summary: str, *, minutes: int, severity: str = "warning"
) -> dict[str, Any]:
    """Return a rule that fires for each series of the expression that is above 0 for a number of minutes."""
    return {
        "uid": uid_of(plan.stack, name),
        "title": title,
        "ruleGroup": _GROUP,
        "folderUID": uid_of(plan.stack, "folder"),
        "condition": "B",
        "data": [_query(plan, expression), _THRESHOLD],
        "for": f"{minutes}m",
        # No series means no problem; a failing query appears as an error of the rule.
        "noDataState": "OK",
        "execErrState": "Error",
        "labels": {"severity": severity, STACK_LABEL: plan.stack},
        "annotations": {"summary": summary},
        "isPaused": False,
    }


def _query(plan: Plan, expression: str) -> dict[str, Any]:
    return {
        "refId": "A",
        "relativeTimeRange": {"from": _RANGE_SECONDS, "to": 0},
        "datasourceUid": uid_of(plan.stack, DATA_SOURCE_NAME),
        "model": {"refId": "A", "expr": expression, "instant": True, "range": False},
    }


# A Grafana expression over the previous query.
_THRESHOLD: Final[dict[str, Any]] = {
    "refId": "B",
    "relativeTimeRange": {"from": 0, "to": 0},
    "datasourceUid": "__expr__",
    "model": {
        "refId": "B",
        "type": "threshold",
        "expression": "A",
        "conditions": [{"evaluator": {"type": "gt", "params": [0]}}],
    },
}


# `data/*.json` are dashboards as Grafana exports them, without the fields that Grafana sets. To change one, import it
# in Grafana, edit it, and save its JSON model there. Each stack gets them with its own UIDs, titles and defaults.
DATA_SOURCE_NAME: Final = "prometheus"
_OF_CLUSTER: Final = ("teams", "waits", "cluster", "gpus", "nodes")


def dashboards(plan: Plan) -> list[dict[str, Any]]:
    """Return a stack's dashboards, the cluster's first."""
    spec = plan.spec.observability
    named = spec.grafana_dashboards.teams if spec else None
    teams = [team.name for team in plan.teams if not team.is_shared_pool and (named is None or team.name in named)]
    of_cluster = (*_OF_CLUSTER, "autoscaling") if plan.spec.autoscaling else _OF_CLUSTER
    return [*(_dashboard(plan, name) for name in of_cluster), *(_dashboard(plan, "team", team) for team in teams)]


def _dashboard(plan: Plan, file: str, team: str = "") -> dict[str, Any]:
    """Return a dashboard for a stack; a team's dashboard has the team's name in place of the variable."""
    text = (files("hpkit.grafana") / "data" / f"{file}.json").read_text(encoding="utf-8")
    board: dict[str, Any] = json.loads(text.replace("$team", team) if team else text)
    chosen = {"datasource": uid_of(plan.stack, DATA_SOURCE_NAME), "resource": _main_resource(plan)}
    variables = [each for each in board["templating"]["list"] if not team or each["name"] != "team"]
    for variable in variables:
        if value := chosen.get(variable["name"]):
            variable["current"] = {"text": value, "value": value}
    title = str(board["title"]).replace("HyperPod", plan.stack, 1)
    return {
        **board,
        "uid": uid_of(plan.stack, f"team-{team}" if team else file),
        "title": f"{title} {team}" if team else title,
        "templating": {"list": variables},
    }


def _main_resource(plan: Plan) -> str:
    """Return the resource that most of the capacity is counted in: accelerators if any exist, otherwise CPUs."""
    found = (find_instance_type(name) for name in sorted(plan.capacity))
    return next((each.accelerator_resource for each in found if each and each.accelerator_resource), "cpu")


def export_files(plan: Plan, *, prometheus_url: str, topic_arn: str | None) -> dict[str, dict[str, Any]]:
    """Return the path of each file, and its content.

    prometheus_url: URL of the Prometheus workspace, without `/api`; topic_arn: the topic of alert rules, None if the
    stack has none.
    """
    folder = {"uid": uid_of(plan.stack, "folder"), "title": f"HyperPod {plan.stack}"}
    files = {"data-source.json": _data_source(plan, prometheus_url), "folder.json": folder}
    files |= {f"dashboards/{each['uid']}.json": each for each in dashboards(plan)}
    if topic_arn is not None:
        files |= {"contact-point.json": _contact_point(plan, topic_arn), "alert-rules.json": _rule_group(plan)}
    return files


def _data_source(plan: Plan, prometheus_url: str) -> dict[str, Any]:
    """Return Managed Prometheus as a data source: Grafana signs requests with the workspace's role.

    Grafana outside Amazon Managed Grafana signs with the credentials that the AWS SDK finds, if `sigv4_auth_enabled` is
    set. Source: Amazon Managed Grafana user guide, "Connect to Amazon Managed Service for Prometheus"; the data source
    that aws/sagemaker-hyperpod-cluster-setup creates; Grafana documentation, "Configure the Prometheus data source",
    SigV4.
    """
    spec = plan.spec.observability
    return {
        "uid": uid_of(plan.stack, DATA_SOURCE_NAME),
        "name": f"HyperPod {plan.stack}",
        "type": "prometheus",
        "access": "proxy",
        "url": prometheus_url.rstrip("/"),
        "jsonData": {
            "httpMethod": "POST",
            "sigV4Auth": True,
            "sigV4AuthType": "ec2_iam_role" if spec is not None and spec.grafana else "default",
            "sigV4Region": plan.spec.region,
        },
    }

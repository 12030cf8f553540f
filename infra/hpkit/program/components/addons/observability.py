"""Metrics: CloudWatch with Kueue metrics, Managed Prometheus with alerts, Managed Grafana with its users.

It also has the EventBridge rules that send events of the cluster to the topic of alerts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pulumi
import pulumi_aws as aws

from hpkit.catalog import CLOUDWATCH
from hpkit.config.models.observability import Alerts, ClusterEvents, MetricsProvider
from hpkit.config.models.observability import Observability as Spec
from hpkit.plan.model import Plan, TeamPlan
from hpkit.plan.names import EVENT_RULES, event_rule_name, grafana_topic_arn, topic_name
from hpkit.plan.protected import kept
from hpkit.program.components.access.roles import Roles
from hpkit.program.components.common.base import Component, DeployContext, document
from hpkit.program.iam.documents import topic_policy

__all__ = ["Observability", "alert_rules", "hyperpod_values"]

# Sources of the alerts:
# - Kueue documentation, "Prometheus metrics"; the HyperPod observability add-on forwards them with its task-governance
#   category.
# - SageMaker AI developer guide, "Events that Amazon SageMaker AI sends to Amazon EventBridge", the three sections on
#   HyperPod, and "SageMaker HyperPod cluster events reference", section "EventBridge integration".
_WAITING_MINUTES = 30
_PREEMPTIONS_AN_HOUR = 10


def alert_rules(plan: Plan) -> dict[str, Any]:
    """Return rule groups: one for the cluster, and one per team whose work waits or is taken away too often."""
    groups = [_group(team) for team in plan.teams if not team.is_shared_pool]
    return {"groups": [_cluster(), *groups]}


def _alert_manager(plan: Plan, topic_arn: str) -> str:
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


def _event_patterns(plan: Plan, events: ClusterEvents) -> dict[str, str]:
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
    quota = f"sum(kueue_cluster_queue_nominal_quota{{{queue}}})"
    return {
        "name": f"team-{team.name}",
        "rules": [
            _alert(
                "WaitingWithinQuota",
                f'sum(kueue_pending_workloads{{{queue},status="active"}}) > 0 and {used} < {quota}',
                f"Tasks of {team.name} are pending although the team is below its quota.",
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


def _cloudwatch_values() -> dict[str, Any]:
    """Return Container Insights with Kueue's metrics (Amazon CloudWatch user guide; add-on v2.4.0 or newer).

    It measures accelerators by default, even alongside the HyperPod observability add-on: the console's dashboard
    shows only CloudWatch's metrics. Its DCGM exporter reads no profiling metrics (DCGM_FI_PROF_*), which only one
    exporter on a node can read (aws-observability/helm-charts, dcgm-exporter's ConfigMap).
    """
    kubernetes = {"enhanced_container_insights": True, "kueue_container_insights": True}
    return {"agent": {"config": {"logs": {"metrics_collected": {"kubernetes": kubernetes}}}}}


def hyperpod_values(
    metrics: MetricsProvider, *, endpoint: str, workspace_arn: str, grafana_name: str | None, grafana_arn: str | None
) -> dict[str, Any]:
    """Return the configuration of the HyperPod observability add-on (SageMaker developer guide).

    endpoint: as AMP returns it, with a trailing slash; the add-on appends `/api/v1/remote_write`.
    """
    values: dict[str, Any] = {
        "ampWorkspace": {"prometheusEndpoint": endpoint.rstrip("/"), "arn": workspace_arn},
        "metricsProvider": metrics.model_dump(by_alias=True, exclude_none=True),
    }
    if grafana_arn is not None:
        values["amgWorkspace"] = {"workspaceName": grafana_name, "arn": grafana_arn}
    return values


_HYPERPOD = "amazon-sagemaker-hyperpod-observability"
# Up to version 10, a workspace has classic alerting unless the other kind is requested. With AWS's default for plugins,
# which it returns: without it, each refresh would show a difference (terraform-provider-aws, issue 34417).
_WITH_ALERTING = {"plugins": {"pluginAdminEnabled": False}, "unifiedAlerting": {"enabled": True}}


class Observability(Component):
    """Workspaces of one environment, and their data for add-ons.

    values and policies: configuration of the add-ons that send metrics, and permissions of their pods, by add-on. kept:
    IDs of what must not be lost, by name in `allowReplace`.
    """

    values: Mapping[str, pulumi.Input[Mapping[str, Any]]]
    policies: Mapping[str, pulumi.Output[str]]
    kept: Mapping[str, pulumi.Output[str]]

    def __init__(
        self, name: str, plan: Plan, spec: Spec, context: DeployContext, *, opts: pulumi.ResourceOptions
    ) -> None:
        super().__init__(name, opts=opts)
        self._plan, self._context = plan, context
        # Declared here, because Pulumi imports the types that a class declares.
        self.workspace: aws.amp.Workspace | None = None
        self.grafana: aws.grafana.Workspace | None = None
        values: dict[str, pulumi.Input[Mapping[str, Any]]] = {}
        policies: dict[str, pulumi.Output[str]] = {}
        if spec.cloudwatch:
            values[CLOUDWATCH] = _cloudwatch_values()
        if spec.prometheus:
            self.workspace = self._prometheus()
        if spec.alerts is not None and (self.workspace is not None or spec.alerts.events is not None):
            self._notify(spec.alerts)
        if spec.grafana:
            self.grafana = self._grafana()
            for role, users in sorted(spec.grafana_roles.items()):
                aws.grafana.RoleAssociation(
                    role.lower(),
                    workspace_id=self.grafana.id,
                    role=role,
                    user_ids=sorted(users.user_ids) or None,
                    group_ids=sorted(users.group_ids) or None,
                    # An update of this type only adds users and groups; only its deletion revokes the role of others
                    # (terraform-provider-aws 6.58.0, grafana/resourceRoleAssociationUpsert).
                    opts=self.child(replace_on_changes=["userIds", "groupIds"], delete_before_replace=True),
                )
        if self.workspace is not None:
            values[_HYPERPOD] = self._hyperpod_values(self.workspace, spec.metrics_provider)
            policies[_HYPERPOD] = document("metrics", context.account, workspace=self.workspace.arn)
        self.values, self.policies = values, policies
        made = {"prometheus": self.workspace, "grafana": self.grafana}
        self.kept = {name: each.id for name, each in made.items() if each is not None}
        self.register_outputs({})

    def _prometheus(self) -> aws.amp.Workspace:
        workspace = aws.amp.Workspace(
            "prometheus", alias=self._plan.stack, opts=self.child(protect=kept(self._plan, "prometheus"))
        )
        aws.amp.RuleGroupNamespace(
            "alerts",
            name="hpkit",
            workspace_id=workspace.id,
            # JSON is YAML, and the same text on every run.
            data=json.dumps(alert_rules(self._plan), sort_keys=True, indent=1),
            opts=self.child(),
        )
        return workspace

    def _notify(self, spec: Alerts) -> None:
        topic_arn = spec.sns_topic_arn or self._topic(spec).arn
        if self.workspace is not None:
            aws.amp.AlertManagerDefinition(
                "alerts",
                workspace_id=self.workspace.id,
                definition=pulumi.Output.from_input(topic_arn).apply(lambda arn: _alert_manager(self._plan, arn)),
                opts=self.child(),
            )
        if spec.events is not None:
            self._report(spec.events, topic_arn)

    def _report(self, events: ClusterEvents, topic_arn: pulumi.Input[str]) -> None:
        for purpose, pattern in _event_patterns(self._plan, events).items():
            rule = aws.cloudwatch.EventRule(
                purpose,
                name=event_rule_name(self._plan, purpose),
                event_pattern=pattern,
                state="ENABLED",
                opts=self.child(),
            )
            aws.cloudwatch.EventTarget(purpose, rule=rule.name, arn=topic_arn, target_id="alerts", opts=self.child())

    def _topic(self, spec: Alerts) -> aws.sns.Topic:
        account, name = self._context.account, topic_name(self._plan)
        topic_arn = account.arn("sns", name)
        topic = aws.sns.Topic(
            "alerts",
            name=name,
            policy=document(
                topic_policy,
                account,
                topic_arn=topic_arn,
                events=spec.events is not None,
                workspace_arn=None if self.workspace is None else self.workspace.arn,
            ),
            opts=self.child(),
        )
        for email in sorted(set(spec.emails)):
            aws.sns.TopicSubscription(email, topic=topic.arn, protocol="email", endpoint=email, opts=self.child())
        return topic

    def _grafana(self) -> aws.grafana.Workspace:
        account = self._context.account
        roles = Roles(self, self._plan, account)
        trust = document("service-trust-from-account", account, service="grafana.amazonaws.com")
        role = roles.make("grafana", trust=trust, description="Managed Grafana reads metrics")
        policy = document(
            "grafana",
            account,
            eks=self._plan.eks_name,
            workspace=None if self.workspace is None else self.workspace.arn,
            listed=None if self.workspace is None else "*",
            topic=grafana_topic_arn(self._plan, account.id),
        )
        roles.allow(role, "grafana", policy)
        spec = self._plan.spec.observability
        alerts = spec is not None and spec.grafana_alerts is not None
        return aws.grafana.Workspace(
            "grafana",
            name=self._plan.stack,
            account_access_type="CURRENT_ACCOUNT",
            authentication_providers=["AWS_SSO"],
            permission_type="CUSTOMER_MANAGED",
            # In alphabetical order, because the list is compared in the order of AWS's response.
            data_sources=["CLOUDWATCH", "PROMETHEUS"],
            notification_destinations=["SNS"] if alerts else None,
            configuration=json.dumps(_WITH_ALERTING) if alerts else None,
            role_arn=role.arn,
            opts=self.child(protect=kept(self._plan, "grafana")),
        )

    def _hyperpod_values(self, workspace: aws.amp.Workspace, metrics: MetricsProvider) -> pulumi.Output[dict[str, Any]]:
        values: dict[str, pulumi.Input[Any]] = {
            "endpoint": workspace.prometheus_endpoint,
            "workspace_arn": workspace.arn,
            "grafana_name": self.grafana.name if self.grafana else None,
            "grafana_arn": self.grafana.arn if self.grafana else None,
        }
        return pulumi.Output.all(**values).apply(lambda now: hyperpod_values(metrics, **now))

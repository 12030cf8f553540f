"""Metrics: CloudWatch with Kueue metrics, Managed Prometheus with alerts, Managed Grafana with its users.

It also has the EventBridge rules that send events of the cluster to the topic of alerts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pulumi
import pulumi_aws as aws

from hpkit.config.models.observability import Alerts, ClusterEvents, MetricsProvider
from hpkit.config.models.observability import Observability as Spec
from hpkit.plan.model import Plan
from hpkit.plan.names import event_rule_name, grafana_topic_arn, topic_name
from hpkit.plan.protected import kept
from hpkit.program.components.access.roles import Roles
from hpkit.program.components.addons.alerts import alert_manager, alert_rules, event_patterns
from hpkit.program.components.addons.values import cloudwatch_values, hyperpod_values
from hpkit.program.components.common.base import Component, DeployContext, document
from hpkit.program.iam.documents import grafana_policy, metrics_policy, service_trust, topic_policy

__all__ = ["Observability"]

_CLOUDWATCH = "amazon-cloudwatch-observability"
_HYPERPOD = "amazon-sagemaker-hyperpod-observability"
# Up to version 10, a workspace has classic alerting unless the other kind is requested. With AWS's default for plugins,
# which it returns: without it, each refresh would show a difference (terraform-provider-aws, issue 34417).
_WITH_ALERTING = {"plugins": {"pluginAdminEnabled": False}, "unifiedAlerting": {"enabled": True}}


class Observability(Component):
    """Workspaces of one environment, and their data for add-ons.

    values and policies: configuration of the add-ons that send metrics, and permissions of their pods, by add-on. kept:
    IDs of what must not be lost, by name in `allowReplace`.
    """

    workspace: aws.amp.Workspace | None = None
    grafana: aws.grafana.Workspace | None = None
    values: Mapping[str, pulumi.Input[Mapping[str, Any]]]
    policies: Mapping[str, pulumi.Output[str]]
    kept: Mapping[str, pulumi.Output[str]]

    def __init__(
        self, name: str, plan: Plan, spec: Spec, context: DeployContext, *, opts: pulumi.ResourceOptions
    ) -> None:
        super().__init__(name, opts=opts)
        self._plan, self._context = plan, context
        values: dict[str, pulumi.Input[Mapping[str, Any]]] = {}
        policies: dict[str, pulumi.Output[str]] = {}
        if spec.cloudwatch:
            values[_CLOUDWATCH] = cloudwatch_values(accelerators=not spec.prometheus)
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
            policies[_HYPERPOD] = document(
                lambda workspace_arn: metrics_policy(context.account, workspace_arn), workspace_arn=self.workspace.arn
            )
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
                definition=pulumi.Output.from_input(topic_arn).apply(lambda arn: alert_manager(self._plan, arn)),
                opts=self.child(),
            )
        if spec.events is not None:
            self._report(spec.events, topic_arn)

    def _report(self, events: ClusterEvents, topic_arn: pulumi.Input[str]) -> None:
        for purpose, pattern in event_patterns(self._plan, events).items():
            rule = aws.cloudwatch.EventRule(
                purpose,
                name=event_rule_name(self._plan, purpose),
                event_pattern=pattern,
                state="ENABLED",
                opts=self.child(),
            )
            aws.cloudwatch.EventTarget(purpose, rule=rule.name, arn=topic_arn, target_id="alerts", opts=self.child())

    def _topic(self, spec: Alerts) -> aws.sns.Topic:
        account, name = self._context.account, topic_name(self._plan, "alerts")
        topic_arn, events = account.arn("sns", name), spec.events is not None
        topic = aws.sns.Topic(
            "alerts",
            name=name,
            policy=document(
                lambda workspace_arn: topic_policy(
                    account, topic_arn=topic_arn, workspace_arn=workspace_arn, events=events
                ),
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
        trust = service_trust(account, "grafana.amazonaws.com")
        role = roles.make("grafana", trust=trust, description="Managed Grafana reads metrics")
        policy = document(
            lambda workspace_arn: grafana_policy(
                account,
                eks=self._plan.eks_name,
                workspace_arn=workspace_arn,
                topic_arn=grafana_topic_arn(self._plan, account.id),
            ),
            workspace_arn=None if self.workspace is None else self.workspace.arn,
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

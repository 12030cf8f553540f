"""OBS: metrics, dashboards and alerts."""

from collections.abc import Iterator

from hpkit.catalog import PLACEHOLDER_ACCOUNTS, find_instance_type, grafana_regions
from hpkit.checks.rule import Context, Issue, Rule
from hpkit.config.models.observability import Observability
from hpkit.config.reading.document import Path
from hpkit.text.formatting import listing

__all__ = ["RULES"]

_PROMETHEUS = "Amazon Managed Service for Prometheus user guide, alert manager"
_EVENTS = "Amazon EventBridge user guide, event bus targets"
_GRAFANA = "Amazon Managed Grafana user guide, users and permissions"
_REGIONS = "Amazon Managed Grafana user guide, supported Regions"
_METRICS = "SageMaker HyperPod developer guide, cluster metrics"
_CONTRACT = "hpkit configuration reference"


def _spec(context: Context) -> tuple[Observability, Path]:
    return context.spec.observability or Observability(), (*context.path, "observability")


def _one_receiver(context: Context) -> Iterator[Issue]:
    spec, path = _spec(context)
    alerts = spec.alerts
    if alerts is not None and bool(alerts.emails) == (alerts.sns_topic_arn is not None):
        recipients = "emails and snsTopicArn together" if alerts.emails else "neither emails nor snsTopicArn"
        yield Issue(
            (*path, "alerts"),
            f"`alerts` has {recipients}; alerts need exactly one of them",
            "Set `emails` to have hpkit create a topic, or `snsTopicArn` to use an existing one.",
        )


def _does_nothing(context: Context) -> Iterator[Issue]:
    spec, path = _spec(context)
    without = (
        ("alerts", spec.alerts is not None and spec.alerts.events is None, "prometheus", spec.prometheus),
        ("metricsProvider", "metrics_provider" in spec.model_fields_set, "prometheus", spec.prometheus),
        ("grafanaRoles", bool(spec.grafana_roles), "grafana", spec.grafana),
        ("grafanaDashboards", "grafana_dashboards" in spec.model_fields_set, "prometheus", spec.prometheus),
        ("grafanaAlerts", spec.grafana_alerts is not None, "prometheus", spec.prometheus),
    )
    for key, stated, needed, there in without:
        if stated and not there:
            yield Issue(
                (*path, key),
                f"{key} has no effect without {needed}",
                f"Add `{needed}: true` alongside {key}, or remove {key}.",
            )
    types = {name for _, group in context.groups for name in group.types}
    instances = [find_instance_type(name) for name in types]
    if spec.metrics_provider.network_metrics and all(each and each.efa_interfaces == 0 for each in instances):
        yield Issue(
            (*path, "metricsProvider", "networkMetrics"),
            "networkMetrics has no effect: it measures EFA, and no instance type here has EFA "
            f"({listing(sorted(types))})",
            "Remove networkMetrics.",
        )


def _recipients(context: Context) -> Iterator[Issue]:
    spec, path = _spec(context)
    if spec.prometheus and spec.alerts is None and spec.grafana_alerts is None:
        yield Issue(
            (*path, "prometheus"),
            "Managed Prometheus has alert rules, but no receiver for its notifications",
            "Add a receiver: `alerts: {emails: [...]}`, or your own topic, `alerts: {snsTopicArn: ...}`.",
            "warning",
        )


def _selected(context: Context) -> Iterator[Issue]:
    spec, path = _spec(context)
    events = spec.alerts.events if spec.alerts else None
    if events is not None and not (events.statuses or events.node_health or events.levels):
        yield Issue(
            (*path, "alerts", "events"),
            "`events` selects no events: statuses and levels are empty, and nodeHealth is false",
            "Remove `events`, or remove one of these keys to use its default.",
        )


def _own_topic(context: Context) -> Iterator[Issue]:
    spec, path = _spec(context)
    if spec.alerts is None or spec.alerts.sns_topic_arn is None:
        return
    region, account = spec.alerts.sns_topic_arn.split(":")[3:5]
    if context.spec.account is not None and account not in (context.spec.account, *PLACEHOLDER_ACCOUNTS):
        yield Issue(
            (*path, "alerts", "snsTopicArn"),
            f"the topic is in account {account}, but `{context.environment}` is in {context.spec.account}; Managed "
            "Prometheus and EventBridge only notify topics in their own account",
            f"Use a topic in account {context.spec.account}. It can forward notifications to others.",
        )
    if spec.alerts.events and region != context.spec.region:
        yield Issue(
            (*path, "alerts", "snsTopicArn"),
            f"the topic is in {region}, but `{context.environment}` is in {context.spec.region}; EventBridge sends "
            "events only to topics in its own region",
            f"Use a topic in {context.spec.region}, or remove `events`.",
        )


def _has_users(context: Context) -> Iterator[Issue]:
    spec, path = _spec(context)
    for role, users in sorted(spec.grafana_roles.items()):
        if not (users.user_ids or users.group_ids):
            yield Issue(
                (*path, "grafanaRoles", role),
                f"the Grafana role {role} has neither a user nor a group",
                f"Remove {role}, or add a group: `{role}: {{groupIds: [...]}}` (`aws identitystore list-groups` "
                "prints the IDs).",
            )


def _signs_in(context: Context) -> Iterator[Issue]:
    spec, path = _spec(context)
    if spec.grafana and "ADMIN" not in spec.grafana_roles:
        yield Issue(
            (*path, "grafana"),
            "Grafana has no ADMIN, so no one can add its data sources and dashboards",
            "Add a user or group of IAM Identity Center: `grafanaRoles: {ADMIN: {groupIds: [...]}}` (`aws "
            "identitystore list-groups` prints the IDs).",
            "warning",
        )


def _offered(context: Context) -> Iterator[Issue]:
    spec, path = _spec(context)
    if spec.grafana and context.spec.region not in grafana_regions():
        yield Issue(
            (*path, "grafana"),
            f"Managed Grafana isn't available in {context.spec.region} (available: "
            f"{listing(list(grafana_regions()), 20)})",
            "Remove `grafana`. A workspace in another region can read this region's Managed Prometheus.",
        )


def _measured(context: Context) -> Iterator[Issue]:
    spec, path = _spec(context)
    if spec.prometheus and spec.metrics_provider.task_governance_metrics.level == "DISABLED":
        yield Issue(
            (*path, "metricsProvider", "taskGovernanceMetrics", "level"),
            "Kueue's metrics aren't collected, and all alert rules are based on them, so no alert can fire",
            "Set `level: ADVANCED`, or remove taskGovernanceMetrics.",
        )


def _dashboards(context: Context) -> Iterator[Issue]:
    spec, path = _spec(context)
    if spec.grafana and not spec.prometheus:
        yield Issue(
            (*path, "grafana"),
            "`grafana` requires `prometheus`, which stores the metrics of HyperPod and Kueue that its dashboards show",
            "Set `prometheus: true`, or remove `grafana`.",
        )


def _has_topic(context: Context) -> Iterator[Issue]:
    spec, path = _spec(context)
    if spec.grafana_alerts is not None and spec.grafana_alerts.sns_topic_arn is None and spec.alerts is None:
        yield Issue(
            (*path, "grafanaAlerts"),
            "Grafana's alert rules have no topic: neither grafanaAlerts.snsTopicArn nor alerts is set",
            "Add an existing topic: `grafanaAlerts: {snsTopicArn: ...}`.",
        )


def _known_teams(context: Context) -> Iterator[Issue]:
    spec, path = _spec(context)
    team_names = [team.name for team in context.plan.teams if not team.is_shared_pool]
    for index, name in enumerate(spec.grafana_dashboards.teams or ()):
        if name not in team_names:
            yield Issue(
                (*path, "grafanaDashboards", "teams", index),
                f"team `{name}` has no quota in `{context.environment}`",
                f"Use one of {listing(team_names, len(team_names))}."
                if team_names
                else "Remove it: no team has quota here.",
            )


def _told_by_prometheus(context: Context) -> Iterator[Issue]:
    spec, path = _spec(context)
    alerts = spec.grafana_alerts
    if spec.alerts is None or alerts is None:
        return
    for key, field in (("waitingMinutes", "waiting_minutes"), ("preemptionsPerHour", "preemptions_per_hour")):
        if field in alerts.model_fields_set:
            yield Issue(
                (*path, "grafanaAlerts", key),
                f"{key} has no effect: Managed Prometheus alerts on waits and preemptions, with its own limits",
                f"Remove {key}. To let only Grafana send these alerts, remove `alerts` and set "
                "grafanaAlerts.snsTopicArn.",
            )


RULES = (
    Rule(
        "OBS001",
        "error",
        "Alerts have one receiver: emails or a topic.",
        f"{_CONTRACT}; {_PROMETHEUS}",
        _one_receiver,
        _recipients,
        _has_topic,
    ),
    Rule(
        "OBS002",
        "warning",
        "Observability keys have an effect.",
        f"{_CONTRACT}; {_METRICS}",
        _does_nothing,
        _selected,
        _measured,
        _dashboards,
        _told_by_prometheus,
    ),
    Rule(
        "OBS004",
        "error",
        "Grafana has an administrator, and each of its roles a user or a group.",
        _GRAFANA,
        _signs_in,
        _has_users,
    ),
    Rule("OBS005", "error", "Managed Grafana is available in the region.", _REGIONS, _offered),
    Rule("OBS009", "error", "Teams with a dashboard have quota in the environment.", _CONTRACT, _known_teams),
    Rule(
        "OBS020",
        "error",
        "The topic of alerts is in the environment's account, and that of events in its region.",
        f"{_PROMETHEUS}; {_EVENTS}",
        _own_topic,
    ),
)

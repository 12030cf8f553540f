"""Observability: what is measured, where it goes, who sees it, and who is told.

Sources of the levels: SageMaker HyperPod developer guide, "SageMaker HyperPod cluster metrics" (which categories are
on, and which have advanced metrics); aws/sagemaker-hyperpod-cluster-setup, observability-template.yaml (what each
takes).
"""

from typing import Annotated, Literal

from pydantic import Field

from hpkit.config.base import Model

__all__ = [
    "AdvancedMetrics",
    "Alerts",
    "BasicMetrics",
    "GrafanaAlerts",
    "GrafanaDashboards",
    "GrafanaUsers",
    "Metrics",
    "MetricsProvider",
    "Observability",
]

_TOPIC = r"^arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,256}$"


class Metrics(Model):
    """Metrics of a kind that is collected always."""

    level: Literal["BASIC", "ADVANCED"] = Field(description="How much is collected.")
    scrape_interval: int | None = Field(default=None, ge=1, description="Seconds between two readings.")


class BasicMetrics(Model):
    """Metrics of a kind that has no advanced ones."""

    level: Literal["BASIC"] = Field(default="BASIC", description="How much is collected.")
    scrape_interval: int | None = Field(default=None, ge=1, description="Seconds between two readings.")


class AdvancedMetrics(Model):
    """Metrics of a kind that is off unless all of it is asked for."""

    level: Literal["ADVANCED", "DISABLED"] = Field(description="Whether it is collected.")
    scrape_interval: int | None = Field(default=None, ge=1, description="Seconds between two readings.")


class MetricsProvider(Model):
    """What the HyperPod observability add-on collects; absent kinds stay as the add-on has them."""

    training_metrics: Metrics | None = Field(default=None, description="Training jobs.")
    inference_metrics: BasicMetrics | None = Field(default=None, description="Inference endpoints.")
    task_governance_metrics: AdvancedMetrics = Field(
        default=AdvancedMetrics(level="ADVANCED"),
        description="Queues, quotas, borrowing: Kueue's, which the alert rules are about.",
    )
    scaling_metrics: AdvancedMetrics | None = Field(default=None, description="KEDA.")
    cluster_metrics: Metrics | None = Field(default=None, description="Kubernetes API server and kube-state-metrics.")
    custom_metrics: Metrics | None = Field(
        default=None, description="The same in versions of the add-on that have no `clusterMetrics`."
    )
    node_metrics: Metrics | None = Field(default=None, description="Nodes.")
    accelerated_compute_metrics: Metrics | None = Field(default=None, description="GPUs and Trainium.")
    network_metrics: AdvancedMetrics | None = Field(default=None, description="EFA.")
    ray_metrics: AdvancedMetrics | None = Field(default=None, description="Ray; newer versions of the add-on.")


class Alerts(Model):
    """Whom the alert rules of Managed Prometheus notify, by Amazon SNS: emails, or a topic that is there already."""

    emails: tuple[Annotated[str, Field(pattern=r"^[^@\s]+@[^@\s]+$", max_length=320)], ...] = Field(
        default=(), description="Who gets them, each once its address is confirmed by the link that AWS sends."
    )
    sns_topic_arn: str | None = Field(
        default=None,
        pattern=_TOPIC,
        description="A standard topic that is there already. Its policy has to let aps.amazonaws.com publish.",
    )


class GrafanaUsers(Model):
    """Who has one role in the Grafana workspace: users and groups of IAM Identity Center."""

    user_ids: tuple[Annotated[str, Field(min_length=1, max_length=47)], ...] = Field(
        default=(), description="User ids (`aws identitystore list-users`)."
    )
    group_ids: tuple[Annotated[str, Field(min_length=1, max_length=47)], ...] = Field(
        default=(), description="Group ids (`aws identitystore list-groups`)."
    )


class GrafanaDashboards(Model):
    """Which dashboards `hpkit grafana apply` makes beside those of the whole cluster."""

    teams: tuple[str, ...] | None = Field(
        default=None, description="Teams that have a dashboard of their own; absent = every team with quota."
    )


class GrafanaAlerts(Model):
    """Alert rules that Grafana evaluates, and the topic that it notifies; `hpkit grafana apply` makes them.

    Those about waits and preemptions are left out where `alerts` has Managed Prometheus tell of these.
    """

    sns_topic_arn: str | None = Field(
        default=None,
        pattern=_TOPIC,
        description="A topic that is there already; the workspace's role may publish to it. Absent = that of `alerts`.",
    )
    waiting_minutes: int = Field(
        default=30, ge=1, le=1440, description="How long a team's work may wait while the team is below its guarantee."
    )
    preemptions_per_hour: int = Field(
        default=10, ge=1, description="How many preemptions for one team in an hour are too many."
    )
    gpu_temperature: int = Field(default=85, ge=30, le=120, description="Above this a GPU is too hot.")
    idle_gpu_percent: int = Field(
        default=5, ge=1, le=100, description="A team's GPUs in use that are less busy than this, on average, are idle."
    )
    idle_gpu_hours: int = Field(default=2, ge=1, le=24, description="How long they may be.")
    unhealthy_node_minutes: int = Field(
        default=15, ge=1, le=1440, description="How long a node may be other than Schedulable."
    )


class Observability(Model):
    """What is measured, and where it goes."""

    cloudwatch: bool = Field(default=False, description="CloudWatch add-on with Kueue metrics.")
    prometheus: bool = Field(default=False, description="Amazon Managed Service for Prometheus.")
    grafana: bool = Field(
        default=False, description="Amazon Managed Grafana. Its users are those of IAM Identity Center, which it needs."
    )
    grafana_roles: dict[Literal["ADMIN", "EDITOR", "VIEWER"], GrafanaUsers] = Field(
        default={}, description="Role in Grafana → who has it. Without an ADMIN nobody can set it up."
    )
    alerts: Alerts | None = Field(default=None, description="Whom alerts notify; absent = nobody.")
    grafana_dashboards: GrafanaDashboards = Field(
        default=GrafanaDashboards(), description="Dashboards of `hpkit grafana apply`."
    )
    grafana_alerts: GrafanaAlerts | None = Field(
        default=None, description="Alert rules of `hpkit grafana apply`; absent = none."
    )
    metrics_provider: MetricsProvider = Field(
        default=MetricsProvider(), description="What the HyperPod observability add-on collects for Prometheus."
    )

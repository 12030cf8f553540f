"""Observability: metrics, their destination, their users, and recipients of alerts.

Sources of the levels:
- SageMaker HyperPod developer guide, "SageMaker HyperPod cluster metrics" (which categories are on, and which have
  advanced metrics).
- aws/sagemaker-hyperpod-cluster-setup, observability-template.yaml (accepted values).
- SageMaker AI developer guide, "SageMaker HyperPod cluster events reference" (levels of events).
"""

from typing import Annotated, Literal

from pydantic import Field

from hpkit.config.models.base import Api, Model, amount

__all__ = [
    "AdvancedMetrics",
    "Alerts",
    "BasicMetrics",
    "ClusterEvents",
    "GrafanaAlerts",
    "GrafanaDashboards",
    "GrafanaUsers",
    "Metrics",
    "MetricsProvider",
    "Observability",
]

# IAM Identity Center, Identity Store API: ResourceId.
IDENTITY_PATTERN = r"^(?:[0-9a-f]{10}-)?[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$"
_TOPIC = r"^arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,256}$"


class Metrics(Model):
    """Metrics that are always collected."""

    level: Literal["BASIC", "ADVANCED"] = Field(description="Level of detail.")
    scrape_interval: int | None = amount("Seconds between readings.", unit="seconds", default=None, example=30, ge=1)


class BasicMetrics(Model):
    """Metrics without an advanced level."""

    level: Literal["BASIC"] = Field(default="BASIC", description="Level of detail.")
    scrape_interval: int | None = amount("Seconds between readings.", unit="seconds", default=None, example=30, ge=1)


class AdvancedMetrics(Model):
    """Metrics that are off by default."""

    level: Literal["ADVANCED", "DISABLED"] = Field(description="ADVANCED collects it; DISABLED doesn't.")
    scrape_interval: int | None = amount("Seconds between readings.", unit="seconds", default=None, example=30, ge=1)


class MetricsProvider(Model):
    """Metrics of the HyperPod observability add-on. Kinds that aren't set keep the add-on's defaults."""

    training_metrics: Metrics | None = Field(default=None, description="Training jobs.")
    inference_metrics: BasicMetrics | None = Field(default=None, description="Inference endpoints.")
    task_governance_metrics: AdvancedMetrics = Field(
        default=AdvancedMetrics(level="ADVANCED"),
        description="Kueue's queues, quotas and borrowing; required by the alert rules.",
    )
    scaling_metrics: AdvancedMetrics | None = Field(default=None, description="KEDA.")
    cluster_metrics: Metrics | None = Field(default=None, description="Kubernetes API server and kube-state-metrics.")
    custom_metrics: Metrics | None = Field(
        default=None, description="The same as `clusterMetrics`, for add-on versions that don't support it."
    )
    node_metrics: Metrics | None = Field(default=None, description="Nodes.")
    accelerated_compute_metrics: Metrics | None = Field(default=None, description="GPUs and Trainium.")
    network_metrics: AdvancedMetrics | None = Field(default=None, description="EFA.")
    ray_metrics: AdvancedMetrics | None = Field(
        default=None, description="Ray. Requires a newer version of the add-on."
    )


_Status = Literal["Creating", "Deleting", "Failed", "InService", "RollingBack", "SystemUpdating", "Updating"]


class ClusterEvents(Model):
    """Events of the HyperPod cluster that Amazon EventBridge sends as JSON to the topic of `alerts`."""

    statuses: tuple[Annotated[_Status, Api("ClusterStatus")], ...] = Field(
        default=("Failed", "RollingBack"),
        description="Statuses of the cluster to report. `[]` reports none.",
        examples=["Failed"],
    )
    node_health: bool = Field(default=True, description="Report nodes that become unhealthy, and those that recover.")
    levels: tuple[Annotated[Literal["Info", "Warn", "Error"], Api("ClusterEventLevel")], ...] = Field(
        default=("Error",),
        description="Levels of provisioning, scaling and patching events to report. `[]` reports none.",
        examples=["Error"],
    )


class Alerts(Model):
    """Recipients of alerts: emails, or an existing SNS topic. Managed Prometheus and EventBridge send them."""

    emails: tuple[Annotated[str, Field(pattern=r"^[^@\s]+@[^@\s]+$", max_length=320)], ...] = Field(
        default=(),
        description="Recipients. Each must confirm the link that AWS sends.",
        examples=["ml-platform@example.com"],
    )
    sns_topic_arn: str | None = Field(
        default=None,
        pattern=_TOPIC,
        description="Existing standard topic. Its policy must allow aps.amazonaws.com to publish, and, for `events`, "
        "events.amazonaws.com.",
        examples=["arn:aws:sns:us-west-2:123456789012:ml-platform"],
    )
    events: ClusterEvents | None = Field(
        default=None, description="Events of the cluster and its nodes to send. Default: none."
    )


class GrafanaUsers(Model):
    """Users and groups of IAM Identity Center with a role in Grafana."""

    user_ids: tuple[Annotated[str, Field(pattern=IDENTITY_PATTERN)], ...] = Field(
        default=(),
        description="User IDs (`aws identitystore list-users`).",
        examples=["94482488-3041-7026-18ce-1a1e3c0a2f43"],
    )
    group_ids: tuple[Annotated[str, Field(pattern=IDENTITY_PATTERN)], ...] = Field(
        default=(),
        description="Group IDs (`aws identitystore list-groups`).",
        examples=["94482488-3041-7026-18ce-1a1e3c0a2f43"],
    )


class GrafanaDashboards(Model):
    """Team dashboards that `hpkit cluster grafana export` writes in addition to the cluster's."""

    teams: tuple[str, ...] | None = Field(
        default=None, description="Teams with their own dashboard. Default: all teams with quota.", examples=["john"]
    )


class GrafanaAlerts(Model):
    """Alert rules that Grafana evaluates, and their topic; `hpkit cluster grafana export` writes them.

    Alerts about waits and preemptions are omitted if `alerts` is set, because Managed Prometheus sends them.
    """

    sns_topic_arn: str | None = Field(
        default=None,
        pattern=_TOPIC,
        description="Existing topic that the workspace's role may publish to. Default: that of `alerts`.",
        examples=["arn:aws:sns:us-west-2:123456789012:ml-platform"],
    )
    waiting_minutes: int = amount(
        "Minutes that a task may wait while its team uses less than its quota.",
        unit="minutes",
        default=30,
        ge=1,
        le=1440,
    )
    preemptions_per_hour: int = amount(
        "Preemptions per team and hour that raise an alert.", unit="preemptions an hour", default=10, ge=1
    )
    gpu_temperature: int = amount(
        "Degrees Celsius above which a GPU is too hot.", unit="degrees Celsius", default=85, ge=30, le=120
    )
    idle_gpu_percent: int = amount(
        "Average use below which a team's GPUs count as idle.", unit="percent of a GPU's time", default=5, ge=1, le=100
    )
    idle_gpu_hours: int = amount("Hours that GPUs may be idle.", unit="hours", default=2, ge=1, le=24)
    unhealthy_node_minutes: int = amount(
        "Minutes that a node may be in a state other than Schedulable.", unit="minutes", default=15, ge=1, le=1440
    )


class Observability(Model):
    """Metrics, dashboards and alerts."""

    cloudwatch: bool = Field(
        default=True,
        description="CloudWatch add-on with metrics of Kueue, GPUs and Trainium, which the task dashboard of the "
        "SageMaker console shows. CloudWatch charges for metrics and logs.",
    )
    prometheus: bool = Field(default=False, description="Amazon Managed Service for Prometheus.")
    grafana: bool = Field(
        default=False, description="Amazon Managed Grafana. Requires IAM Identity Center for its users."
    )
    grafana_roles: dict[Literal["ADMIN", "EDITOR", "VIEWER"], GrafanaUsers] = Field(
        default={},
        description="Users and groups of IAM Identity Center for each Grafana role. Setting up the workspace requires "
        "an ADMIN.",
    )
    alerts: Alerts | None = Field(default=None, description="Recipients of alerts. Default: none.")
    grafana_dashboards: GrafanaDashboards = Field(
        default=GrafanaDashboards(), description="Dashboards of `hpkit cluster grafana export`."
    )
    grafana_alerts: GrafanaAlerts | None = Field(
        default=None, description="Alert rules of `hpkit cluster grafana export`. Default: none."
    )
    metrics_provider: MetricsProvider = Field(
        default=MetricsProvider(), description="Metrics that the HyperPod observability add-on collects."
    )

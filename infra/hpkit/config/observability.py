"""Observability: what is measured, where it goes, who sees it, and who is told.

Sources of the levels: SageMaker HyperPod developer guide, "SageMaker HyperPod cluster metrics" (which categories are
on, and which have advanced metrics); aws/sagemaker-hyperpod-cluster-setup, observability-template.yaml (what each
takes).
"""

from typing import Annotated, Literal

from pydantic import Field

from hpkit.config.base import Model

__all__ = ["AdvancedMetrics", "Alerts", "BasicMetrics", "GrafanaUsers", "Metrics", "MetricsProvider", "Observability"]


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
        pattern=r"^arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,256}$",
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
    metrics_provider: MetricsProvider = Field(
        default=MetricsProvider(), description="What the HyperPod observability add-on collects for Prometheus."
    )

"""Configuration values of EKS add-ons: hpkit's own, overridden by the user's."""

from typing import Any

from hpkit.config.models.observability import MetricsProvider

__all__ = ["cloudwatch_values", "hyperpod_values"]


def cloudwatch_values(*, accelerators: bool) -> dict[str, Any]:
    """Return Container Insights with Kueue's metrics (Amazon CloudWatch user guide; add-on v2.4.0 or newer).

    accelerators: whether it measures them (same guide, "Opt out of accelerated compute metrics collection"). The
    HyperPod observability add-on always does, and two DCGM exporters on a node can't share the GPUs' profiling
    hardware (NVIDIA/dcgm-exporter issue 7).
    """
    kubernetes = {"enhanced_container_insights": True, "kueue_container_insights": True}
    if not accelerators:
        kubernetes["accelerated_compute_metrics"] = False
    return {"agent": {"config": {"logs": {"metrics_collected": {"kubernetes": kubernetes}}}}}


def hyperpod_values(
    metrics: MetricsProvider,
    *,
    endpoint: str,
    workspace_arn: str,
    grafana_name: str | None,
    grafana_arn: str | None,
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

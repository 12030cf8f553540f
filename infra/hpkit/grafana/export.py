"""The files of `hpkit cluster grafana export`: dashboards to import, and requests to Grafana's HTTP API.

Source: Grafana documentation, HTTP API (data source, folder, alerting provisioning), versions 10.4 and 12.4.
"""

from typing import Any

from hpkit.grafana.alerts import contact_point, rule_group
from hpkit.grafana.dashboards import DATA_SOURCE_NAME, dashboards
from hpkit.grafana.identity import uid_of
from hpkit.plan.model import Plan

__all__ = ["export_files"]


def export_files(plan: Plan, *, prometheus_url: str, topic_arn: str | None) -> dict[str, dict[str, Any]]:
    """Return the path of each file, and its content.

    prometheus_url: URL of the Prometheus workspace, without `/api`; topic_arn: the topic of alert rules, None if the
    stack has none.
    """
    folder = {"uid": uid_of(plan.stack, "folder"), "title": f"HyperPod {plan.stack}"}
    files = {"data-source.json": _data_source(plan, prometheus_url), "folder.json": folder}
    files |= {f"dashboards/{each['uid']}.json": each for each in dashboards(plan)}
    if topic_arn is not None:
        files |= {"contact-point.json": contact_point(plan, topic_arn), "alert-rules.json": rule_group(plan)}
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

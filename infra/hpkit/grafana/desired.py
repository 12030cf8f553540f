"""All objects of a stack in its Grafana workspace, as requests to Grafana's HTTP API."""

from dataclasses import dataclass
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from hpkit.grafana.alerts import alert_rules, contact_point, route
from hpkit.grafana.dashboards import DATA_SOURCE_NAME, dashboards
from hpkit.grafana.identity import uid_of
from hpkit.plan.model import Plan

__all__ = ["KINDS", "Desired", "GrafanaObject", "Kind", "desired"]

Kind = Literal["data source", "folder", "dashboard", "contact point", "alert rule"]
# In the order of their dependencies.
KINDS: Final[tuple[Kind, ...]] = ("data source", "folder", "dashboard", "contact point", "alert rule")


@dataclass(frozen=True, slots=True)
class GrafanaObject:
    """One object; body is the request to Grafana, and is compared with the existing object."""

    kind: Kind
    uid: str
    title: str
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Desired:
    """Objects in the order of their creation, and the branch of the notification policy, None without alerts."""

    objects: tuple[GrafanaObject, ...]
    route: dict[str, Any] | None


def desired(plan: Plan, *, prometheus_url: str, topic_arn: str | None) -> Desired:
    """Return the desired objects of a stack.

    prometheus_url: URL of the Managed Prometheus workspace, without `/api`; topic_arn: the topic of alert rules, None
    if the file has none.
    """
    folder, title = uid_of(plan.stack, "folder"), f"HyperPod {plan.stack}"
    rules = alert_rules(plan)
    objects: list[GrafanaObject] = [
        _data_source(plan, prometheus_url),
        GrafanaObject("folder", folder, title, {"uid": folder, "title": title}),
        *(GrafanaObject("dashboard", each["uid"], each["title"], each) for each in dashboards(plan)),
    ]
    if topic_arn is not None and rules:
        point = contact_point(plan, topic_arn)
        objects.append(GrafanaObject("contact point", point["uid"], point["name"], point))
        objects += [GrafanaObject("alert rule", each["uid"], each["title"], each) for each in rules]
        return Desired(tuple(objects), route(plan))
    return Desired(tuple(objects), None)


def _data_source(plan: Plan, prometheus_url: str) -> GrafanaObject:
    """Return Managed Prometheus as a data source: Grafana signs requests with the workspace's role.

    Grafana outside Amazon Managed Grafana signs with the credentials that the AWS SDK finds, if `sigv4_auth_enabled` is
    set. Source: Amazon Managed Grafana user guide, "Connect to Amazon Managed Service for Prometheus"; the data source
    that aws/sagemaker-hyperpod-cluster-setup creates; Grafana documentation, "Configure the Prometheus data source",
    SigV4.
    """
    spec = plan.spec.observability
    existing = spec.existing_grafana if spec is not None else None
    is_amazons = existing is None or ".grafana-workspace." in (urlsplit(existing.url).hostname or "")
    uid, region = uid_of(plan.stack, DATA_SOURCE_NAME), plan.spec.region
    body = {
        "uid": uid,
        "name": f"HyperPod {plan.stack}",
        "type": "prometheus",
        "access": "proxy",
        "url": prometheus_url.rstrip("/"),
        "jsonData": {
            "httpMethod": "POST",
            "sigV4Auth": True,
            "sigV4AuthType": "ec2_iam_role" if is_amazons else "default",
            "sigV4Region": region,
        },
    }
    return GrafanaObject("data source", uid, str(body["name"]), body)

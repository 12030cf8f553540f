"""A stack with Grafana, and its exported files."""

from hpkit.grafana.export import export_files
from hpkit.plan.derive import derive
from tests.builders import organization, team, typed

__all__ = ["TOPIC", "URL", "exported", "file_of", "plan_of", "scaling_plan_of"]

G5 = "ml.g5.12xlarge"
TOPIC = "arn:aws:sns:us-west-2:123456789012:ops"
URL = "https://aps-workspaces.us-west-2.amazonaws.com/workspaces/ws-1"


def file_of(*names, **observability):
    """Return an organization file's data with teams; observability in addition to Grafana and Prometheus."""
    names = names or ("ada", "bob")
    rows = {name: [{"instanceType": G5, "count": 2}] for name in names}
    given = {"prometheus": True, "grafana": True, "grafanaAlerts": {"snsTopicArn": TOPIC}, **observability}
    spec = {key: value for key, value in given.items() if value is not None}
    teams = [team(name) for name in names]
    return organization(teams=teams, allocations=rows, environment={"observability": spec})


def plan_of(*names, **observability):
    return derive(typed(file_of(*names, **observability)), "dev")


def scaling_plan_of(*names):
    """Return the plan of a stack with managed Karpenter, which has every dashboard."""
    data = file_of(*names)
    dev = data["environments"]["dev"]
    groups = [each["name"] for each in dev["cluster"]["instanceGroups"]]
    dev["autoscaling"] = {"nodeClasses": [{"name": "burst", "instanceGroups": groups[:1]}]}
    return derive(typed(data), "dev")


def exported(*names, topic_arn=TOPIC, **observability):
    return export_files(plan_of(*names, **observability), prometheus_url=URL, topic_arn=topic_arn)

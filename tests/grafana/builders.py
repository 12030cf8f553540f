"""A stack with Grafana, and what it wants of a workspace."""

from hpkit.grafana.desired import desired
from hpkit.plan.derive import derive
from tests.builders import organization, team, typed

__all__ = ["TOPIC", "URL", "file_of", "plan_of", "wanted_of"]

G5 = "ml.g5.12xlarge"
TOPIC = "arn:aws:sns:us-west-2:123456789012:ops"
URL = "https://aps-workspaces.us-west-2.amazonaws.com/workspaces/ws-1"


def file_of(*names, **observability):
    """Return an organization file's data with teams; observability beside Grafana and Prometheus."""
    names = names or ("ada", "bob")
    rows = {name: [{"instanceType": G5, "count": 2}] for name in names}
    given = {"prometheus": True, "grafana": True, "grafanaAlerts": {"snsTopicArn": TOPIC}, **observability}
    spec = {key: value for key, value in given.items() if value is not None}
    teams = [team(name) for name in names]
    return organization(teams=teams, allocations=rows, environment={"observability": spec})


def plan_of(*names, **observability):
    return derive(typed(file_of(*names, **observability)), "dev")


def wanted_of(*names, topic_arn=TOPIC, **observability):
    return desired(plan_of(*names, **observability), prometheus_url=URL, topic_arn=topic_arn)

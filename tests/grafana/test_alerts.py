"""Grafana's alert rules: which exist, when they fire, and where they are sent."""

from hpkit.grafana.alerts import STACK_LABEL, alert_rules, contact_point, route
from tests.grafana.builders import TOPIC, plan_of, wanted_of


def rules(**observability):
    return {each["title"]: each for each in alert_rules(plan_of(**observability))}


def expression(rule):
    return rule["data"][0]["model"]["expr"]


def test_a_file_that_asks_for_none_has_none():
    assert rules(grafanaAlerts=None) == {}
    wanted = wanted_of(grafanaAlerts=None, topic_arn=None)
    assert {each.kind for each in wanted.objects} == {"data source", "folder", "dashboard"}
    assert wanted.route is None


def test_of_waits_only_one_tells():
    both = rules(alerts={"emails": ["ops@example.com"]})
    assert rules().keys() - both.keys() == {
        "Kueue admits nothing",
        "Tasks wait although the team is below its guarantee",
        "A team preempts often",
    }
    assert "GPU is too hot" in both


def test_limits_are_those_of_the_file():
    alert_rules = rules(
        grafanaAlerts={
            "snsTopicArn": TOPIC,
            "waitingMinutes": 7,
            "preemptionsPerHour": 3,
            "gpuTemperature": 77,
            "idleGpuPercent": 20,
            "idleGpuHours": 4,
            "unhealthyNodeMinutes": 9,
        }
    )
    assert alert_rules["Tasks wait although the team is below its guarantee"]["for"] == "7m"
    assert expression(alert_rules["A team preempts often"]).endswith("> 3")
    assert expression(alert_rules["GPU is too hot"]).endswith("> 77")
    assert expression(alert_rules["Allocated GPUs are idle"]).endswith("> 80")
    assert alert_rules["Allocated GPUs are idle"]["for"] == "240m"
    assert alert_rules["Node is unhealthy"]["for"] == "9m"


def test_only_alerts_of_the_stack_take_its_branch():
    plan = plan_of()
    branch, point = route(plan), contact_point(plan, TOPIC)
    assert branch["object_matchers"] == [[STACK_LABEL, "=", "acme-dev"]]
    assert branch["receiver"] == point["name"]
    assert {each["labels"][STACK_LABEL] for each in alert_rules(plan)} == {"acme-dev"}
    assert point["settings"]["topic"] == TOPIC


def test_every_rule_is_decided_by_its_threshold_over_the_data_source_of_the_kit():
    source = next(each.uid for each in wanted_of().objects if each.kind == "data source")
    for rule in alert_rules(plan_of()):
        query, threshold = rule["data"]
        assert query["datasourceUid"] == source
        assert rule["condition"] == threshold["refId"]
        assert threshold["model"]["expression"] == query["refId"]

"""Grafana's alert rules: which exist, when they fire, and where they are sent."""

from hpkit.grafana.export import STACK_LABEL, alert_rules
from tests.grafana.builders import TOPIC, exported, plan_of


def rules(**observability):
    return {each["title"]: each for each in alert_rules(plan_of(**observability))}


def expression(rule):
    return rule["data"][0]["model"]["expr"]


def test_a_file_without_alerts_has_no_rules_and_no_contact_point():
    files = exported(grafanaAlerts=None, topic_arn=None)
    assert {name.partition("/")[0] for name in files} == {"data-source.json", "folder.json", "dashboards"}


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


def test_rules_have_a_label_of_the_stack_for_the_notification_policy():
    assert {each["labels"][STACK_LABEL] for each in alert_rules(plan_of())} == {"acme-dev"}


def test_the_contact_point_publishes_to_the_topic():
    assert exported()["contact-point.json"]["settings"]["topic"] == TOPIC


def test_every_rule_is_decided_by_its_threshold_over_the_data_source_of_the_kit():
    files = exported()
    source = files["data-source.json"]["uid"]
    for rule in files["alert-rules.json"]["rules"]:
        query, threshold = rule["data"]
        assert query["datasourceUid"] == source
        assert rule["condition"] == threshold["refId"]
        assert threshold["model"]["expression"] == query["refId"]

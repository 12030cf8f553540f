"""Alert rules: valid Prometheus expressions, with Kueue's metrics, for the team that they name."""

import re

from hpkit.catalog import metrics
from hpkit.plan.derive import derive
from hpkit.program.components.addons.observability import alert_rules
from tests.builders import organization, team, typed
from tests.grafana.expressions import selectors

G5 = "ml.g5.12xlarge"


def groups(*names, environment=None):
    rows = {name: [{"instanceType": G5, "count": 1}] for name in names}
    data = organization(teams=[team(name) for name in names], allocations=rows)
    if environment:
        data["environments"]["dev"]["governance"].update(environment)
    return alert_rules(derive(typed(data), "dev"))["groups"]


def rules(*names):
    return [rule for group in groups(*names) for rule in group["rules"]]


def test_every_expression_is_promql_over_metrics_and_labels_that_kueue_has():
    for rule in rules("ada", "team-with-a-long-name"):
        found = list(selectors(rule["expr"]))
        assert found, rule["expr"]
        for metric, labels in found:
            assert metric.startswith("kueue_"), rule["expr"]
            assert labels <= metrics()[metric].labels, rule["expr"]


def test_a_counter_is_only_read_as_a_rate_or_an_increase():
    for rule in rules("ada"):
        for match in re.finditer(r"kueue_[a-z_]+_total", rule["expr"]):
            before = rule["expr"][: match.start()]
            assert before.endswith(("rate(", "increase(")), rule["expr"]


def test_a_teams_alerts_are_about_its_own_queue_alone():
    for name, other in (("ada", "bob"), ("bob", "ada")):
        (group,) = [each for each in groups("ada", "bob") if each["name"] == f"team-{name}"]
        for rule in group["rules"]:
            assert f'"hyperpod-ns-{name}-clusterqueue"' in rule["expr"]
            assert f"hyperpod-ns-{other}" not in rule["expr"]


def test_there_is_a_group_of_the_cluster_and_one_a_team_and_none_of_the_shared_pool():
    names = [group["name"] for group in groups("ada", "bob", environment={"sharedPool": {"name": "shared"}})]
    assert names == ["cluster", "team-ada", "team-bob"]


def test_every_alert_says_how_bad_it_is_how_long_it_waits_and_what_it_means():
    for rule in rules("ada"):
        assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
        assert rule["labels"]["severity"] in {"warning", "critical"}
        assert re.fullmatch(r"[0-9]+m", rule["for"])
        assert rule["annotations"]["summary"].endswith(".")

"""Alert rules: expressions that Prometheus can read, over metrics that Kueue has, for the team that they name."""

import re

import pytest

from hpkit.components.alerts import alert_rules
from hpkit.plan.derive import derive
from tests.builders import organization, team, typed

G5 = "ml.g5.12xlarge"
# Kueue documentation, "Prometheus metrics": the name, and the labels that it has.
METRICS = {
    "kueue_pending_workloads": {"cluster_queue", "status"},
    "kueue_admission_attempts_total": {"result"},
    "kueue_cluster_queue_resource_usage": {"cohort", "cluster_queue", "flavor", "resource"},
    "kueue_cluster_queue_nominal_quota": {"cohort", "cluster_queue", "flavor", "resource"},
    "kueue_preempted_workloads_total": {"preempting_cluster_queue", "reason"},
}
PAIRS = {")": "(", "]": "[", "}": "{"}
SELECTOR = re.compile(r"(kueue_[a-z_]+)(?:\{([^}]*)\})?")
TEXT = re.compile(r'"[^"]*"')


def groups(*names, environment=None):
    rows = {name: [{"instanceType": G5, "count": 1}] for name in names}
    data = organization(teams=[team(name) for name in names], allocations=rows)
    if environment:
        data["environments"]["dev"]["governance"].update(environment)
    return alert_rules(derive(typed(data), "dev"))["groups"]


def rules(*names):
    return [rule for group in groups(*names) for rule in group["rules"]]


def is_balanced(expression):
    stack = []
    for character in TEXT.sub("", expression):
        if character in "([{":
            stack.append(character)
        elif character in PAIRS and (not stack or stack.pop() != PAIRS[character]):
            return False
    return not stack and expression.count('"') % 2 == 0


@pytest.mark.parametrize("wrong", ["sum(a", "sum(a]", "a{b}}", 'a{b="c}', ")("])
def test_the_bracket_check_sees_what_is_wrong(wrong):
    assert not is_balanced(wrong)


def test_every_expression_has_balanced_brackets_and_quotes():
    for rule in rules("ada", "team-with-a-long-name"):
        assert is_balanced(rule["expr"]), rule["expr"]


def test_every_expression_names_only_metrics_and_labels_that_kueue_has():
    for rule in rules("ada"):
        found = SELECTOR.findall(TEXT.sub('""', rule["expr"]))
        assert found, rule["expr"]
        for metric, selector in found:
            assert metric in METRICS, rule["expr"]
            labels = {pair.partition("=")[0] for pair in selector.split(",") if pair}
            assert labels <= METRICS[metric], rule["expr"]


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

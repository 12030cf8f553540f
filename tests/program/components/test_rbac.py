"""Permissions of data scientists, those that no rule may grant, and what a run reports about Kueue's configuration."""

import re
from itertools import product

import pulumi
import pytest

from hpkit.catalog import metrics
from hpkit.plan.derive import derive
from hpkit.plan.names import GROUP_PREFIX
from hpkit.plan.principals import groups_of
from hpkit.plan.team_limits import pod_limits
from hpkit.program.components.access.rbac import cluster_rules, team_rules, viewer_rules
from hpkit.program.components.addons.observability import alert_rules
from hpkit.program.components.admission.policies import pod_security_labels, request_limits
from hpkit.program.components.scheduling.governance import _configured
from tests.builders import organization, team, typed
from tests.grafana.expressions import selectors

READ = {"get", "list", "watch"}
G5 = "ml.g5.12xlarge"
ADA, BOB = "arn:aws:iam::123456789012:role/ada", "arn:aws:iam::123456789012:role/bob"
# These determine who gets compute: only the service and its administrators write them.
GOVERNING = {"clusterqueues", "localqueues", "cohorts", "resourceflavors", "topologies", "workloadpriorityclasses"}


def grants(rules):
    """Return every (group, resource, verb) that rules grant."""
    return {grant for rule in rules for grant in product(rule.api_groups, rule.resources, rule.verbs)}


def plan(*teams):
    rows = {each["name"]: [{"instanceType": G5, "count": 1}] for each in teams}
    return derive(typed(organization(teams=list(teams), allocations=rows)), "dev")


def test_across_the_cluster_everything_is_read_only():
    assert {verb for _, _, verb in grants(cluster_rules(spaces=True))} <= READ


def test_across_the_cluster_nothing_that_holds_a_secret_or_is_a_teams_own_is_read():
    seen = {resource for _, resource, _ in grants(cluster_rules(spaces=True))}
    assert not seen & {"secrets", "configmaps", "pods", "pods/log", "localqueues", "workloads", "serviceaccounts"}


def test_viewers_read_everything_but_secrets_and_what_runs_commands():
    assert {verb for _, _, verb in grants(viewer_rules())} == READ
    core = {resource for group, resource, _ in grants(viewer_rules()) if group == ""}
    assert {"nodes", "pods", "pods/log"} <= core
    assert not core & {"*", "secrets", "pods/exec", "pods/attach", "pods/portforward", "nodes/proxy", "pods/proxy"}


EVERYTHING = ("training", "inference", "spaces")


@pytest.mark.parametrize("rules", [team_rules(EVERYTHING), cluster_rules(spaces=True), viewer_rules()])
def test_no_rule_has_a_wildcard(rules):
    assert not any("*" in part for grant in grants(rules) for part in grant)


def test_no_rule_changes_queues_quotas_or_priorities():
    written = {(group, resource) for group, resource, verb in grants([*team_rules(EVERYTHING), *cluster_rules()])
               if verb not in READ}  # fmt: skip
    assert not {resource.partition("/")[0] for _, resource in written} & GOVERNING
    assert "kueue.x-k8s.io" not in {group for group, _ in written}


def test_no_rule_lets_a_team_give_itself_more():
    given = grants([*team_rules(EVERYTHING), *cluster_rules()])
    assert not {verb for _, _, verb in given} & {"escalate", "bind", "impersonate"}
    assert not {group for group, _, _ in given} & {"rbac.authorization.k8s.io", "admissionregistration.k8s.io"}
    written = {resource for _, resource, verb in given if verb not in READ}
    assert not written & {"namespaces", "nodes", "serviceaccounts", "serviceaccounts/token", "pods/ephemeralcontainers"}


def test_nobody_changes_a_pod_that_is_there():
    verbs = {verb for group, resource, verb in grants(team_rules(EVERYTHING)) if (group, resource) == ("", "pods")}
    assert verbs == {*READ, "create", "delete", "deletecollection"}


def test_a_team_starts_sees_and_ends_its_own_work():
    given = grants(team_rules())
    for group, resource in (("batch", "jobs"), ("kubeflow.org", "pytorchjobs"), ("", "pods")):
        assert {(group, resource, verb) for verb in ("create", "get", "list", "watch", "delete")} <= given
    assert ("", "pods/log", "get") in given


def test_a_role_has_a_group_for_each_of_its_teams_and_no_other():
    both = plan(team("ada", members=[ADA]), team("bob", members=[BOB, ADA]), team("eve", members=[]))
    assert groups_of(both) == {ADA: (f"{GROUP_PREFIX}ada", f"{GROUP_PREFIX}bob"), BOB: (f"{GROUP_PREFIX}bob",)}


def test_the_order_of_teams_changes_no_group():
    teams = [team("ada", members=[ADA, BOB]), team("bob", members=[BOB])]
    assert groups_of(plan(*teams)) == groups_of(plan(*reversed(teams)))


def test_a_team_that_says_nothing_trains_and_one_that_serves_alone_submits_no_job():
    assert grants(team_rules()) == grants(team_rules(("training",)))
    kinds = {resource for _, resource, _ in grants(team_rules(("inference",)))}
    assert kinds & {"deployments", "horizontalpodautoscalers", "scaledobjects"}
    assert not kinds & {"jobs", "pytorchjobs", "rayjobs", "jobsets", "hyperpodpytorchjobs"}
    assert not {resource for _, resource, _ in grants(team_rules())} & {"deployments", "scaledobjects"}


def test_nobody_writes_what_keda_would_make_jobs_of_or_take_tokens_by():
    assert not {resource for _, resource, _ in grants(team_rules(EVERYTHING))} & {
        "scaledjobs",
        "triggerauthentications",
        "statefulsets",
    }


def test_the_order_of_workloads_changes_no_rule():
    assert team_rules(EVERYTHING) == team_rules(tuple(reversed(EVERYTHING)))


HEAD = "apiVersion: config.kueue.x-k8s.io/v1beta1\nkind: Configuration\n"


@pytest.mark.parametrize(
    ("text", "gang", "level", "begins"),
    [
        (f"{HEAD}waitForPodsReady: {{enable: true}}\n", None, "warn", "gang scheduling is on (timeout 5m"),
        (HEAD, {"enable": True}, "info", "gang scheduling is off, but on in the file. This run sets it as in the file"),
    ],
)
def test_a_run_says_that_it_undoes_what_the_console_changed(monkeypatch, text, gang, level, begins):
    messages = []
    for name in ("warn", "info"):
        monkeypatch.setattr(pulumi.log, name, lambda message, name=name: messages.append((name, message)))
    data = organization()
    data["environments"]["dev"]["governance"] |= {"gangScheduling": gang} if gang else {}
    plan = derive(typed(data), "dev")
    after = _configured(text, plan)
    ((found, message),) = messages
    assert (found, message[: len(begins)]) == (level, begins)
    assert "set `governance.gangScheduling` in the file" in message
    messages.clear()
    assert (_configured(after, plan), messages) == (after, [])


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


def test_a_member_cannot_create_a_persistent_volume():
    rules = [*team_rules(("training", "inference")), *cluster_rules()]
    assert not [rule for rule in rules if {"persistentvolumes", "storageclasses", "*"} & set(rule.resources)]


def test_taints_of_the_file_may_be_tolerated_and_reserved_ones_never():
    data = organization()
    (group, *_) = data["environments"]["dev"]["cluster"]["instanceGroups"]
    group["taints"] = [
        {"key": key, "effect": "NoSchedule"} for key in ("team/large", "sagemaker.amazonaws.com/node-health-status")
    ]
    limits = pod_limits(derive(typed(data), "dev"))
    assert "team/large" in limits.tolerations
    assert "sagemaker.amazonaws.com/node-health-status" not in limits.tolerations


def test_a_container_without_requests_gets_those_of_the_file():
    data = organization()
    data["environments"]["dev"]["governance"]["teamLimits"] = {"defaultRequests": {"cpu": "2"}}
    assert request_limits(pod_limits(derive(typed(data), "dev"))) == (
        {"cpu": "2", "memory": "256Mi"},
        {"cpu": "1m", "memory": "1Mi"},
    )


def test_the_level_of_a_namespace_is_of_the_clusters_version():
    labels = pod_security_labels("1.35")
    levels = {mode: labels[f"pod-security.kubernetes.io/{mode}"] for mode in ("enforce", "warn", "audit")}
    assert levels == {"enforce": "baseline", "warn": "baseline", "audit": "restricted"}
    assert labels["pod-security.kubernetes.io/enforce-version"] == "v1.35"

"""The queries asked of a real Prometheus, over series such as Kueue and the exporters make."""

import pytest

from hpkit.grafana.dashboards import dashboards
from tests.grafana.builders import plan_of, wanted_of
from tests.grafana.expressions import as_prometheus
from tests.grafana.promql import ask

pytestmark = [pytest.mark.nightly, pytest.mark.slow, pytest.mark.timeout(1800)]

G5 = 'flavor="ml.g5.12xlarge",resource="nvidia.com/gpu"'
HOUR = 3600


def queue(team):
    return f'cluster_queue="hyperpod-ns-{team}-clusterqueue"'


# Ada has 8 GPUs and uses 12, which two replicas of Kueue export; Bob has 8, uses 2, and two of his tasks wait.
SERIES = f"""load 1m
  kueue_cluster_queue_nominal_quota{{{queue("ada")},cohort="c",{G5},replica_role="leader"}} 8x120
  kueue_cluster_queue_nominal_quota{{{queue("ada")},cohort="c",{G5},replica_role="follower"}} 8x120
  kueue_cluster_queue_resource_usage{{{queue("ada")},cohort="c",{G5},replica_role="leader"}} 12x120
  kueue_cluster_queue_resource_usage{{{queue("ada")},cohort="c",{G5},replica_role="follower"}} 12x120
  kueue_cluster_queue_nominal_quota{{{queue("bob")},cohort="c",{G5},replica_role="leader"}} 8x120
  kueue_cluster_queue_resource_usage{{{queue("bob")},cohort="c",{G5},replica_role="leader"}} 2x120
  kueue_cluster_queue_weighted_share{{{queue("ada")},cohort="c",replica_role="leader"}} 500x120
  kueue_pending_workloads{{{queue("ada")},status="active",replica_role="leader"}} 1x120
  kueue_pending_workloads{{{queue("bob")},status="active",replica_role="leader"}} 2x120
  kueue_pending_workloads{{{queue("bob")},status="inadmissible",replica_role="leader"}} 0x120
  kueue_admitted_active_workloads{{{queue("ada")},replica_role="leader"}} 3x120
  kueue_admitted_active_workloads{{{queue("ada")},replica_role="follower"}} 3x120
  kueue_admitted_active_workloads{{{queue("bob")},replica_role="leader"}} 1x120
  kueue_finished_workloads_total{{{queue("bob")},priority_class="p",replica_role="leader"}} 0+0.0125x120
  kueue_admission_wait_time_seconds_sum{{{queue("bob")},priority_class="p"}} 0+90x120
  kueue_admission_wait_time_seconds_count{{{queue("bob")},priority_class="p"}} 0+2x120
  kueue_admission_attempts_total{{result="success",replica_role="leader"}} 5x120
  kueue_admission_wait_time_seconds_bucket{{{queue("bob")},priority_class="p",le="60"}} 0+1x120
  kueue_admission_wait_time_seconds_bucket{{{queue("bob")},priority_class="p",le="600"}} 0+2x120
  kueue_admission_wait_time_seconds_bucket{{{queue("bob")},priority_class="p",le="+Inf"}} 0+2x120
  kueue_preempted_workloads_total{{preempting_{queue("bob")},reason="InCohortReclamation"}} 0+1x120
  kueue_evicted_workloads_total{{{queue("ada")},reason="Preempted",underlying_cause="",priority_class="p"}} 0+1x120
  DCGM_FI_DEV_GPU_UTIL{{Hostname="n1",gpu="0",namespace="hyperpod-ns-ada",pod="p1"}} 90x120
  DCGM_FI_DEV_GPU_UTIL{{Hostname="n1",gpu="1",namespace="hyperpod-ns-bob",pod="p2"}} 1x120
  DCGM_FI_DEV_FB_USED{{Hostname="n1",gpu="0",namespace="hyperpod-ns-ada",pod="p1"}} 30x120
  DCGM_FI_DEV_FB_FREE{{Hostname="n1",gpu="0",namespace="hyperpod-ns-ada",pod="p1"}} 10x120
  DCGM_FI_DEV_GPU_TEMP{{Hostname="n1",gpu="0"}} 60x120
  DCGM_FI_DEV_GPU_TEMP{{Hostname="n1",gpu="1"}} 91x120
  DCGM_FI_DEV_POWER_USAGE{{Hostname="n1",gpu="0"}} 300x120
  DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{{Hostname="n1",gpu="0"}} 0.5x120
  DCGM_FI_DEV_XID_ERRORS{{Hostname="n1",gpu="0"}} 0x120
  DCGM_FI_DEV_XID_ERRORS{{Hostname="n1",gpu="1"}} 79x120
  DCGM_FI_DEV_ROW_REMAP_FAILURE{{Hostname="n1",gpu="1"}} 1x120
  kubelet_node_name{{node="n1",sagemaker_amazonaws_com_node_health_status="Schedulable"}} 1x120
  kubelet_node_name{{node="n2",sagemaker_amazonaws_com_node_health_status="UnschedulablePendingReboot"}} 1x120
  node_cpu_seconds_total{{instance="n1",cpu="0",mode="idle"}} 0+45x120
  node_filesystem_avail_bytes{{instance="n1",device="/dev/a",fstype="xfs",mountpoint="/"}} 25x120
  node_filesystem_size_bytes{{instance="n1",device="/dev/a",fstype="xfs",mountpoint="/"}} 100x120
  node_amazonefa_rx_drops{{instance="n1",device="efa0",port="1"}} 0+60x120
"""


def asked(*expressions):
    wanted = [{"expr": as_prometheus(each), "seconds": 2 * HOUR} for each in expressions]
    (answers,) = ask([{"load": SERIES, "queries": wanted}])
    for expression, answer in zip(expressions, answers, strict=True):
        assert "error" not in answer, (expression, answer)
    return [answer["samples"] for answer in answers]


def by(label, samples):
    return {each["labels"][label]: round(each["value"], 6) for each in samples}


def expression_of(title):
    """Return what the first panel of this title asks; dashboards of the cluster come first."""
    panels = (panel for board in dashboards(plan_of("bob")) for panel in board["panels"])
    return next(panel["targets"][0]["expr"] for panel in panels if panel["title"] == title)


def test_prometheus_answers_every_query_of_every_panel():
    found = [
        (panel["title"], target["expr"])
        for board in dashboards(plan_of("bob"))
        for panel in board["panels"]
        for target in panel["targets"]
    ]
    answers = asked(*(expression for _, expression in found))
    empty = [title for (title, _), samples in zip(found, answers, strict=True) if not samples]
    # Nobody evicted Bob, and his pods say nothing of memory.
    assert empty == ["Preemptions per hour", "GPU memory by pod"]


def test_each_query_says_what_its_title_says():
    answers = {
        "Usage by team": {"ada": 12, "bob": 2},
        "Guarantee by team": {"ada": 8, "bob": 8},
        "Used part of the guarantee": {"ada": 150, "bob": 25},
        "Borrowed": {"ada": 4, "bob": 0},
        "Idle guarantee": {"ada": 0, "bob": 6},
        "Waiting": {"ada": 1, "bob": 2},
        "Running": {"ada": 3, "bob": 1},
        "Wait time, average": {"bob": 45},
        "Wait time, median": {"bob": 60},
        "Preemptions that the team caused, per hour": {"bob": 60},
        "Utilization by team": {"ada": 90, "bob": 1},
        "Memory by team": {"ada": 75},
    }
    found = asked(*map(expression_of, answers))
    assert {title: by("team", samples) for title, samples in zip(answers, found, strict=True)} == answers
    nodes = {"CPU": {"n1": 25}, "Use of the fullest file system": {"n1": 75}, "Packets dropped by EFA": {"n1": 1}}
    found = asked(*map(expression_of, nodes))
    assert {title: by("instance", samples) for title, samples in zip(nodes, found, strict=True)} == nodes
    (health,) = asked(expression_of("Nodes by health"))
    status = "sagemaker_amazonaws_com_node_health_status"
    assert by(status, health) == {"Schedulable": 1, "UnschedulablePendingReboot": 1}


def test_the_run_time_of_a_task_is_what_all_ran_for_each_that_finished():
    (found,) = asked(expression_of("Average run time over a day"))
    # One ran at any time, and one and a half finished.
    assert 86_400 / by("team", found)["bob"] == pytest.approx(0.0125 * 120, rel=0.02)


def test_alert_rules_fire_for_whom_they_should_and_for_nobody_else():
    rules = {each.title: each.body for each in wanted_of().objects if each.kind == "alert rule"}
    answers = asked(*(rule["data"][0]["model"]["expr"] for rule in rules.values()))
    fires = {
        title: sorted(
            next(each["labels"][name] for name in ("team", "gpu", "node", "result") if name in each["labels"])
            if each["labels"]
            else "cluster"
            for each in samples
            if each["value"] > 0
        )
        for title, samples in zip(rules, answers, strict=True)
    }
    assert fires == {
        "Kueue admits nothing": ["cluster"],
        # Ada's work waits too, but she has more than her guarantee.
        "Tasks wait although the team is below its guarantee": ["bob"],
        "A team preempts often": ["bob"],
        "GPU is too hot": ["1"],
        "GPU reports an XID error": ["1"],
        "Allocated GPUs are idle": ["bob"],
        "Node is unhealthy": ["n2"],
    }

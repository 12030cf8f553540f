"""The queries evaluated by a real Prometheus, with series like those of Kueue and the exporters."""

import pytest

from hpkit.grafana.dashboards import dashboards
from tests.grafana.builders import exported, scaling_plan_of
from tests.grafana.expressions import as_prometheus
from tests.grafana.promql import ask

pytestmark = [pytest.mark.nightly, pytest.mark.slow, pytest.mark.timeout(1800)]

G5 = 'flavor="ml.g5.12xlarge",resource="nvidia.com/gpu"'
HOUR = 3600
GROUP = "sagemaker_amazonaws_com_instance_group_name"
HEALTH = "sagemaker_amazonaws_com_node_health_status"
HPA = 'namespace="hyperpod-ns-bob",horizontalpodautoscaler="keda-hpa-server"'


def queue(team):
    return f'cluster_queue="hyperpod-ns-{team}-clusterqueue"'


def node(name, group, health="Schedulable", **more):
    of = {"node": name, HEALTH: health, GROUP: group, **more}
    return "kubelet_node_name{" + ",".join(f'{key}="{value}"' for key, value in of.items()) + "} 1x120"


def pod(team, name, on, **requests):
    """Return the series of a running pod."""
    of = f'namespace="hyperpod-ns-{team}",pod="{name}"'
    asked = (
        f'kube_pod_container_resource_requests{{{of},container="c",node="{on}",resource="{resource}"}} {amount}x120'
        for resource, amount in requests.items()
    )
    return "\n  ".join(
        [f'kube_pod_info{{{of},node="{on}"}} 1x120', f'kube_pod_status_phase{{{of},phase="Running"}} 1x120', *asked]
    )


# Ada has 8 GPUs and uses 12, which two replicas of Kueue export; Bob has 8, uses 2, and two of his tasks wait. Each has
# a pod on n1. Bob has another one on n2, whose health has just changed. Ada's "done" has ended; "next" waits.
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
  {node("n1", "gpu")}
  {node("n2", "burst", karpenter_sh_nodepool="spare")}
  {node("n2", "burst", "UnschedulablePendingReboot", karpenter_sh_nodepool="spare")}
  kube_node_info{{node="n1",internal_ip="10.0.0.1"}} 1x120
  kube_node_info{{node="n2",internal_ip="10.0.0.2"}} 1x120
  kube_node_status_allocatable{{node="n1",resource="nvidia_com_gpu"}} 4x120
  kube_node_status_allocatable{{node="n1",resource="cpu"}} 40x120
  kube_node_status_allocatable{{node="n2",resource="cpu"}} 60x120
  kube_node_status_allocatable{{node="n1",resource="memory"}} 100x120
  kube_node_status_allocatable{{node="n2",resource="memory"}} 400x120
  {pod("ada", "p1", "n1", nvidia_com_gpu=1, cpu=10, memory=50)}
  {pod("bob", "p2", "n1", nvidia_com_gpu=1, cpu=4, memory=10)}
  {pod("bob", "p3", "n2", cpu=20, memory=40)}
  kube_pod_container_resource_requests{{namespace="hyperpod-ns-ada",pod="done",node="n1",resource="cpu"}} 16x120
  kube_pod_status_phase{{namespace="hyperpod-ns-ada",pod="done",phase="Running"}} 0x120
  kube_pod_status_phase{{namespace="hyperpod-ns-bob",pod="next",phase="Pending"}} 1x120
  kube_pod_status_unschedulable{{namespace="hyperpod-ns-bob",pod="next"}} 1x120
  container_cpu_usage_seconds_total{{namespace="hyperpod-ns-ada",pod="p1",container="c"}} 0+300x120
  container_cpu_usage_seconds_total{{namespace="hyperpod-ns-bob",pod="p2",container="c"}} 0+120x120
  container_cpu_usage_seconds_total{{namespace="hyperpod-ns-bob",pod="p3",container="c"}} 0+240x120
  container_memory_working_set_bytes{{namespace="hyperpod-ns-ada",pod="p1",container="c"}} 40x120
  container_memory_working_set_bytes{{namespace="hyperpod-ns-bob",pod="p2",container="c"}} 5x120
  container_memory_working_set_bytes{{namespace="hyperpod-ns-bob",pod="p3",container="c"}} 20x120
  node_cpu_seconds_total{{instance="10.0.0.1:9100",cpu="0",mode="idle"}} 0+45x120
  node_cpu_seconds_total{{instance="10.0.0.2:9100",cpu="0",mode="idle"}} 0+30x120
  node_memory_MemAvailable_bytes{{instance="10.0.0.1:9100"}} 25x120
  node_memory_MemTotal_bytes{{instance="10.0.0.1:9100"}} 100x120
  node_memory_MemAvailable_bytes{{instance="10.0.0.2:9100"}} 300x120
  node_memory_MemTotal_bytes{{instance="10.0.0.2:9100"}} 400x120
  node_filesystem_avail_bytes{{instance="10.0.0.1:9100",device="/dev/a",fstype="xfs",mountpoint="/"}} 25x120
  node_filesystem_size_bytes{{instance="10.0.0.1:9100",device="/dev/a",fstype="xfs",mountpoint="/"}} 100x120
  node_amazonefa_rx_drops{{instance="10.0.0.1:9100",device="efa0",port="1"}} 0+60x120
  kube_horizontalpodautoscaler_status_current_replicas{{{HPA}}} 2x120
  kube_horizontalpodautoscaler_status_desired_replicas{{{HPA}}} 3x120
  kube_horizontalpodautoscaler_spec_max_replicas{{{HPA}}} 4x120
  keda_scaler_metrics_value{{namespace="hyperpod-ns-bob",scaledObject="server",metric="s0-aws-sqs-queue"}} 7x120
  keda_scaled_object_errors_total{{namespace="hyperpod-ns-bob",scaledObject="server"}} 0+1x120
"""


def asked(*expressions, **chosen):
    wanted = [{"expr": as_prometheus(each, **chosen), "seconds": 2 * HOUR} for each in expressions]
    (answers,) = ask([{"load": SERIES, "queries": wanted}])
    for expression, answer in zip(expressions, answers, strict=True):
        assert "error" not in answer, (expression, answer)
    return [answer["samples"] for answer in answers]


def by(label, samples):
    return {each["labels"][label]: round(each["value"], 6) for each in samples}


def expressions_of(title):
    """Return the queries of the first panel with this title; the cluster's dashboards are searched first."""
    panels = (panel for board in dashboards(scaling_plan_of("bob")) for panel in board["panels"])
    return next([target["expr"] for target in panel["targets"]] for panel in panels if panel["title"] == title)


def expression_of(title):
    return expressions_of(title)[0]


def answers_of(label, *titles, **chosen):
    """Return the first result of each panel by title, with the value by a label."""
    found = asked(*map(expression_of, titles), **chosen)
    return {title: by(label, samples) for title, samples in zip(titles, found, strict=True)}


def test_prometheus_answers_every_query_of_every_panel():
    series = [
        (panel["title"], target["expr"])
        for board in dashboards(scaling_plan_of("bob"))
        for panel in board["panels"]
        for target in panel["targets"]
    ]
    answers = asked(*(expression for _, expression in series))
    empty = [title for (title, _), samples in zip(series, answers, strict=True) if not samples]
    # Bob was never evicted, and his pods export no memory metric.
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
    assert answers_of("team", *answers) == answers
    n1, n2 = "10.0.0.1:9100", "10.0.0.2:9100"
    nodes = {
        "CPU": {n1: 25, n2: 50},
        "Host memory": {n1: 75, n2: 25},
        "Use of the fullest file system": {n1: 75},
        "Packets dropped by EFA": {n1: 1},
    }
    assert answers_of("instance", *nodes) == nodes
    (health,) = asked(expression_of("Nodes by health"))
    assert by(HEALTH, health) == {"Schedulable": 2, "UnschedulablePendingReboot": 1}


def test_utilization_is_of_the_chosen_instance_groups():
    def of_cluster(title, **chosen):
        return [round(sample["value"], 6) for samples in asked(*expressions_of(title), **chosen) for sample in samples]

    assert of_cluster("Accelerators") == [45.5, 50]
    assert of_cluster("vCPUs") == [37.5, 34]
    assert of_cluster("Memory") == [35, 20]
    assert of_cluster("vCPUs", group="gpu") == [25, 35]
    assert of_cluster("Memory", group="burst") == [25, 10]
    of_groups = {
        "GPU utilization by instance group": {"gpu": 45.5},
        "vCPU utilization by instance group": {"gpu": 25, "burst": 50},
        "Memory utilization by instance group": {"gpu": 75, "burst": 25},
    }
    assert answers_of(GROUP, *of_groups) == of_groups
    of_teams = {
        "GPU utilization by team": {"ada": 90, "bob": 1},
        "vCPU utilization by team": {"ada": 50, "bob": 25},
        "Memory utilization by team": {"ada": 80, "bob": 50},
    }
    assert answers_of("team", *of_teams) == of_teams
    title = "vCPU utilization by team"
    assert answers_of("team", title, group="gpu") == {title: {"ada": 50, "bob": 50}}


def test_autoscaling_counts_each_node_once_and_pods_without_one():
    assert answers_of("karpenter_sh_nodepool", "Nodes by NodePool") == {"Nodes by NodePool": {"spare": 1}}
    title = "Nodes by instance group"
    assert answers_of(GROUP, title) == {title: {"gpu": 1, "burst": 1}}
    of_pods = {"Pending pods": {"hyperpod-ns-bob": 1}, "Pods without a node": {"hyperpod-ns-bob": 1}}
    assert answers_of("namespace", *of_pods) == of_pods
    of_keda = {"Metrics that KEDA reads": {"server": 7}, "KEDA errors per hour": {"server": 60}}
    assert answers_of("scaledObject", *of_keda) == of_keda


def test_the_run_time_of_a_task_is_what_all_ran_for_each_that_finished():
    (found,) = asked(expression_of("Average run time over a day"))
    # One ran at any time, and one and a half finished.
    assert 86_400 / by("team", found)["bob"] == pytest.approx(0.0125 * 120, rel=0.02)


def test_alert_rules_fire_for_whom_they_should_and_for_nobody_else():
    rules = {each["title"]: each for each in exported()["alert-rules.json"]["rules"]}
    answers = asked(*(rule["data"][0]["model"]["expr"] for rule in rules.values()))
    fires = {
        title: sorted(
            next(sample["labels"][name] for name in ("team", "gpu", "node", "result") if name in sample["labels"])
            if sample["labels"]
            else "cluster"
            for sample in samples
            if sample["value"] > 0
        )
        for title, samples in zip(rules, answers, strict=True)
    }
    assert fires == {
        "Kueue admits nothing": ["cluster"],
        # Ada's work waits too, but she uses more than her guarantee.
        "Tasks wait although the team is below its guarantee": ["bob"],
        "A team preempts often": ["bob"],
        "GPU is too hot": ["1"],
        "GPU reports an XID error": ["1"],
        "Allocated GPUs are idle": ["bob"],
        "Node is unhealthy": ["n2"],
    }

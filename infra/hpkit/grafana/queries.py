"""The PromQL of dashboards and alert rules: every metric and label is looked up in the catalog as it is written.

Several replicas of Kueue may export one gauge each (label replica_role): the largest is taken, never their sum.
"""

from hpkit.catalog import metrics
from hpkit.errors import CatalogError
from hpkit.plan.model import CLUSTER_QUEUE_SUFFIX, NAMESPACE_PREFIX

__all__ = [
    "admission_attempts",
    "average_wait",
    "borrowed",
    "by_team",
    "evicted",
    "gpu_memory_percent",
    "gpu_utilization",
    "guaranteed",
    "idle_guarantee",
    "node_cpu_percent",
    "node_disk_percent",
    "node_efa_drops",
    "nodes_by_health",
    "preempted",
    "run_time",
    "running",
    "selector",
    "used",
    "waiting",
    "waits",
]

_FLAVORS = "cluster_queue, flavor, resource"
_DAY = 24 * 60 * 60


def selector(metric: str, **matchers: str) -> str:
    """Return a metric with matchers, a value of `~…` being a regular expression and one of `!…` what it is not.

    CatalogError where the catalog has no such metric, or the metric no such label.
    """
    known = metrics().get(metric)
    if known is None:
        raise CatalogError(f"no exporter of the platform has a metric {metric}")
    unknown = sorted(matchers.keys() - known.labels)
    if unknown:
        raise CatalogError(f"{metric} has no label {', '.join(unknown)}; it has {', '.join(sorted(known.labels))}")
    return metric + (f"{{{', '.join(_matcher(*each) for each in matchers.items())}}}" if matchers else "")


def _matcher(label: str, value: str) -> str:
    if value.startswith("~"):
        return f'{label}=~"{value[1:]}"'
    return f'{label}!="{value[1:]}"' if value.startswith("!") else f'{label}="{value}"'


def by_team(expression: str, label: str = "cluster_queue") -> str:
    """Return an expression whose series have the label `team` as well, read off a ClusterQueue or a namespace."""
    suffix = "" if label == "namespace" else CLUSTER_QUEUE_SUFFIX
    return f'label_replace({expression}, "team", "$1", "{label}", "{NAMESPACE_PREFIX}(.*){suffix}")'


def _flavors(metric: str, where: dict[str, str]) -> str:
    return f"max by ({_FLAVORS}) ({selector(metric, **where)})"


def used(**where: str) -> str:
    """Return what each ClusterQueue uses, in the unit of the resource."""
    return f"sum by (cluster_queue) ({_flavors('kueue_cluster_queue_resource_usage', where)})"


def guaranteed(**where: str) -> str:
    """Return the nominal quota of each ClusterQueue, in the unit of the resource."""
    return f"sum by (cluster_queue) ({_flavors('kueue_cluster_queue_nominal_quota', where)})"


def borrowed(**where: str) -> str:
    """Return what each ClusterQueue uses beyond its nominal quota, flavor by flavor."""
    usage, quota = (_flavors(f"kueue_cluster_queue_{name}", where) for name in ("resource_usage", "nominal_quota"))
    return f"sum by (cluster_queue) (clamp_min({usage} - {quota}, 0))"


def idle_guarantee(**where: str) -> str:
    """Return what each ClusterQueue leaves of its nominal quota, flavor by flavor: what others may borrow of it."""
    usage, quota = (_flavors(f"kueue_cluster_queue_{name}", where) for name in ("resource_usage", "nominal_quota"))
    return f"sum by (cluster_queue) (clamp_min({quota} - {usage}, 0))"


def waiting(**where: str) -> str:
    """Return how many workloads of each ClusterQueue wait, by status (active: tried again, inadmissible: not)."""
    return f"max by (cluster_queue, status) ({selector('kueue_pending_workloads', **where)})"


def running(**where: str) -> str:
    """Return how many workloads of each ClusterQueue are admitted and not finished."""
    return f"max by (cluster_queue) ({selector('kueue_admitted_active_workloads', **where)})"


def run_time(days: int, **where: str) -> str:
    """Return seconds that workloads of each ClusterQueue ran in so many days, for each that finished in them.

    Kueue exports no run time. What is admitted on average over a time, times that time, is how long all ran together
    (Little's law); what a preempted workload ran before counts as well.
    """
    active = selector("kueue_admitted_active_workloads", **where)
    finished = selector("kueue_finished_workloads_total", **where)
    ran = f"{days * _DAY} * max by (cluster_queue) (avg_over_time({active}[{days}d]))"
    return f"{ran} / (sum by (cluster_queue) (increase({finished}[{days}d])) > 0)"


def average_wait(window: str, **where: str) -> str:
    """Return seconds from creation to admission of what was admitted in a window, on average by ClusterQueue."""
    seconds, admitted = (
        f"sum by (cluster_queue) (increase({selector(f'kueue_admission_wait_time_seconds_{part}', **where)}[{window}]))"
        for part in ("sum", "count")
    )
    return f"{seconds} / ({admitted} > 0)"


def waits(quantile: float, window: str, **where: str) -> str:
    """Return seconds from creation to admission of what was admitted in a window, as a quantile by ClusterQueue."""
    buckets = selector("kueue_admission_wait_time_seconds_bucket", **where)
    return f"histogram_quantile({quantile:g}, sum by (cluster_queue, le) (increase({buckets}[{window}])))"


def admission_attempts(window: str) -> str:
    """Return how often Kueue tried to admit in a second, by result."""
    return f"sum by (result) (rate({selector('kueue_admission_attempts_total')}[{window}]))"


def preempted(window: str, **where: str) -> str:
    """Return how many workloads were preempted for each ClusterQueue in a window, by reason."""
    counter = selector("kueue_preempted_workloads_total", **where)
    return f"sum by (preempting_cluster_queue, reason) (increase({counter}[{window}]))"


def evicted(window: str, **where: str) -> str:
    """Return how many workloads of each ClusterQueue were evicted in a window, by reason."""
    return f"sum by (cluster_queue, reason) (increase({selector('kueue_evicted_workloads_total', **where)}[{window}]))"


def gpu_utilization(by: str, **where: str) -> str:
    """Return the busy share of GPUs in percent, on average by a label."""
    return f"avg by ({by}) ({selector('DCGM_FI_DEV_GPU_UTIL', **where)})"


def gpu_memory_percent(by: str, **where: str) -> str:
    """Return the used share of GPU memory in percent, by a label."""
    taken, free = (selector(f"DCGM_FI_DEV_FB_{name}", **where) for name in ("USED", "FREE"))
    return f"100 * sum by ({by}) ({taken}) / (sum by ({by}) ({taken}) + sum by ({by}) ({free}))"


def nodes_by_health() -> str:
    """Return how many nodes there are of each health status."""
    return f"count by (sagemaker_amazonaws_com_node_health_status) ({selector('kubelet_node_name')})"


def node_cpu_percent(window: str) -> str:
    """Return the busy share of each node's CPUs in percent."""
    return f"100 * (1 - avg by (instance) (rate({selector('node_cpu_seconds_total', mode='idle')}[{window}])))"


def node_disk_percent() -> str:
    """Return the used share of each node's fullest file system in percent."""
    left, size = (selector(f"node_filesystem_{name}_bytes", fstype="~ext4|xfs") for name in ("avail", "size"))
    return f"100 * (1 - min by (instance) ({left} / {size}))"


def node_efa_drops(window: str) -> str:
    """Return packets that each node's EFA interfaces dropped in a second."""
    return f"sum by (instance) (rate({selector('node_amazonefa_rx_drops')}[{window}]))"

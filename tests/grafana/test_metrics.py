"""The catalog's metrics against the Kueue that runs: what it exports, and under which labels."""

import urllib.request

import pytest

from hpkit.catalog import kueue_metrics_version, metrics
from hpkit.errors import InputError
from hpkit.generate.metrics import kueue_metrics
from local.toolchain.table import tool_named
from tests.program.cloud import Live
from tests.running import eventually

SOURCE = """
	// +metricsdoc:labels=status="one of `a`, or `b`",cluster_queue="the name"
	Pending *prometheus.GaugeVec

	Pending = prometheus.NewGaugeVec(
		prometheus.GaugeOpts{
			Subsystem: constants.KueueName,
			Name:      "pending",
		}, []string{"cluster_queue", "status"},
	)
"""
# Kueue has these only while something of the kind has happened, or for features that are off.
COUNTED_AT_ONCE = {
    "kueue_admission_attempts_total",
    "kueue_cluster_queue_nominal_quota",
    "kueue_cluster_queue_resource_usage",
    "kueue_cluster_queue_weighted_share",
    "kueue_pending_workloads",
}


def test_the_catalog_is_of_the_version_that_runs():
    assert kueue_metrics_version() == tool_named("kueue").version


def test_a_metric_is_read_off_the_source_with_its_labels():
    assert kueue_metrics(SOURCE) == {"kueue_pending": {"type": "gauge", "labels": ["cluster_queue", "status"]}}
    with pytest.raises(InputError, match="Pending has no line that says its labels"):
        kueue_metrics(SOURCE.replace("+metricsdoc", ""))


def test_a_histogram_is_three_series():
    for suffix in ("_bucket", "_sum", "_count"):
        assert metrics()[f"kueue_admission_wait_time_seconds{suffix}"].type == "histogram"
    assert "kueue_admission_wait_time_seconds" not in metrics()


def exported(live):
    """Return metric → labels of what Kueue's own page says."""
    url = f"http://127.0.0.1:{live.instance.ports()['kueue-metrics']}/metrics"
    with urllib.request.urlopen(url, timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    found = {}
    for line in lines:
        if line.startswith("kueue_"):
            name, _, rest = line.partition("{")
            pairs = rest.rpartition("}")[0].split('",')
            found.setdefault(name, set()).update(pair.partition("=")[0] for pair in pairs if "=" in pair)
    return found


@pytest.mark.engine
@pytest.mark.cluster
@pytest.mark.platform
@pytest.mark.timeout(900)
def test_the_running_kueue_exports_what_the_catalog_says(clouds):
    live = Live(clouds.handson())
    eventually(lambda: exported(live).keys() >= COUNTED_AT_ONCE, lambda: sorted(exported(live)))
    for name, labels in exported(live).items():
        assert name in metrics(), f"{name} is not in the catalog"
        assert labels <= metrics()[name].labels, name

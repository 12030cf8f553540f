"""The catalog's metrics compared with the running Kueue: which metrics it exports, with which labels."""

import re

import pytest
import urllib3

from hpkit.catalog import kueue_metrics_version, metrics
from hpkit_local.toolchain.table import tool_named
from tests.grafana.exporters import EXPORTERS
from tests.program.cloud import Live
from tests.running import eventually

# It exports the others only after such an event, or not while their feature is off.
AT_ONCE = {
    "kueue_cluster_queue_nominal_quota",
    "kueue_cluster_queue_resource_usage",
    "kueue_cluster_queue_weighted_share",
    "kueue_pending_workloads",
}


# Labels that a scrape adds.
SCRAPED = {"cluster_id", "instance"}
# Only in AWS's build of the node exporter: its EFA dashboard is the source.
EFA = "node_amazonefa_rx_drops"

GROUP = "rbac.authorization.k8s.io"
ROLES, BINDINGS = (f"/apis/{GROUP}/v1/{kind}" for kind in ("clusterroles", "clusterrolebindings"))
NAME = "scraper"
LABEL = re.compile(r'(\w+)="')


def test_the_catalog_is_of_the_version_that_runs():
    assert kueue_metrics_version() == tool_named("kueue").version


@pytest.mark.nightly
@pytest.mark.parametrize("prefix", EXPORTERS)
def test_exporters_have_the_metrics_of_the_catalog(prefix):
    exposed = EXPORTERS[prefix]()
    wanted = {name: metric for name, metric in metrics().items() if name.startswith(prefix) and name != EFA}
    assert wanted.keys() <= exposed.keys()
    for name, metric in wanted.items():
        kind, labels = exposed[name]
        assert metric.type == kind, name
        # cAdvisor's page doesn't list labels that all its metrics have.
        assert prefix == "container_" or metric.labels <= labels | SCRAPED, name


@pytest.fixture(scope="module")
def scraper(clouds):
    """Yield a running cloud, and a token that may read metrics; Kueue verifies both with the API server."""
    live = Live(clouds.handson())
    rules = [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
    subject = {"kind": "ServiceAccount", "name": "default", "namespace": "default"}
    reference = {"apiGroup": GROUP, "kind": "ClusterRole", "name": NAME}
    metadata = {"metadata": {"name": NAME}}
    live.api.create(ROLES, {"apiVersion": f"{GROUP}/v1", "kind": "ClusterRole", **metadata, "rules": rules})
    binding = {"kind": "ClusterRoleBinding", **metadata, "subjects": [subject], "roleRef": reference}
    live.api.create(BINDINGS, {"apiVersion": f"{GROUP}/v1", **binding})
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    token = live.api.create("/api/v1/namespaces/default/serviceaccounts/default/token", request)["status"]["token"]
    yield live, token
    for folder in (BINDINGS, ROLES):
        live.api.delete(f"{folder}/{NAME}")


def page(live, token):
    """Return the lines of Kueue's metrics endpoint about its own metrics."""
    answer = urllib3.PoolManager(cert_reqs="CERT_NONE").request(
        "GET",
        f"https://127.0.0.1:{live.instance.ports()['kueue-metrics']}/metrics",
        headers={"Authorization": f"Bearer {token}"},
    )
    assert answer.status == 200, answer.data
    return [line for line in answer.data.decode().splitlines() if line.startswith("kueue_")]


def exported(live, token):
    """Return metric → labels of Kueue's metrics endpoint."""
    metrics = {}
    for line in page(live, token):
        name, _, rest = line.partition("{")
        metrics.setdefault(name, set()).update(LABEL.findall(rest))
    return metrics


@pytest.mark.platform
@pytest.mark.timeout(900)
@pytest.mark.filterwarnings("ignore:Unverified HTTPS request")
def test_the_running_kueue_exports_what_the_catalog_says(scraper):
    eventually(lambda: exported(*scraper).keys() >= AT_ONCE, lambda: sorted(exported(*scraper)))
    for name, labels in exported(*scraper).items():
        assert name in metrics(), f"{name} is not in the catalog"
        assert labels <= metrics()[name].labels, name

"""KEDA's own operator: a queue, a metric and a query create pods, pods create nodes, and all are removed again.

moto plays the sources SQS and CloudWatch, and a fixed response plays Prometheus. The operator scales between zero and
one. Beyond that, it creates a HorizontalPodAutoscaler, for which Kubernetes calls KEDA's metrics server.
"""

import json
import threading
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import boto3
import pytest
import yaml
from moto.server import ThreadedMotoServer

from hpkit_local.kubernetes.crds import crds_in
from hpkit_local.toolchain.table import tool_named
from tests.local.controllers.conftest import REGION
from tests.local.controllers.karpenter import POOLS, has, node_class, node_pool, nodes_of_pool
from tests.running import eventually, making, tools_or_skip

pytestmark = [pytest.mark.nightly, pytest.mark.cluster, pytest.mark.timeout(1800)]

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
KEDA = "/apis/keda.sh/v1alpha1"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
SCALERS = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
NAMESPACES = "/api/v1/namespaces"
KEYS = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"}
PARTS = ("keda-operator", "keda-metrics-apiserver")
ACCOUNT = {"apiVersion": "v1", "kind": "ServiceAccount"}
METRICS = {
    "apiVersion": "apiregistration.k8s.io/v1",
    "kind": "APIService",
    "metadata": {"name": "v1beta1.external.metrics.k8s.io"},
    "spec": {
        "service": {"name": "keda-operator-metrics-apiserver", "namespace": "keda", "port": 443},
        "group": "external.metrics.k8s.io",
        "version": "v1beta1",
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
    },
}
OPERATOR_ARGUMENTS = [
    *("--leader-elect", "--zap-log-level=info", "--cert-dir=/certs", "--enable-cert-rotation=true"),
    *("--cert-secret-name=kedaorg-certs", "--operator-service-name=keda-operator", "--enable-webhook-patching=false"),
    "--metrics-server-service-name=keda-operator-metrics-apiserver",
]
METRICS_ARGUMENTS = [
    *("--port=8080", "--secure-port=6443", "--logtostderr=true", "--stderrthreshold=ERROR", "--v=0"),
    *("--client-ca-file=/certs/ca.crt", "--tls-cert-file=/certs/tls.crt", "--tls-private-key-file=/certs/tls.key"),
    *("--cert-dir=/certs", "--metrics-service-address=keda-operator.keda.svc.cluster.local:9666"),
]


@pytest.fixture(scope="module")
def aws_sources():
    """Yield the address of an AWS that has queues and metrics."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(scope="module")
def prometheus():
    """Yield the address of a server that returns a number for every query, and a list with the number."""
    answer = [0]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            value = {"metric": {}, "value": [1700000000, str(answer[0])]}
            body = json.dumps({"status": "success", "data": {"resultType": "vector", "result": [value]}}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", answer
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def make(api):
    with making(api) as make:
        yield make


@pytest.fixture(scope="module")
def operator(make, aws_sources):
    """Install KEDA's CRDs, its operator and its metrics server under the chart's names, with the local role."""
    kinds, *_ = tools_or_skip("keda-crds", *PARTS)
    for crd in crds_in(kinds.path):
        make(CRDS, crd)
    make(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "keda"}})
    make(f"{NAMESPACES}/keda/serviceaccounts", {**ACCOUNT, "metadata": {"name": "keda-operator"}})
    group = "rbac.authorization.k8s.io"
    binding = {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "keda-operator"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "keda-operator", "namespace": "keda"}],
    }
    make(f"{RBAC}/clusterrolebindings", binding)
    make("/apis/apiregistration.k8s.io/v1/apiservices", METRICS)
    # On EKS, Pod Identity sets these in a pod.
    given = {"AWS_REGION": REGION, "AWS_ENDPOINT_URL": aws_sources, **KEYS}
    part(make, "keda-operator", "keda", {9666: 9666}, OPERATOR_ARGUMENTS, given, optional=True)
    part(make, "keda-operator-metrics-apiserver", "keda-metrics-apiserver", {443: 6443}, METRICS_ARGUMENTS, {})


def part(make, name, image, ports, arguments, variables, *, optional=False):
    """Create a Deployment and its Service."""
    labels = {"app": name}
    own = {"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}
    given = {"WATCH_NAMESPACE": "", **variables}
    container = {
        "name": name,
        "image": f"ghcr.io/kedacore/{image}:{tool_named('keda-operator').version}",
        "command": ["/keda"],
        "args": arguments,
        "env": [own, *({"name": key, "value": value} for key, value in given.items())],
        "volumeMounts": [{"mountPath": "/certs", "name": "certificates", "readOnly": True}],
    }
    pod = {
        "serviceAccountName": "keda-operator",
        # Without a NodePool that adds a node for it.
        "nodeSelector": {"sagemaker.amazonaws.com/instance-group-name": "cpu"},
        "containers": [container],
        "volumes": [{"name": "certificates", "secret": {"secretName": "kedaorg-certs", "optional": optional}}],
    }
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}},
    }
    make("/apis/apps/v1/namespaces/keda/deployments", deployment)
    served = [{"port": port, "targetPort": target} for port, target in ports.items()]
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}}
    make(f"{NAMESPACES}/keda/services", {**service, "spec": {"selector": labels, "ports": served}})


@pytest.fixture
def authentication(operator, api):
    document = yaml.safe_load((EXAMPLES / "keda-authentication.yaml").read_text(encoding="utf-8"))
    with making(api) as make_for_a_test:
        make_for_a_test(f"{KEDA}/clustertriggerauthentications", document)
        yield


@pytest.fixture
def server(scaled, environment, api):
    """Create a Deployment with zero replicas, whose pods need a GPU each, and a NodePool for them."""
    node_class(api, "burst", ["burst"])
    disruption = {"consolidateAfter": "0s", "consolidationPolicy": "WhenEmpty", "budgets": [{"nodes": "100%"}]}
    node_pool(api, "serving", limits={"nvidia.com/gpu": 3}, disruption=disruption)
    eventually(lambda: has(api, f"{POOLS}/serving", "Ready", "True"), "the pool is Ready")
    document = yaml.safe_load((EXAMPLES / "server.yaml").read_text(encoding="utf-8"))
    document["metadata"] = {"name": "server"}
    document["spec"]["replicas"] = 0
    document["spec"]["template"]["metadata"]["labels"] = {"app": "server"}
    api.apply(f"{DEPLOYMENTS}/server", document)
    yield
    api.delete(f"{DEPLOYMENTS}/server")
    api.delete(f"{POOLS}/serving")
    eventually(lambda: nodes_of_pool(api) == [], "the nodes go with the pool")


@contextmanager
def scaled_by(api, name, **trigger):
    """Apply a sample's ScaledObject, from zero to eight replicas, polled every second."""
    document = yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text(encoding="utf-8"))
    document["metadata"]["namespace"] = "default"
    document["spec"] |= {"minReplicaCount": 0, "pollingInterval": 1, "cooldownPeriod": 2}
    document["spec"]["triggers"][0]["metadata"] |= trigger
    folder = f"{KEDA}/namespaces/default/scaledobjects"
    path = f"{folder}/{document['metadata']['name']}"
    api.create(folder, document)
    try:
        yield path
    finally:
        api.delete(path)
        eventually(lambda: api.items(folder) == [] == api.items(SCALERS), "KEDA lets go of it, and its scaler goes")


def client(service, aws):
    session = boto3.Session("local", "local", region_name=REGION)
    return session.client(service, endpoint_url=aws)


def by_messages(aws, prometheus):
    """Return the inputs of the sample's trigger, and functions that create and remove work for at least one pod."""
    sqs = client("sqs", aws)
    url = sqs.create_queue(QueueName="requests")["QueueUrl"]

    def send(pods):
        for _ in range(5 * pods):
            sqs.send_message(QueueUrl=url, MessageBody="one")

    return {"queueURL": url}, send, partial(sqs.purge_queue, QueueUrl=url)


def by_a_metric(aws, prometheus):
    sample = yaml.safe_load((EXAMPLES / "keda-cloudwatch.yaml").read_text(encoding="utf-8"))
    metadata = sample["spec"]["triggers"][0]["metadata"]
    dimension = {"Name": metadata["dimensionName"], "Value": metadata["dimensionValue"]}

    def put(value):
        data = {"MetricName": metadata["metricName"], "Dimensions": [dimension], "Value": value}
        client("cloudwatch", aws).put_metric_data(Namespace=metadata["namespace"], MetricData=[data])

    return {"metricStatPeriod": "1"}, lambda pods: put(600.0 * pods), partial(put, 0.0)


def by_a_query(aws, prometheus):
    address, answer = prometheus
    return {"serverAddress": address}, lambda pods: answer.__setitem__(0, 10 * pods), lambda: answer.__setitem__(0, 0)


def replicas(api):
    found = api.read(f"{DEPLOYMENTS}/server")
    return found["spec"]["replicas"], found.get("status", {}).get("readyReplicas", 0)


SOURCES = {"keda-sqs": by_messages, "keda-cloudwatch": by_a_metric, "keda-prometheus": by_a_query}


@pytest.mark.parametrize("sample", SOURCES)
def test_work_makes_a_pod_the_pod_a_node_and_without_work_both_go(
    operator, authentication, server, api, aws_sources, prometheus, sample
):
    trigger, work, rest = SOURCES[sample](aws_sources, prometheus)
    with scaled_by(api, sample, **trigger) as path:
        eventually(lambda: api.items(SCALERS), lambda: api.read(path))
        (scaler,) = api.items(SCALERS)
        assert (scaler["spec"]["scaleTargetRef"]["name"], scaler["spec"]["maxReplicas"]) == ("server", 8)
        assert (replicas(api), nodes_of_pool(api)) == ((0, 0), [])
        work(1)
        eventually(lambda: replicas(api) == (1, 1), lambda: api.read(path))
        assert len(nodes_of_pool(api)) == 1
        rest()
        eventually(lambda: replicas(api)[0] == 0, "no work, no pod")
        eventually(lambda: nodes_of_pool(api) == [], "no pod, no node")


def test_more_work_makes_more_pods_up_to_what_the_node_pool_allows(
    operator, authentication, server, api, aws_sources, prometheus
):
    trigger, work, rest = by_a_query(aws_sources, prometheus)
    with scaled_by(api, "keda-prometheus", **trigger) as path:
        work(3)
        eventually(lambda: replicas(api) == (3, 3), lambda: (api.read(path), api.items(SCALERS)))
        assert len(nodes_of_pool(api)) == 3
        rest()
        eventually(lambda: replicas(api)[0] == 0, lambda: api.read(path))
        eventually(lambda: nodes_of_pool(api) == [], "no pod, no node")

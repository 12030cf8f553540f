"""Kueue: when it is healthy, which settings restart it; and CRDs as the local cloud creates them."""

import sys

import pytest
import yaml

from hpkit_local.kubernetes import kueue
from hpkit_local.kubernetes.api import without_descriptions
from hpkit_local.kubernetes.kueue import Kueue
from hpkit_local.kubernetes.kueue_run import merged
from hpkit_local.kubernetes.training_operator import TrainingOperator

READY = "/readyz"
JOBS = "/apis/batch/v1/namespaces/default/jobs?dryRun=All"
POD = {
    "metadata": {"uid": "1", "name": "operator", "namespace": "kubeflow"},
    "spec": {
        "serviceAccountName": "training-operator",
        "containers": [{"image": "kubeflow/training-operator:v1", "command": ["/manager"], "args": ["--extra"]}],
    },
    "status": {"phase": "Running"},
}
TOKEN = "/api/v1/namespaces/kubeflow/serviceaccounts/training-operator/token"  # noqa: S105 - a path


@pytest.mark.parametrize(
    ("statuses", "healthy"),
    [({}, True), ({READY: 404}, False), ({JOBS: 500}, False), ({JOBS: 503}, False), ({JOBS: 403}, True)],
    ids=["all-answer", "kueue-starts", "no-webhook-of-jobs", "api-server-starts", "refused-by-a-policy"],
)
def test_kueue_is_healthy_when_the_api_server_reaches_each_webhook(tmp_path, monkeypatch, statuses, healthy):
    asked = []

    def http_status(port, path, **_):
        asked.append((port, path))
        return statuses.get(path, 200)

    monkeypatch.setattr(kueue, "http_status", http_status)
    service = Kueue(
        executable=tmp_path,
        manifests=tmp_path,
        training_operator=tmp_path,
        folder=tmp_path,
        kubeconfig=tmp_path,
        authority=tmp_path,
        client=(tmp_path, tmp_path),
        log=tmp_path,
        ports={"kueue-health": 1, "kueue-webhook": 2, "kueue-metrics": 3, "kube-apiserver": 5, "kwok": 6},
        on_by_default=(),
    ).service()
    assert service.healthy() is healthy
    assert asked[0] == (1, READY)
    assert healthy == (len(asked) == 5 and all(port == 5 for port, _ in asked[1:]))


def test_settings_that_name_what_is_on_by_default_are_no_reason_to_restart_and_others_are():
    base = {"webhook": {"port": 1}, "featureGates": {"TopologyAwareScheduling": True, "VisibilityOnDemand": False}}
    for gates in ({}, {"TopologyAwareScheduling": True}, {"VisibilityOnDemand": True}):
        assert merged(base, yaml.safe_dump({"featureGates": gates})) == base, gates
    off = merged(base, yaml.safe_dump({"featureGates": {"TopologyAwareScheduling": False}}))
    assert off["featureGates"] == {"TopologyAwareScheduling": False, "VisibilityOnDemand": False}


def test_schemas_lose_their_descriptions_and_no_field_of_that_name():
    def schema(**more):
        return {"anyOf": [more], "properties": {"description": {"type": "string", **more}}, **more}

    assert without_descriptions(schema(description="what it is for")) == schema()


class Cluster:
    """An API server with the operator's pod."""

    def __init__(self):
        self.pods, self.created = [POD], []

    def items(self, *_, **__):
        return list(self.pods)

    def create(self, path, document):
        self.created.append((path, document))
        return {"status": {"token": "a-token"}}


@pytest.fixture
def cluster():
    return Cluster()


@pytest.fixture
def operator(cluster, tmp_path):
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump({"users": [{"name": "admin", "user": {"client-key-data": "secret"}}]}))
    made = TrainingOperator(cluster, kubeconfig=kubeconfig, executable=tmp_path / "operator", logs=tmp_path)
    yield made
    made.end()


def test_a_missing_executable_is_reported_once_at_the_pod(operator, cluster):
    assert operator.poll(), "nothing is awaited"
    assert operator.poll()
    ((path, event),) = cluster.created
    assert path == "/api/v1/namespaces/kubeflow/events"
    assert "hpkit local doctor --fix training-operator" in event["message"]


def test_the_process_runs_with_the_pods_token_until_the_pod_is_deleted(operator, cluster, tmp_path):
    script = "import os, sys, time; print(sys.argv, open(os.environ['KUBECONFIG']).read(), flush=True); time.sleep(60)"
    (tmp_path / "operator").write_text(f"#!{sys.executable}\n{script}\n")
    (tmp_path / "operator").chmod(0o755)
    assert operator.poll()
    assert [path for path, _ in cluster.created] == [TOKEN]
    log = tmp_path / "training-operator.log"
    while "a-token" not in log.read_text():
        assert not operator.died()
    assert "--extra" in log.read_text()
    assert "secret" not in log.read_text()
    cluster.pods.clear()
    assert operator.poll()
    assert not list(tmp_path.glob("training-operator.json"))

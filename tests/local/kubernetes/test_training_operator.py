"""The training operator's process follows its pod."""

import sys

import pytest
import yaml

from hpkit_local.kubernetes.training_operator import TrainingOperator

POD = {
    "metadata": {"uid": "1", "name": "operator", "namespace": "kubeflow"},
    "spec": {
        "serviceAccountName": "training-operator",
        "containers": [{"image": "kubeflow/training-operator:v1", "command": ["/manager"], "args": ["--extra"]}],
    },
    "status": {"phase": "Running"},
}
TOKEN = "/api/v1/namespaces/kubeflow/serviceaccounts/training-operator/token"  # noqa: S105 - a path


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

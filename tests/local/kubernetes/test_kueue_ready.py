"""Kueue is healthy when its webhooks respond to the API server."""

import pytest

from hpkit_local.kubernetes import kueue
from hpkit_local.kubernetes.kueue import Kueue

READY = "/readyz"
JOBS = "/apis/batch/v1/namespaces/default/jobs?dryRun=All"


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

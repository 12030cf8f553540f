"""The real Kueue on the local API server: its webhooks answer. How it shares is seen in tests/local/controllers."""

import pytest

from local.kubernetes.api import RefusedError

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]

QUEUES = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues"


def test_kueues_own_webhook_refuses_a_borrow_limit_without_a_cohort(api):
    resources = [{"name": "cpu", "nominalQuota": 1, "borrowingLimit": 1}]
    groups = [{"coveredResources": ["cpu"], "flavors": [{"name": "ml.c5.2xlarge", "resources": resources}]}]
    spec = {"namespaceSelector": {}, "resourceGroups": groups}
    document = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": "invalid"}}
    with pytest.raises(RefusedError, match="must be nil when cohort"):
        api.apply(f"{QUEUES}/invalid", {**document, "spec": spec})

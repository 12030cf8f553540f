"""What charts register behind a Service doesn't stay, because no pod answers."""

from hpkit_local.controllers.wipe import delete_unserved

HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"


class Cluster:
    """An API server with these objects."""

    def __init__(self, **objects):
        self.objects, self.deleted = objects, []

    def items(self, folder, **_):
        return self.objects.get(folder.rpartition("/")[2], [])

    def delete(self, path):
        self.deleted.append(path)


def webhook(name, **client):
    return {"metadata": {"name": name}, "webhooks": [{"clientConfig": client}]}


def test_api_services_and_webhooks_behind_a_service_are_deleted_and_others_stay():
    cluster = Cluster(
        apiservices=[
            {"metadata": {"name": "v1beta1.external.metrics.k8s.io"}, "spec": {"service": {"name": "metrics"}}},
            {"metadata": {"name": "v1.apps"}, "spec": {}},
        ],
        validatingwebhookconfigurations=[
            webhook("keda-admission", service={"name": "keda"}),
            webhook("kueue", url="https://127.0.0.1:1"),
            {"metadata": {"name": "empty"}},
        ],
    )
    delete_unserved(cluster)
    assert cluster.deleted == [f"{SERVICES}/v1beta1.external.metrics.k8s.io", f"{HOOKS}/keda-admission"]

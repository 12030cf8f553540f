"""The local cloud with handson-dev, and its API server, for the examples from articles."""

import os
import signal

import pytest

from hpkit_local.plugins.kubernetes.substitute import chart_documents
from tests.running import eventually, get_tools, making

RBAC = "/apis/rbac.authorization.k8s.io/v1"
FOLDERS = {
    "Namespace": "/api/v1/namespaces",
    "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "ServiceAccount": "/api/v1/namespaces/kubeflow/serviceaccounts",
    "ClusterRole": f"{RBAC}/clusterroles",
    "ClusterRoleBinding": f"{RBAC}/clusterrolebindings",
    "Deployment": "/apis/apps/v1/namespaces/kubeflow/deployments",
}


@pytest.fixture(scope="module")
def make(api):
    with making(api) as make:
        yield make


@pytest.fixture(scope="module")
def operator(instance, make):
    """The training operator that the local cloud installs instead of the dependencies chart."""
    found, _ = get_tools("training-operator-manifests", "training-operator")
    for document in chart_documents(found.path):
        make(FOLDERS[document["kind"]], document)
    before = instance.state().parts["kueue"]
    os.kill(before.pid, signal.SIGTERM)
    eventually(lambda: instance.state().parts["kueue"].restarts > before.restarts, "Kueue's end is seen")
    eventually(lambda: instance.state().ready, "it runs again, and sees the new kinds")

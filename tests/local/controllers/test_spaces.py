"""What the fake controller of spaces creates for a Workspace; the API server is a dict of paths."""

from copy import deepcopy

import pytest

from hpkit_local.aws.snapshot import Snapshot
from hpkit_local.controllers.spaces import run_spaces, spaces
from hpkit_local.kubernetes.api import RefusedError

FOLDER = "/apis/workspace.jupyter.org/v1alpha1/workspaces"
MINE = "/apis/workspace.jupyter.org/v1alpha1/namespaces/hyperpod-ns-john/workspaces/lab"
DEPLOYMENT = "/apis/apps/v1/namespaces/hyperpod-ns-john/deployments/workspace-lab"


class Server:
    """Objects by path, and the received requests."""

    def __init__(self, *workspaces):
        self.workspaces, self.found, self.asked, self.refuses = list(workspaces), {}, [], ""

    def items(self, folder):
        assert folder == FOLDER
        return deepcopy(self.workspaces)

    def find(self, path):
        return deepcopy(self.found.get(path))

    def apply(self, path, document):
        self.asked.append(path)
        if self.refuses and not path.endswith("/status"):
            raise RefusedError(self.refuses, status=422)
        if path == f"{MINE}/status":
            self.workspaces[0]["status"] = document["status"]
        else:
            self.found[path] = deepcopy(document)
        return document

    def delete(self, path):
        del self.found[path]

    def true(self):
        """Return the conditions with status True."""
        return [each["type"] for each in self.workspaces[0]["status"]["conditions"] if each["status"] == "True"]


def snapshot(*addons):
    found = {f"kube|{name}": {} for name in addons}
    return Snapshot({}, found, {}, {}, [], {}, {}, {}, set())


def workspace(**spec):
    labels = {"kueue.x-k8s.io/queue-name": "hyperpod-ns-john-localqueue"}
    metadata = {"name": "lab", "namespace": "hyperpod-ns-john", "uid": "1", "generation": 1, "labels": labels}
    return {"metadata": metadata, "spec": {"displayName": "Lab", **spec}}


INSTALLED = snapshot("amazon-sagemaker-spaces")


@pytest.fixture
def server():
    return Server(workspace(tolerations=[{"key": "nvidia.com/gpu"}]))


def test_the_kinds_come_with_the_add_on_alone():
    kinds = {each.name for each in spaces(INSTALLED).items if each.kind.kind == "CustomResourceDefinition"}
    names = ("workspaces", "workspacetemplates", "workspaceaccessstrategies")
    assert kinds == {f"{name}.workspace.jupyter.org" for name in names}
    assert spaces(snapshot("cert-manager")).items == ()
    server = Server(workspace())
    run_spaces(server, snapshot("cert-manager"))
    assert server.asked == []


def test_a_deployment_and_its_pods_have_the_labels_of_the_space_and_end_with_it(server):
    run_spaces(server, INSTALLED)
    made = server.found[DEPLOYMENT]
    for labels in (made["metadata"]["labels"], made["spec"]["template"]["metadata"]["labels"]):
        assert labels["kueue.x-k8s.io/queue-name"] == "hyperpod-ns-john-localqueue"
        assert labels["workspace.jupyter.org/workspace-name"] == "lab"
    assert made["spec"]["template"]["spec"]["tolerations"] == [{"key": "nvidia.com/gpu"}]
    (owner,) = made["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("Workspace", "lab", True)


def test_it_is_available_when_its_pod_is_ready_and_nothing_is_written_twice(server):
    run_spaces(server, INSTALLED)
    assert server.true() == ["Progressing"]
    server.found[DEPLOYMENT]["status"] = {"readyReplicas": 1}
    run_spaces(server, INSTALLED)
    assert server.true() == ["Available"]
    server.asked.clear()
    run_spaces(server, INSTALLED)
    assert server.asked == []


def test_a_stopped_space_has_no_deployment(server):
    run_spaces(server, INSTALLED)
    server.workspaces[0]["spec"]["desiredStatus"] = "Stopped"
    run_spaces(server, INSTALLED)
    run_spaces(server, INSTALLED)
    assert (DEPLOYMENT in server.found, server.true()) == (False, ["Stopped"])


def test_what_the_api_server_refuses_is_in_its_conditions(server):
    server.refuses = "denied: the image"
    run_spaces(server, INSTALLED)
    assert server.true() == ["Degraded"]
    assert "denied: the image" in str(server.workspaces[0]["status"])

"""Waiting until controllers, scheduler and kubelet have processed an object, and the message if they fail."""

import pytest

from hpkit_local.kubernetes.control_plane import NODE_ANNOTATION
from tests.local.plugins.kubernetes.harness import FailedError
from tests.running import eventually

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

DEPLOYMENT = "apps/v1:Deployment"
NODE = "/api/v1/nodes/waits-0"
PODS = "/api/v1/namespaces/default/pods"
DEPLOYMENTS, REPLICA_SETS = (f"/apis/apps/v1/namespaces/default/{plural}" for plural in ("deployments", "replicasets"))
NOWHERE = {"nodeSelector": {"acme.example/zone": "nowhere"}}


def pod_spec(**fields):
    tolerations = [{"operator": "Exists"}]
    return {"containers": [{"name": "main", "image": "none"}], "tolerations": tolerations, **fields}


def workload(kind, name, *, annotations=None, spec=None, runs=None, **pod):
    """Return a workload of one pod; `spec` adds to its fields, `pod` to its pods', `runs` describes how they run."""
    labels = {"app": name}
    played = {f"hpkit.local/{key}": value for key, value in (runs or {}).items()}
    metadata = {"labels": labels, **({"annotations": played} if played else {})}
    template = {"metadata": metadata, "spec": pod_spec(**pod)}
    selector = {} if kind == "Job" else {"selector": {"matchLabels": labels}}
    prefixed = {f"pulumi.com/{key}": value for key, value in (annotations or {}).items()}
    return {
        "apiVersion": "batch/v1" if kind == "Job" else "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default", "annotations": prefixed},
        "spec": {**selector, "template": template, **(spec or {})},
    }


def failed(plugin, *arguments, **options):
    """Return why a creation failed, and what it keeps in the state."""
    with pytest.raises(FailedError) as failure:
        plugin.create(*arguments, **options)
    return str(failure.value), failure.value.kept


def names(api, folder, prefix):
    return [
        each["metadata"]["name"] for each in api.read(folder)["items"] if each["metadata"]["name"].startswith(prefix)
    ]


def progress(plugin):
    return [text for severity, text in plugin.logs if severity == "info"]


@pytest.fixture
def node(api):
    """Create a kwok node that accepts any pod."""
    document = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "waits-0", "annotations": NODE_ANNOTATION}}
    resources = {"cpu": "8", "memory": "32Gi", "pods": "20"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "as the test says"}
    api.apply(NODE, document)
    api.apply(f"{NODE}/status", {**document, "status": {"allocatable": resources, "conditions": [ready]}})
    yield
    api.delete(NODE)


def test_a_deployment_is_waited_for_until_its_pods_are_available(plugin, node):
    object_id, inputs, outputs = plugin.create(DEPLOYMENT, "web", workload("Deployment", "web", spec={"replicas": 2}))
    assert outputs["status"]["availableReplicas"] == 2
    changed = workload("Deployment", "web", spec={"replicas": 1}, terminationGracePeriodSeconds=1)
    outputs = plugin.update(DEPLOYMENT, "web", inputs, changed, outputs=outputs)
    status = outputs["status"]
    assert (status["replicas"], status["updatedReplicas"], status["availableReplicas"]) == (1, 1, 1)
    assert status["observedGeneration"] == outputs["metadata"]["generation"]
    plugin.delete(DEPLOYMENT, "web", object_id, outputs)


def test_a_deployment_that_cannot_be_placed_fails_with_what_the_scheduler_says_and_stays_in_state(plugin, api):
    stuck = workload("Deployment", "stuck", annotations={"timeoutSeconds": "2"}, **NOWHERE)
    text, kept = failed(plugin, DEPLOYMENT, "stuck", stuck, timeout=0.0)
    assert text.startswith("Deployment default/stuck is not ready: 0 of 1 pods are available")
    assert "pod stuck-" in text
    assert "Unschedulable" in text
    assert "time-out after 2 s" in text, "pulumi.com/timeoutSeconds is heeded"
    assert kept.id == "default/stuck"
    assert any("0 of 1 pods" in line for line in progress(plugin))
    with pytest.raises(FailedError, match=r"is not ready: 0 of 1 pods are available.*Unschedulable") as failure:
        plugin.read(DEPLOYMENT, "stuck", kept.id, inputs=stuck)
    assert failure.value.kept.id == kept.id, "a refresh keeps it, and that it is not ready"
    skipping = workload("Deployment", "stuck", annotations={"skipAwait": "true"}, **NOWHERE)
    outputs = plugin.update(DEPLOYMENT, "stuck", stuck, skipping, outputs=workload("Deployment", "stuck"))
    plugin.delete(DEPLOYMENT, "stuck", kept.id, outputs)
    eventually(lambda: not names(api, DEPLOYMENTS, "stuck"), "the Deployment goes, though nobody waited for it")


def test_a_deletion_waits_for_what_belongs_to_the_object_unless_told_otherwise(plugin, api, node):
    object_id, _, outputs = plugin.create(DEPLOYMENT, "owner", workload("Deployment", "owner"))
    plugin.delete(DEPLOYMENT, "owner", object_id, outputs)
    assert not names(api, PODS, "owner-")
    left = workload("Deployment", "left", annotations={"deletionPropagationPolicy": "orphan"})
    object_id, _, outputs = plugin.create(DEPLOYMENT, "left", left)
    plugin.delete(DEPLOYMENT, "left", object_id, outputs)
    (replica_set,) = names(api, REPLICA_SETS, "left-")
    api.delete(f"{REPLICA_SETS}/{replica_set}")

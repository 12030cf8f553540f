"""Objects of any kind on a real API server: the plugin creates, changes, reads and deletes them."""

import base64
import json

import pytest

from hpkit_local.kubernetes.api import RejectedError
from hpkit_local.kubernetes.control_plane import NODE_ANNOTATION
from hpkit_local.kubernetes.pki import authority
from tests.local.plugins.kubernetes.harness import CRD, FailedError, in_background, in_process, when_possible
from tests.running import eventually

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

CONFIG_MAP, WIDGET = "core/v1:ConfigMap", "acme.example/v1:Widget"
DEFINITION, PATCH = "apiextensions.k8s.io/v1:CustomResourceDefinition", "core/v1:ConfigMapPatch"
DEPLOYMENT = "apps/v1:Deployment"
NODE = "/api/v1/nodes/waits-0"
PODS = "/api/v1/namespaces/default/pods"
DEPLOYMENTS, REPLICA_SETS = (f"/apis/apps/v1/namespaces/default/{plural}" for plural in ("deployments", "replicasets"))
NOWHERE = {"nodeSelector": {"acme.example/zone": "nowhere"}}


def config_map(name="settings", namespace="default", **data):
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def widget(name, size=1, **annotations):
    # In the background: the garbage collector detects a new kind only after half a minute.
    annotations = {"deletionPropagationPolicy": "background", **annotations}
    metadata = {"name": name, "annotations": {f"pulumi.com/{key}": value for key, value in annotations.items()}}
    return {"apiVersion": "acme.example/v1", "kind": "Widget", "metadata": metadata, "spec": {"size": size}}


def path(name, namespace="default"):
    return f"/api/v1/namespaces/{namespace}/configmaps/{name}"


@pytest.fixture
def widgets(plugin):
    crd = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", **CRD}
    object_id, _, outputs = plugin.create(DEFINITION, "crd", crd)
    conditions = {each["type"]: each["status"] for each in outputs["status"]["conditions"]}
    assert conditions["Established"] == "True", "a CRD is waited for"
    yield
    plugin.delete(DEFINITION, "crd", object_id, outputs)


def test_a_conflict_names_manager_and_field_and_can_be_forced(plugin, api):
    object_id, inputs, outputs = plugin.create(CONFIG_MAP, "fought", config_map("fought", a="1"))
    api.apply(path("fought"), {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "theirs"}})
    wanted = {**inputs, "data": {"a": "ours"}}
    for preview in (True, False):
        with pytest.raises(FailedError, match=r'\.data\.a: conflict with "hpkit-local".*pulumi.com/patchForce'):
            plugin.update(CONFIG_MAP, "fought", inputs, wanted, outputs=outputs, preview=preview)
    wanted["metadata"] = {**wanted["metadata"], "annotations": {"pulumi.com/patchForce": "true"}}
    outputs = plugin.update(CONFIG_MAP, "fought", inputs, wanted, outputs=outputs)
    assert outputs["data"] == {"a": "ours"}
    for preview in (True, False):
        assert "data" not in plugin.update(
            CONFIG_MAP, "fought", wanted, config_map("fought"), outputs=outputs, preview=preview
        )
    plugin.delete(CONFIG_MAP, "fought", object_id, outputs)


def test_preview_goes_on_where_kind_or_namespace_is_not_there_yet(plugin, api):
    gadget = {"apiVersion": "nobody.example/v1", "kind": "Gadget", "metadata": {"name": "g"}, "spec": {"a": 1}}
    _, _, outputs = plugin.create("nobody.example/v1:Gadget", "g", gadget, preview=True)
    assert outputs["spec"] == {"a": 1}
    with pytest.raises(FailedError, match=r"doesn't serve Gadget of nobody.example/v1.*depends_on"):
        plugin.create("nobody.example/v1:Gadget", "g", gadget)
    plugin.create(CONFIG_MAP, "early", config_map("early", namespace="later"), preview=True)
    with pytest.raises(RejectedError, match="404"):
        api.read("/api/v1/namespaces/later")


@pytest.mark.parametrize("wanted", ["condition=Ready", "condition=Ready=True"])
def test_a_custom_resource_is_waited_for_as_its_annotation_says(plugin, api, widgets, wanted):
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    place = "/apis/acme.example/v1/namespaces/default/widgets/slow"

    def make_ready():
        when_possible(lambda: api.read(place))
        document = {"apiVersion": "acme.example/v1", "kind": "Widget", "metadata": {"name": "slow"}, "status": status}
        api.apply(f"{place}/status", document)

    with in_background(make_ready):
        found, _, outputs = plugin.create(WIDGET, "slow", widget("slow", waitFor=wanted))
    assert outputs["status"]["phase"] == "Running"
    plugin.delete(WIDGET, "slow", found, outputs)


def test_what_does_not_become_ready_stays_in_state_and_says_why(plugin, widgets):
    with pytest.raises(FailedError, match=r"Widget default/never is not ready: condition Ready .* time-out") as failure:
        plugin.create(WIDGET, "never", widget("never", waitFor="condition=Ready"), timeout=1.0)
    kept = failure.value.kept
    assert kept.id == "default/never"
    with pytest.raises(FailedError, match=r"is not ready: condition Ready doesn't exist yet") as failure:
        plugin.read(WIDGET, "never", kept.id, inputs=widget("never", waitFor="condition=Ready"))
    assert failure.value.kept.id == kept.id, "a refresh keeps it, and that it is not ready"
    plugin.delete(WIDGET, "never", kept.id, widget("never"))


def test_a_patch_gives_its_fields_back(plugin, api):
    plugin.create(PATCH, "shared", config_map("shared", ours="1"), preview=True)
    with pytest.raises(FailedError, match=r"ConfigMap default/shared doesn't exist"):
        plugin.create(PATCH, "shared", config_map("shared", ours="1"))
    api.apply(path("shared"), config_map("shared", theirs="1"))
    object_id, _, outputs = plugin.create(PATCH, "shared", config_map("shared", ours="1"))
    assert outputs["data"] == {"ours": "1", "theirs": "1"}
    assert plugin.diff(PATCH, "shared", config_map("shared", ours="1"), config_map("shared", ours="2"))[1] == []
    plugin.delete(PATCH, "shared", object_id, outputs)
    assert api.read(path("shared"))["data"] == {"theirs": "1"}
    with pytest.raises(FailedError, match=r"metadata\.name: is required"):
        plugin.create(PATCH, "nameless", {"apiVersion": "v1", "kind": "ConfigMap"})


@pytest.mark.parametrize(
    ("which", "says"),
    [("user", r"401 Unauthorized.*EKS access entry"), ("authority", r"no safe connection.*certificate-authority-data")],
)
def test_why_there_is_no_way_in_is_told(kubeconfig, tmp_path, which, says):
    document = json.loads(kubeconfig)
    document["users"][0]["user"] = {"token": "nobody"}
    if which == "authority":
        other = authority(tmp_path, "other").certificate.read_bytes()
        document["clusters"][0]["cluster"]["certificate-authority-data"] = base64.b64encode(other).decode()
    with in_process(kubeconfig=json.dumps(document)) as plugin, pytest.raises(FailedError, match=says):
        plugin.create(CONFIG_MAP, "a", config_map("a"))


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

"""Objects of any kind on a real API server: the plugin creates, changes, reads and deletes them."""

import base64
import json

import pytest

from hpkit_local.kubernetes.api import RefusedError
from hpkit_local.kubernetes.pki import authority
from tests.local.plugins.kubernetes.harness import CRD, FailedError, in_background, in_process, when_possible

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

CONFIG_MAP, WIDGET = "core/v1:ConfigMap", "acme.example/v1:Widget"
DEFINITION, PATCH = "apiextensions.k8s.io/v1:CustomResourceDefinition", "core/v1:ConfigMapPatch"


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
    with pytest.raises(RefusedError, match="404"):
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
    [
        ("user", r"401 Unauthorized.*EKS access entry"),
        ("authority", r"no safe connection.*certificate-authority-data"),
    ],
)
def test_why_there_is_no_way_in_is_told(kubeconfig, tmp_path, which, says):
    document = json.loads(kubeconfig)
    document["users"][0]["user"] = {"token": "nobody"}
    if which == "authority":
        other = authority(tmp_path, "other").certificate.read_bytes()
        document["clusters"][0]["cluster"]["certificate-authority-data"] = base64.b64encode(other).decode()
    with in_process(kubeconfig=json.dumps(document)) as plugin, pytest.raises(FailedError, match=says):
        plugin.create(CONFIG_MAP, "a", config_map("a"))

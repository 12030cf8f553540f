"""The plugin under the real engine, found as an installed one: up, no change, edits, refresh, import, destroy."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from hpkit.errors import ToolError
from hpkit_local.kubernetes.api import RefusedError
from hpkit_local.supervisor import control
from tests.local.plugins.kubernetes.harness import CRD, in_background, when_possible

pytestmark = [pytest.mark.engine, pytest.mark.cluster, pytest.mark.timeout(900)]

PROGRAM = """
import json
from pathlib import Path

import pulumi
import pulumi_kubernetes as k8s

spec = json.loads(Path("spec.json").read_text())
namespace = k8s.core.v1.Namespace("space", metadata={"name": "engine"})
inside = {"namespace": namespace.metadata["name"]}
k8s.core.v1.ConfigMap("settings", metadata=inside, data=spec["settings"])
k8s.core.v1.Secret("secret", metadata={**inside, "name": "secret"}, data={"password": "eA=="})
for name in ("reader", "writer"):
    rules = [{"api_groups": [""], "resources": ["pods"], "verbs": spec["verbs"]}]
    k8s.rbac.v1.Role(name, metadata={**inside, "name": name}, rules=rules)
role = {"api_group": "rbac.authorization.k8s.io", "kind": "Role", "name": spec["role"]}
subjects = [{"api_group": "rbac.authorization.k8s.io", "kind": "Group", "name": "team"}]
k8s.rbac.v1.RoleBinding("binding", metadata={**inside, "name": "binding"}, role_ref=role, subjects=subjects)
pod = {"containers": [{"name": "main", "image": "none"}], "restart_policy": "Never"}
k8s.batch.v1.Job(
    "job",
    metadata={
        **inside,
        "name": "job",
        "finalizers": ["acme.example/hold"],
        "annotations": {"pulumi.com/skipAwait": "true"},
    },
    spec={"suspend": True, "template": {"spec": pod}},
)
crd = k8s.apiextensions.v1.CustomResourceDefinition("crd", **spec["crd"])
# In the background: the garbage collector learns of a new kind only after half a minute.
annotations = {"pulumi.com/waitFor": "condition=Ready", "pulumi.com/deletionPropagationPolicy": "background"}
widget = k8s.apiextensions.CustomResource(
    "widget",
    api_version="acme.example/v1",
    kind="Widget",
    metadata={**inside, "name": "widget", "annotations": annotations},
    spec={"size": 1},
    opts=pulumi.ResourceOptions(depends_on=[crd]),
)
k8s.helm.v3.Release("chart", chart="HyperPodHelmChart", version="1.0.0", namespace=namespace.metadata["name"])
template = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "main", "image": "none"}], "nodeSelector": {"acme.example/zone": "nowhere"}},
}
k8s.apps.v1.Deployment(
    "web",
    metadata={**inside, "name": "web", "annotations": {"pulumi.com/timeoutSeconds": "2"}},
    spec={"replicas": spec["replicas"], "selector": {"matchLabels": {"app": "web"}}, "template": template},
)
k8s.helm.v3.Release(
    "sample",
    chart="./sample",
    name="sample",
    namespace=namespace.metadata["name"],
    values={"replicas": spec["replicas"]},
    timeout=spec["patience"],
)
pulumi.export("phase", widget.metadata["name"])
"""
CHART = {
    "Chart.yaml": "{apiVersion: v2, name: sample, version: 1.0.0}",
    "templates/web.yaml": """
apiVersion: apps/v1
kind: Deployment
metadata: {name: sample}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: sample}}
  template:
    metadata: {labels: {app: sample}}
    spec: {nodeSelector: {acme.example/zone: nowhere}, containers: [{name: main, image: none}]}
""",
}
ROLE = "/apis/rbac.authorization.k8s.io/v1/namespaces/engine/roles/reader"
WIDGET = "/apis/acme.example/v1/namespaces/engine/widgets/widget"
JOB = "/apis/batch/v1/namespaces/engine/jobs/job"


class Project:
    """A program in a folder of its own, in the environment that `hpkit local env` prints."""

    def __init__(self, folder, instance, api, kubeconfig):
        try:
            self.environment = {**os.environ, **control.environment(instance)}
        except ToolError as error:
            pytest.skip(str(error))
        self.folder, self.api = folder, api
        runtime = {"name": "python", "options": {"virtualenv": str(Path(sys.prefix))}}
        (folder / "Pulumi.yaml").write_text(json.dumps({"name": "hpkit", "runtime": runtime}))
        (folder / "__main__.py").write_text(textwrap.dedent(PROGRAM))
        (folder / "sample" / "templates").mkdir(parents=True)
        for name, text in CHART.items():
            (folder / "sample" / name).write_text(text)
        self.spec = {
            "settings": {"a": "1"},
            "verbs": ["get"],
            "role": "reader",
            "crd": CRD,
            "replicas": 0,
            "patience": 60,
        }
        self.run("stack", "init", "dev")
        self.run("config", "set", "kubernetes:kubeconfig", kubeconfig)

    def run(self, *arguments, check=True):
        (self.folder / "spec.json").write_text(json.dumps(self.spec))
        result = subprocess.run(
            ["pulumi", *arguments, "--non-interactive"],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
        output = result.stdout + result.stderr
        assert "Traceback" not in output, output
        assert "using pulumi-resource-" not in output, (
            "the plugin is an installed one, not one that happens to be there"
        )
        assert not check or result.returncode == 0, output
        return output

    def up(self, *options, check=True):
        return self.run("up", "--yes", "--skip-preview", *options, check=check)

    def preview(self):
        """Return operation by resource name, `same` left out."""
        output = self.run("preview", "--json")
        steps = json.loads(output[output.index("{") :])["steps"]
        return {step["urn"].rpartition("::")[2]: step["op"] for step in steps if step["op"] != "same"}

    def unready(self):
        """Return what the state says of each resource that was made and did not become ready."""
        resources = json.loads(self.run("stack", "export"))["deployment"]["resources"]
        return {each["urn"].rpartition("::")[2]: each["initErrors"] for each in resources if each.get("initErrors")}

    def make_ready(self):
        """Be the controller of the custom resource."""
        when_possible(lambda: self.api.read(WIDGET))
        status = {"conditions": [{"type": "Ready", "status": "True"}]}
        document = {"apiVersion": "acme.example/v1", "kind": "Widget", "metadata": {"name": "widget"}}
        self.api.apply(f"{WIDGET}/status", {**document, "status": status})

    def let_go(self):
        """Be the controller that holds the job, once it is being deleted."""

        def unhold():
            assert "deletionTimestamp" in self.api.read(JOB)["metadata"], "a deletion has begun"
            self.api.merge(JOB, {"metadata": {"finalizers": None}})

        when_possible(unhold)


@pytest.fixture(scope="module")
def project(tmp_path_factory, instance, api, kubeconfig):
    return Project(tmp_path_factory.mktemp("project"), instance, api, kubeconfig)


def test_up_then_no_change(project):
    assert project.preview()["widget"] == "create", "a kind that is not served yet does not stop a preview"
    with in_background(lambda: when_possible(project.make_ready)):
        output = project.up()
    assert "recorded, not installed" in output
    assert project.preview() == {}


def test_edits_change_in_place_or_take_a_new_object(project):
    project.spec |= {"settings": {"a": "2"}, "verbs": ["get", "list"], "role": "writer"}
    found = project.preview()
    assert found.pop("reader") == found.pop("writer") == "update"
    assert "replace" in found.pop("binding")
    assert "replace" in found.pop("settings"), "a ConfigMap takes a new one, as with the official plugin"
    assert found == {}
    project.up()


@pytest.mark.nightly
def test_what_does_not_become_ready_fails_up_stays_in_state_and_goes_on(project):
    project.spec |= {"replicas": 1, "patience": 5}
    output = project.up("--continue-on-error", check=False)
    assert "Deployment engine/web is not ready: 0 of 1 pods are available" in output
    assert "helm couldn't upgrade release engine/sample" in output
    assert "Deployment engine/sample: 0 of 1 pods are available" in output
    told = project.unready()
    assert set(told) == {"web", "sample"}
    assert "Unschedulable" in told["web"][0]
    assert set(project.preview()) == {"web", "sample"}, "the next run tries again"
    project.spec |= {"replicas": 0, "patience": 60}
    project.up()
    assert project.unready() == {}
    assert project.preview() == {}


@pytest.mark.nightly
def test_drift_is_found_and_a_conflict_is_told(project, api):
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["delete"]}]
    document = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "reader"}}
    api.apply(ROLE, {**document, "rules": rules})
    output = project.up("--refresh", check=False)
    assert 'conflict with "hpkit-local"' in output
    assert "pulumi.com/patchForce" in output
    api.delete(ROLE)
    project.up("--refresh")
    assert api.read(ROLE)["rules"][0]["verbs"] == ["get", "list"]


@pytest.mark.nightly
def test_an_object_is_imported_by_its_name(project, api):
    document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "found"}, "data": {"a": "b"}}
    api.apply("/api/v1/namespaces/default/configmaps/found", document)
    options = ("--yes", "--protect=false", "--generate-code=false")
    project.run("import", "kubernetes:core/v1:ConfigMap", "found", "default/found", *options)
    exported = json.loads(project.run("stack", "export"))["deployment"]["resources"]
    (inputs,) = [each["inputs"] for each in exported if each["urn"].endswith("::found")]
    assert inputs["data"] == {"a": "b"}


def test_destroy_leaves_nothing(project, api):
    with in_background(project.let_go):
        project.run("destroy", "--yes", "--skip-preview")
    for gone in (
        "/api/v1/namespaces/engine",
        "/api/v1/namespaces/default/configmaps/found",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.acme.example",
    ):
        with pytest.raises(RefusedError, match="404"):
            api.read(gone)

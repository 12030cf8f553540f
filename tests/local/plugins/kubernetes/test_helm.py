"""Releases as the real helm installs, changes, reads and uninstalls them."""

import base64
import gzip
import json
import subprocess
from contextlib import suppress

import pytest
from google.protobuf import empty_pb2
from pulumi.runtime.proto import plugin_pb2

from hpkit_local.kubernetes.api import RejectedError
from hpkit_local.plugins.kubernetes.substitute import SWITCH
from hpkit_local.toolchain import tool_path
from tests.local.plugins.kubernetes.harness import CONFIG_MAP, FailedError, in_background, sample_chart
from tests.running import chart_mirror, eventually, get_tools, tools_required

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

RELEASE = "helm.sh/v3:Release"
NAMESPACE = "/api/v1/namespaces/charts"
OPERATOR = "/apis/apps/v1/namespaces/kubeflow/deployments/training-operator"
MADE, HOOKED = (f"{NAMESPACE}/configmaps/{name}" for name in ("made", "hooked"))


@pytest.fixture(scope="module")
def helm(instance):
    """Return a function that runs helm directly."""
    with tools_required():
        executable = tool_path("helm")

    def call(*arguments):
        command = [executable, *arguments, "--namespace", "charts", "--kubeconfig", instance.kubeconfig]
        result = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert result.returncode == 0, result.stderr
        return result.stdout

    return call


@pytest.fixture
def chart(tmp_path):
    return sample_chart(tmp_path)


@pytest.fixture
def release(chart, plugin, helm, api):
    """Return the inputs of a release, which is uninstalled afterward even if the test fails."""
    yield {"chart": str(chart), "name": "sample", "namespace": "charts", "createNamespace": True}
    # Most tests have already uninstalled it, and the check with helm takes half a second.
    if api.items(f"{NAMESPACE}/secrets", labels="owner=helm,name=sample", metadata_only=True):
        helm("uninstall", "sample", "--ignore-not-found")
    with suppress(RejectedError):
        api.delete(HOOKED)  # helm leaves the objects that its hooks created.


def absent(api, place):
    with pytest.raises(RejectedError, match="404"):
        api.read(place)


def warnings(plugin):
    return [text for severity, text in plugin.logs if severity == "warning"]


def stuck(release, **inputs):
    return {**release, "values": {"stuck": True}, "timeout": 2, **inputs}


def test_a_chart_is_installed_with_its_hooks_changed_and_uninstalled(plugin, api, release):
    release_id, inputs, outputs = plugin.create(RELEASE, "sample", {**release, "values": {"colour": "blue"}})
    assert release_id == "charts/sample"
    assert outputs["status"] == {
        "name": "sample",
        "namespace": "charts",
        "revision": 1,
        "status": "deployed",
        "chart": "sample",
        "version": "1.2.3",
        "appVersion": "4",
    }
    assert outputs["resourceNames"] == {"ConfigMap/v1": ["made"]}
    assert api.read(MADE)["data"] == {"colour": "blue", "size": "small"}
    assert api.read(HOOKED)["data"] == {"revision": "1"}, "hooks run"
    wanted = {**inputs, "values": {"colour": "green"}}
    assert plugin.diff(RELEASE, "sample", inputs, wanted)[:2] == ({"values.colour"}, [])
    outputs = plugin.update(RELEASE, "sample", inputs, wanted, outputs=outputs)
    assert outputs["status"]["revision"] == 2
    assert api.read(MADE)["data"]["colour"] == "green"
    assert api.read(HOOKED)["data"] == {"revision": "2"}
    assert not warnings(plugin)
    plugin.delete(RELEASE, "sample", release_id, outputs)
    absent(api, MADE)


def test_what_is_not_ready_in_time_fails_stays_in_state_and_goes_on(plugin, api, release):
    with pytest.raises(FailedError) as failure:
        plugin.create(RELEASE, "sample", stuck(release))
    text, kept = str(failure.value), failure.value.kept
    assert text.startswith("helm couldn't install release charts/sample: ")
    assert "Deployment charts/stuck: 0 of 1 pods are available" in text
    assert "Unschedulable" in text
    assert kept.id == "charts/sample"
    state = {"status": {"status": "failed", "revision": 1}}
    with pytest.raises(FailedError, match="release charts/sample is failed") as failure:
        plugin.read(RELEASE, "sample", kept.id, inputs=stuck(release), outputs=state)
    assert failure.value.kept.id == kept.id, "a refresh keeps it, and that it failed"
    mended = {**release, "values": {"stuck": False}}
    outputs = plugin.update(RELEASE, "sample", stuck(release), mended, outputs=state)
    assert (outputs["status"]["status"], outputs["status"]["revision"]) == ("deployed", 2)
    plugin.delete(RELEASE, "sample", kept.id, outputs)


def test_a_chart_that_the_api_server_refuses_leaves_nothing_in_state(plugin, chart, release):
    (chart / "templates" / "made.yaml").write_text(CONFIG_MAP.replace("kind: ConfigMap", "kind: Nothing"))
    with pytest.raises(FailedError, match=r"helm couldn't install release charts/sample: .*Nothing") as failure:
        plugin.create(RELEASE, "sample", release)
    assert failure.value.kept is None


def test_what_others_change_by_helm_is_found_and_put_right(plugin, api, release, helm, chart):
    release_id, inputs, outputs = plugin.create(RELEASE, "sample", {**release, "values": {"colour": "blue"}})
    helm("upgrade", "sample", str(chart), "--set", "colour=grey,size=large")
    _, seen, live = plugin.read(RELEASE, "sample", release_id, inputs=inputs, outputs=outputs)
    assert plugin.diff(RELEASE, "sample", seen, inputs)[0] == {"values.colour", "values.size"}
    assert live["status"]["revision"] == 2
    outputs = plugin.update(RELEASE, "sample", seen, inputs, outputs=live)
    assert api.read(MADE)["data"] == {"colour": "blue", "size": "small"}
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: sample\nversion: 1.3.0\n")
    helm("upgrade", "sample", str(chart), "--reuse-values")
    _, seen, _ = plugin.read(RELEASE, "sample", release_id, inputs=inputs, outputs=outputs)
    assert plugin.diff(RELEASE, "sample", seen, inputs)[0] == {"version"}
    helm("uninstall", "sample")
    assert plugin.read(RELEASE, "sample", release_id, inputs=inputs, outputs=outputs)[0] == "", "it is gone"
    with pytest.raises(FailedError, match=r"release charts/sample no longer exists.*pulumi refresh"):
        plugin.update(RELEASE, "sample", inputs, inputs, outputs=outputs)
    plugin.delete(RELEASE, "sample", release_id, outputs)  # It may already be deleted.


def test_a_cancelled_installation_ends_at_once_and_the_next_one_goes_on(plugin, api, release):
    def stop():
        eventually(lambda: any("Deployment is not ready" in text for _, text in plugin.logs), "helm waits")
        plugin.call("Cancel", empty_pb2.Empty())

    with in_background(stop), pytest.raises(FailedError, match="canceled") as failure:
        plugin.create(RELEASE, "sample", stuck(release, timeout=600), timeout=600.0)
    assert failure.value.kept.id == "charts/sample"
    plugin.call("Attach", plugin_pb2.PluginAttach())  # Like a plugin that was just started.
    # The engine was killed as well, and kept nothing.
    release_id, _, outputs = plugin.create(RELEASE, "sample", release)
    (warning,) = warnings(plugin)
    assert "release charts/sample is failed, because a run was interrupted" in warning
    plugin.delete(RELEASE, "sample", release_id, outputs)


@pytest.mark.parametrize(
    ("revision", "status"), [(1, "pending-install"), pytest.param(2, "pending-upgrade", marks=pytest.mark.nightly)]
)
def test_what_a_killed_run_left_pending_is_taken_up_again(plugin, api, release, revision, status):
    release_id, inputs, outputs = plugin.create(RELEASE, "sample", release)
    if revision > 1:
        outputs = plugin.update(RELEASE, "sample", inputs, {**inputs, "values": {"size": "large"}}, outputs=outputs)
    place = f"{NAMESPACE}/secrets/sh.helm.release.v1.sample.v{revision}"
    api.merge(
        place, {"metadata": {"labels": {"status": status}}, "data": {"release": as_left(api.read(place), status)}}
    )
    with pytest.raises(FailedError, match=f"release charts/sample is {status}"):
        plugin.read(RELEASE, "sample", release_id, inputs=inputs, outputs=outputs)
    outputs = plugin.update(RELEASE, "sample", inputs, {**inputs, "values": {"colour": "blue"}}, outputs=outputs)
    assert outputs["status"]["status"] == "deployed"
    assert any(f"is {status}, because a run was interrupted" in text for text in warnings(plugin))
    assert api.read(MADE)["data"] == {"colour": "blue", "size": "small"}
    plugin.delete(RELEASE, "sample", release_id, outputs)


def as_left(secret, status):
    """Return helm's own record of a revision, as a killed helm leaves it."""
    release = json.loads(gzip.decompress(base64.b64decode(base64.b64decode(secret["data"]["release"]))))
    release["info"]["status"] = status
    packed = base64.b64encode(gzip.compress(json.dumps(release).encode()))
    return base64.b64encode(packed).decode()


def test_a_package_of_the_mirror_stands_in_for_a_registry(plugin, api, release, chart, tmp_path, monkeypatch, helm):
    mirror = tmp_path / "mirror"
    helm("package", str(chart), "--destination", str(mirror))
    helm("package", str(chart), "--destination", str(mirror), "--version", "1.10.0")
    monkeypatch.setenv("HPKIT_MIRROR", str(mirror))
    far = {**release, "chart": "oci://registry.invalid/charts/sample"}
    release_id, inputs, outputs = plugin.create(RELEASE, "sample", far)
    assert outputs["status"]["version"] == "1.10.0", "the newest, where none is stated"
    outputs = plugin.update(RELEASE, "sample", inputs, {**inputs, "version": "1.2.3"}, outputs=outputs)
    assert outputs["status"]["version"] == "1.2.3"
    plugin.delete(RELEASE, "sample", release_id, outputs)
    monkeypatch.setenv("HPKIT_MIRROR", str(tmp_path / "none"))
    with pytest.raises(FailedError, match="HPKIT_MIRROR: folder"):
        plugin.create(RELEASE, "sample", far)


@pytest.mark.parametrize("where", [{"chart": "./none"}, {"chart": "oci://127.0.0.1:9/none", "version": "1.0.0"}])
def test_a_chart_that_cannot_be_had_is_recorded_and_installed_once_it_can(plugin, api, release, chart, where):
    release_id, inputs, outputs = plugin.create(RELEASE, "sample", {**release, **where})
    assert outputs["status"]["status"] == "recorded"
    (warning,) = warnings(plugin)
    assert "the chart isn't installed, because" in warning
    assert "HPKIT_MIRROR" in warning
    assert (
        plugin.read(RELEASE, "sample", release_id, inputs=inputs, outputs=outputs)[2]["status"]["status"] == "recorded"
    )
    outputs = plugin.update(RELEASE, "sample", inputs, release, outputs=outputs)
    assert (outputs["status"]["status"], outputs["status"]["revision"]) == ("deployed", 1)
    absent(api, f"{NAMESPACE}/secrets/hpkit.release.v1.sample")
    plugin.delete(RELEASE, "sample", release_id, outputs)


def test_the_training_operator_stands_in_for_the_dependencies_chart_also_after_a_webhook_has_refused_it(
    plugin, api, release, chart, monkeypatch
):
    monkeypatch.delenv(SWITCH)
    monkeypatch.setattr("hpkit_local.plugins.kubernetes.substitute._PAUSE", 1.0)
    get_tools("training-operator-manifests", "training-operator")
    hooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    rule = {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"]}
    client = {"url": "https://127.0.0.1:9/none"}
    hook = {"name": "down.example.com", "rules": [rule], "clientConfig": client, "sideEffects": "None"}
    document = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "down"},
        "webhooks": [{**hook, "admissionReviewVersions": ["v1"], "failurePolicy": "Fail", "timeoutSeconds": 1}],
    }
    api.create(hooks, document)
    try:
        far = {**release, "name": "hyperpod-dependencies", "namespace": "kube-system", "chart": "./none"}
        with monkeypatch.context() as patch:
            patch.setattr("hpkit_local.plugins.kubernetes.substitute._TRIES", 1)
            release_id, inputs, outputs = plugin.create(RELEASE, "sample", far)
        assert "failed calling webhook" in warnings(plugin)[0]
        assert plugin.diff(RELEASE, "sample", inputs, inputs, outputs=outputs)[0] == {"chart"}, (
            "the next up tries again"
        )
    finally:
        api.delete(f"{hooks}/down")
    outputs = plugin.update(RELEASE, "sample", inputs, inputs, outputs=outputs)
    assert plugin.diff(RELEASE, "sample", inputs, inputs, outputs=outputs)[0] == set()
    # Helm doesn't wait for kinds that are templates.
    eventually(lambda: "PyTorchJob" in str(api.find("/apis/kubeflow.org/v1")), "served")
    assert api.read(OPERATOR)["spec"]["template"]["spec"]["serviceAccountName"] == "training-operator"
    plugin.delete(RELEASE, "sample", release_id, outputs)
    plugin.logs.clear()
    _, inputs, outputs = plugin.create(RELEASE, "sample", far)
    assert "Instead, Kubeflow's training operator" in warnings(plugin)[0]
    assert api.read(OPERATOR), "the namespace of the deleted one was still ending"
    near = {**inputs, "chart": str(chart)}
    outputs = plugin.update(RELEASE, "sample", inputs, near, outputs=outputs)
    assert outputs["status"]["status"] == "deployed"
    absent(api, OPERATOR)
    absent(api, "/apis/kubeflow.org/v1")
    plugin.delete(RELEASE, "sample", release_id, outputs)


@pytest.mark.nightly
def test_the_dependencies_chart_of_hyperpod_is_installed_whole_and_goes_again(plugin, api, helm, monkeypatch):
    """Without a node, its operators can't run, and a release that waits for them fails, as on AWS."""
    monkeypatch.setenv("HPKIT_MIRROR", str(chart_mirror()))
    # What the local cloud installs instead of the chart.
    api.delete("/api/v1/namespaces/aws-hyperpod")
    stated = {
        "chart": "oci://registry.invalid/hyperpod-helm-chart",
        "version": "0.1.0",
        "name": "hyperpod-dependencies",
        "namespace": "kube-system",
        "values": {"health-monitoring-agent": {"region": "us-west-2"}},
    }
    with pytest.raises(FailedError, match=r"Deployment \S+: 0 of 1 pods are available.*no nodes available") as failure:
        plugin.create(RELEASE, "dependencies", {**stated, "timeout": 10}, timeout=120.0)
    state = {"status": {"status": "failed", "revision": 1}}
    inputs, release_id = {**stated, "skipAwait": True}, failure.value.kept.id
    outputs = plugin.update(RELEASE, "dependencies", stated, inputs, outputs=state)
    assert outputs["status"]["status"] == "deployed"
    assert len(outputs["resourceNames"]["DaemonSet.apps/apps/v1"]) == 5
    _, seen, _ = plugin.read(RELEASE, "dependencies", release_id, inputs=inputs, outputs=outputs)
    assert plugin.diff(RELEASE, "dependencies", seen, inputs)[0] == set()
    plugin.delete(RELEASE, "dependencies", release_id, outputs, timeout=120.0)
    assert plugin.read(RELEASE, "dependencies", release_id, inputs=inputs, outputs=outputs)[0] == ""

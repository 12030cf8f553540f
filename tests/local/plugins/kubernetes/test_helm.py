"""Releases where a real helm is at hand: `helm` is no part of the toolchain, hence skipped where it is not on PATH."""

import shutil

import pytest

from local.kubernetes.api import RefusedError
from tests.local.plugins.kubernetes.harness import FailedError

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.timeout(120),
    pytest.mark.skipif(shutil.which("helm") is None, reason="no helm on PATH"),
]

RELEASE = "helm.sh/v3:Release"
MADE = "/api/v1/namespaces/charts/configmaps/made"
TEMPLATE = """
apiVersion: v1
kind: ConfigMap
metadata: {name: made}
data: {colour: "{{ .Values.colour }}", size: "{{ .Values.size }}"}
"""


@pytest.fixture
def chart(tmp_path):
    (tmp_path / "templates").mkdir()
    (tmp_path / "Chart.yaml").write_text("apiVersion: v2\nname: sample\nversion: 1.2.3\nappVersion: '4'\n")
    (tmp_path / "values.yaml").write_text("colour: red\nsize: small\n")
    (tmp_path / "templates" / "made.yaml").write_text(TEMPLATE)
    return tmp_path


def test_a_chart_is_installed_changed_and_uninstalled(plugin, api, chart):
    release = {"chart": str(chart), "name": "sample", "namespace": "charts", "createNamespace": True}
    found, inputs, outputs = plugin.create(RELEASE, "sample", {**release, "values": {"colour": "blue"}})
    assert found == "charts/sample"
    assert outputs["status"]["status"] == "deployed"
    assert (outputs["status"]["version"], outputs["status"]["appVersion"]) == ("1.2.3", "4")
    assert api.read(MADE)["data"] == {"colour": "blue", "size": "small"}
    wanted = {**inputs, "values": {"colour": "green"}}
    assert plugin.diff(RELEASE, "sample", inputs, wanted)[:2] == ({"values.colour"}, [])
    outputs = plugin.update(RELEASE, "sample", inputs, wanted, outputs=outputs)
    assert outputs["status"]["revision"] == 2
    assert api.read(MADE)["data"]["colour"] == "green"
    plugin.delete(RELEASE, "sample", found, outputs)
    with pytest.raises(RefusedError, match="404"):
        api.read(MADE)


def test_a_chart_that_cannot_be_had_is_recorded(plugin, tmp_path):
    release = {"chart": str(tmp_path / "none"), "name": "none", "namespace": "default"}
    found, _, outputs = plugin.create(RELEASE, "none", release)
    assert outputs["status"]["status"] == "recorded"
    assert any("recorded, not installed: helm cannot get the chart" in text for _, text in plugin.logs)
    plugin.delete(RELEASE, "none", found, outputs)


def test_a_chart_that_fails_stays_in_state_and_can_go_on(plugin, api, chart):
    (chart / "templates" / "made.yaml").write_text(TEMPLATE.replace("kind: ConfigMap", "kind: Nothing"))
    release = {"chart": str(chart), "name": "broken", "namespace": "default"}
    with pytest.raises(FailedError, match=r"helm could not install release default/broken: .*Nothing") as failure:
        plugin.create(RELEASE, "broken", release)
    assert failure.value.kept.id == "default/broken"
    plugin.delete(RELEASE, "broken", "default/broken", {})

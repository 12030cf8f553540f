"""The substitute for the dependencies chart: for which releases, its contents, and its errors."""

import threading

import pytest

from hpkit_local.plugins.kubernetes.helm import Answer, HelmRun
from hpkit_local.plugins.kubernetes.substitute_chart import SWITCH, chart_documents, install_substitute
from hpkit_provider.engine.call import EngineCall

RELEASE = {"name": "hyperpod-dependencies", "namespace": "kube-system", "chart": "far"}
CRD = """
kind: CustomResourceDefinition
metadata: {{name: {plural}.kubeflow.org}}
spec:
  names: {{kind: {kind}, plural: {plural}}}
  versions: [{{schema: {{properties: {{replicas: {{type: integer}}, template: {{properties: {{spec: {{}}}}}}}}}}}}]
"""
OTHERS = {
    "service-account.yaml": "kind: ServiceAccount\nmetadata: {name: training-operator}\n",
    "role.yaml": "kind: ClusterRole\nmetadata: {name: training-operator}\n",
    "cluster-role-binding.yaml": (
        "kind: ClusterRoleBinding\nmetadata: {name: training-operator}\nsubjects: [{name: training-operator}]\n"
    ),
    "deployment.yaml": (
        "kind: Deployment\nmetadata: {name: training-operator}\n"
        "spec: {template: {spec: {containers: [{name: training-operator, command: [/manager]}]}}}\n"
    ),
}


class Helm(HelmRun):
    """A helm that records its calls and always succeeds."""

    def call(self, _task, *arguments, **_environment):
        self.environment.setdefault("called", []).append(arguments)
        return Answer(code=0, output="", error="", waited_for="")


@pytest.fixture
def task():
    return EngineCall("urn", 60.0, threading.Event(), lambda *_: None)


@pytest.fixture
def helm(tmp_path, monkeypatch):
    """Return a helm, and a machine without tools."""
    monkeypatch.delenv(SWITCH)
    monkeypatch.setenv("HPKIT_CACHE", str(tmp_path / "cache"))
    return Helm(tmp_path / "helm", tmp_path, {})


def called(helm):
    return [arguments[:2] for arguments in helm.environment.get("called", ())]


@pytest.fixture
def manifests(tmp_path):
    folder = tmp_path / "cache" / "tools" / "training-operator-manifests" / "1.7.0" / "files"
    folder.mkdir(parents=True)
    for kind in ("PyTorchJob", "TFJob", "MXJob", "MPIJob", "XGBoostJob", "PaddleJob"):
        plural = f"{kind.lower()}s"
        (folder / f"kubeflow.org_{plural}.yaml").write_text(CRD.format(kind=kind, plural=plural))
    for name, text in OTHERS.items():
        (folder / name).write_text(text)
    return folder


def test_another_release_has_no_substitute(task, helm, manifests):
    assert install_substitute(task, helm, {**RELEASE, "name": "keda"}, wanted=True, new=True) == ""
    assert called(helm) == []


def test_the_switch_leaves_it_out(task, helm, manifests, monkeypatch):
    monkeypatch.setenv(SWITCH, "none")
    assert install_substitute(task, helm, RELEASE, wanted=True, new=True) == ""
    assert called(helm) == []


def test_it_is_installed_where_the_chart_is_out_of_reach(task, helm, manifests):
    message = install_substitute(task, helm, RELEASE, wanted=True, new=True)
    assert called(helm) == [("upgrade", "training-operator")]
    assert (
        "PyTorchJob, TFJob, XGBoostJob and PaddleJob, but their jobs don't run until you run `hpkit local doctor --fix"
        in message
    )


def test_with_its_executable_it_is_said_to_run(task, helm, manifests, tmp_path):
    executable = tmp_path / "cache" / "tools" / "training-operator" / "1.7.0" / "bin" / "training-operator"
    executable.parent.mkdir(parents=True)
    executable.touch(mode=0o755)
    assert "training operator 1.7.0 runs PyTorchJob" in install_substitute(task, helm, RELEASE, wanted=True, new=True)


def test_without_its_manifests_the_command_is_named_that_gets_them(task, helm):
    said = install_substitute(task, helm, RELEASE, wanted=True, new=True)
    assert "hpkit local doctor --fix training-operator training-operator-manifests" in said
    assert called(helm) == []


def test_values_without_the_operator_and_a_chart_that_is_there_take_it_away(task, helm, manifests):
    off = {**RELEASE, "values": {"trainingOperators": {"enabled": False}}}
    assert install_substitute(task, helm, off, wanted=True, new=True) == ""
    assert called(helm) == []
    assert install_substitute(task, helm, off, wanted=True) == ""
    assert install_substitute(task, helm, RELEASE, wanted=False) == ""
    assert called(helm) == [("uninstall", "training-operator")] * 2


def test_it_has_the_kinds_of_the_chart_that_kueue_knows_and_a_template_may_be_anything(manifests):
    documents = list(chart_documents(manifests))
    kinds = [each["spec"]["names"]["kind"] for each in documents if each["kind"] == "CustomResourceDefinition"]
    assert kinds == ["PaddleJob", "PyTorchJob", "TFJob", "XGBoostJob"]
    (version,) = documents[1]["spec"]["versions"]
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    assert version["schema"]["properties"] == {"replicas": {"type": "integer"}, "template": anything}
    (deployment,) = (each for each in documents if each["kind"] == "Deployment")
    assert deployment["metadata"]["namespace"] == "kubeflow"
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert set(container["args"]) == {f"--enable-scheme={kind.lower()}" for kind in kinds}
    (binding,) = (each for each in documents if each["kind"] == "ClusterRoleBinding")
    assert binding["subjects"] == [{"name": "training-operator", "namespace": "kubeflow"}]

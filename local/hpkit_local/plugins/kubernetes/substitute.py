"""Installs the training operator if the dependencies chart, which would install it, isn't available.

The operator's own manifests, pinned by the toolchain, become a chart that helm installs as a separate release. The rest
of the chart isn't replaced, because its pods would do nothing here. With the environment variable
HPKIT_SUBSTITUTE_CHART=none, the operator isn't installed either.
"""

import json
import os
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, Final

from hpkit.errors import ToolError
from hpkit_local.kubernetes.api import crds_in, documents
from hpkit_local.plugins.kubernetes.helm import HelmRun
from hpkit_local.toolchain import expected_path, tool_path
from hpkit_local.toolchain.table import tool_named
from hpkit_provider.engine.call import EngineCall
from hpkit_provider.engine.errors import PluginError
from hpkit_provider.engine.values import Props

__all__ = ["SWITCH", "chart_documents", "install_substitute", "may_substitute"]

SWITCH: Final = "HPKIT_SUBSTITUTE_CHART"
_NAME: Final = "training-operator"
_MANIFESTS: Final = "training-operator-manifests"
_GET: Final = f"`hpkit local doctor --fix {_NAME} {_MANIFESTS}`"
# The program's release of the chart, and the operator's namespace in the chart.
_RELEASE: Final = "hyperpod-dependencies"
_NAMESPACE: Final = "kubeflow"
_FILES: Final = ("service-account.yaml", "role.yaml", "cluster-role-binding.yaml", "deployment.yaml")
# As in values.yaml of the chart's part training-operators, except for MXJob, which Kueue doesn't support. The MPI
# operator handles MPIJob.
_KINDS: Final = ("PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob")
_SAID: Final = f"{', '.join(_KINDS[:-1])} and {_KINDS[-1]}"
# Its namespace ends late where the kinds end at the same time: the namespace controller waits longer after each try.
_SECONDS: Final = 300
# The API server's words for a webhook that it can't reach, and for the namespace of a release that was just deleted.
_PASSING: Final = ("failed calling webhook", "being terminated", "being deleted")
_TRIES: Final = 12
_PAUSE: Final = 5.0


def install_substitute(
    call: EngineCall, helm: HelmRun, inputs: Props, *, wanted: bool, new: bool = False, wait: bool = True
) -> tuple[str, bool]:
    """Install the operator, or remove it; return what replaces the chart, and whether that failed.

    wanted: whether the chart isn't available; if its values turn the operator off, nothing is installed. new: whether
    no such release existed before, so that nothing has to be removed. wait: until all of what is removed is gone.
    """
    if inputs.get("name") != _RELEASE or os.environ.get(SWITCH) == "none":
        return "", False
    if wanted and _has_operator(inputs.get("values") or {}):
        words, failed = _bring(call, helm, str(inputs["namespace"]))
        return f"{words}. ", failed
    if not new:
        _take(call, helm, str(inputs["namespace"]), wait=wait)
    return "", False


def may_substitute() -> bool:
    """Return whether the operator's manifests are installed, so that installing the operator can succeed."""
    try:
        return os.environ.get(SWITCH) != "none" and tool_path(_MANIFESTS).is_dir()
    except ToolError:
        return False


def _has_operator(values: Mapping[str, Any]) -> bool:
    """Return whether values of the chart leave its training operator on, as its defaults do."""
    stated = values.get("trainingOperators")
    return not isinstance(stated, Mapping) or bool(stated.get("enabled", True))


def _bring(call: EngineCall, helm: HelmRun, namespace: str) -> tuple[str, bool]:
    try:
        manifests = tool_path(_MANIFESTS)
    except ToolError:
        return f"Its training operator, which has {_SAID}, has no substitute until you run {_GET}", True
    folder = helm.folder / _NAME
    (folder / "templates").mkdir(parents=True)
    version = tool_named(_MANIFESTS).version
    helm.write(f"{_NAME}/Chart.yaml", json.dumps({"apiVersion": "v2", "name": _NAME, "version": version}))
    for number, document in enumerate(chart_documents(manifests)):
        helm.write(f"{_NAME}/templates/{number}.yaml", json.dumps(document))
    command = ("upgrade", _NAME, str(folder), "--install", "--namespace", namespace)
    answer = helm.call(call, *command)
    for _ in range(_TRIES):
        # Kueue's webhooks don't answer while it restarts.
        if not answer.code or not any(text in answer.error for text in _PASSING):
            break
        call.pause(_PAUSE)
        answer = helm.call(call, *command)
    if answer.code:
        return f"No substitute for its training operator could be installed: {answer.error}", True
    if not os.access(expected_path(_NAME), os.X_OK):
        return f"A substitute installs the kinds {_SAID}, but their jobs don't run until you run {_GET}", False
    return f"Instead, Kubeflow's training operator {version} runs {_SAID}", False


def _take(call: EngineCall, helm: HelmRun, namespace: str, *, wait: bool) -> None:
    """Uninstall it, its kinds and all that is of them; nothing where it is not there."""
    waiting = ("--wait", "--timeout", f"{_SECONDS}s") if wait else ()
    answer = helm.call(call, "uninstall", _NAME, "--namespace", namespace, "--ignore-not-found", *waiting)
    if answer.code:
        raise PluginError(f"helm couldn't uninstall release {namespace}/{_NAME}: {answer.error}")


def chart_documents(manifests: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of the operator, of the pinned manifests in a folder."""
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAMESPACE}}
    for crd in crds_in(manifests):
        if crd["spec"]["names"]["kind"] in _KINDS:
            yield _light(crd)
    for document in chain.from_iterable(documents(manifests / file) for file in _FILES):
        if not document["kind"].startswith("Cluster"):
            document["metadata"]["namespace"] = _NAMESPACE
        for subject in document.get("subjects", ()):
            subject["namespace"] = _NAMESPACE
        if document["kind"] == "Deployment":
            (container,) = document["spec"]["template"]["spec"]["containers"]
            # By default, it enables all kinds, and exits if one doesn't exist here.
            container["args"] = [f"--enable-scheme={kind.lower()}" for kind in _KINDS]
        yield document


def _light(schema: Any) -> Any:
    """Return a CRD in which a pod's template is anything.

    The API server takes ten seconds and 70 MiB for the templates' schemas, which are Kubernetes' own four times over.
    """
    if isinstance(schema, list):
        return [_light(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {key: anything if key == "template" else _light(value) for key, value in schema.items()}

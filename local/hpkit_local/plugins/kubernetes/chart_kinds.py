"""Creates a chart's CRDs in parallel before helm is called, because helm creates and checks them one by one.

Helm skips an existing CRD, but the API server first checks it again, which takes a second for large ones. Only CRDs
that helm would certainly create are created here, from the chart itself and from its subcharts that depend only on
conditions. Others are left to helm; if none are left, helm skips CRDs.

As with helm, new kinds are served before the templates are rendered, because these can depend on what is served.

Installs the training operator if the dependencies chart, which would install it, isn't available. The operator's own
manifests, pinned by the toolchain, become a chart that helm installs as a separate release. The rest of the chart isn't
replaced, because its pods would do nothing here. With the environment variable HPKIT_SUBSTITUTE_CHART=none, the
operator isn't installed either.
"""

import json
import os
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any, Final, Literal

from hpkit.errors import ToolError
from hpkit_local.kubernetes.api import ApiResource, crds_in, documents, without_descriptions
from hpkit_local.plugins.kubernetes.api import RetryingApi
from hpkit_local.plugins.kubernetes.helm import HelmRun, documents_of, with_values
from hpkit_local.plugins.kubernetes.objects import metadata_of
from hpkit_local.plugins.kubernetes.ready import Condition, Readiness
from hpkit_local.toolchain import expected_path, tool_path
from hpkit_local.toolchain.table import tool_named
from hpkit_provider.engine.call import EngineCall, silent
from hpkit_provider.engine.errors import PluginError
from hpkit_provider.engine.values import Props

__all__ = ["SWITCH", "chart_documents", "create_kinds", "install_substitute", "may_substitute"]

_MANAGER: Final = "helm"  # as whom helm creates objects
_AT_ONCE: Final = 16
_SERVED_SECONDS: Final = 60.0
_FIRST, _MOST = 0.1, 0.3
_SUFFIXES: Final = (".yaml", ".yml", ".json")
_CRD: Final = ApiResource("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions")
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


def create_kinds(call: EngineCall, api: RetryingApi, chart: Path, values: Mapping[str, Any]) -> bool:
    """Create the CRDs of a chart, and wait for the new ones; return whether helm has none left to create.

    Helm gets the same rejections, and reports them. Raises PluginError if a new kind isn't served in time.
    """
    quiet = replace(call, log=silent)
    with ThreadPoolExecutor(max_workers=_AT_ONCE) as threads:
        # The API server creates the first ones while others are read.
        tries = [
            (kind, certain and threads.submit(_create, quiet, api, kind)) for kind, certain in kinds_of(chart, values)
        ]
        count = sum(bool(created) for _, created in tries)
        if count:
            call.progress(f"creating {count} CustomResourceDefinitions")
        ends = [(kind, created.result() if created else "left to helm") for kind, created in tries]
    _await_kinds(quiet, api, [kind for kind, end in ends if end == "new"])
    return bool(ends) and all(end != "left to helm" for _, end in ends)


def _create(call: EngineCall, api: RetryingApi, kind: Props) -> Literal["new", "old", "left to helm"]:
    with suppress(PluginError):
        if api.find(call, _path(kind)) is not None:
            return "old"
        api.ask(call, "POST", _CRD.folder(), without_descriptions(kind), fieldManager=_MANAGER)
        return "new"
    return "left to helm"


def _path(kind: Props) -> str:
    return _CRD.path("", str(kind["metadata"]["name"]))


def _await_kinds(call: EngineCall, api: RetryingApi, kinds: Iterable[Props]) -> None:
    """Wait until CRDs are served, as long as helm would."""
    until = call.left - _SERVED_SECONDS
    for kind in kinds:
        delays = call.delays(_FIRST, _MOST)
        while not _is_served(call, api, kind):
            if call.left < until:
                live = api.find(call, _path(kind)) or {}
                # Another CRD has one of its names. Helm goes on then (crdReady in pkg/kube/ready.go).
                if not Condition("NamesAccepted", "False").lacks(live):
                    break
                lacks = Readiness(api).lacking(call, kind, live)
                name = f"{_CRD.kind} {kind['metadata']['name']}"
                raise PluginError(
                    f"the API server didn't serve {name} in {_SERVED_SECONDS:g} s; {lacks or 'it is busy'}"
                )
            call.pause(next(delays))


def _is_served(call: EngineCall, api: RetryingApi, kind: Props) -> bool:
    """Return whether all versions are served. What a group serves is much smaller than its CRDs."""
    spec = kind["spec"]
    versions = [each["name"] for each in spec.get("versions") or () if each.get("served")]
    return all(
        any(each.kind == spec["names"]["kind"] for each in api.kinds(call, f"{spec['group']}/{version}"))
        for version in versions
    )


def kinds_of(chart: Path, values: Mapping[str, Any]) -> Iterator[tuple[Props, bool]]:
    """Yield the CRDs of a chart on the disk, with whether helm is certain to create them."""
    return _kinds_in(PurePosixPath(), _files(chart), values, certain=True)


def _kinds_in(
    folder: PurePosixPath, files: Mapping[PurePosixPath, str], values: Mapping[str, Any], *, certain: bool
) -> Iterator[tuple[Props, bool]]:
    """Yield the CRDs of the chart in a folder and of its subcharts, with whether helm certainly creates them."""
    about = _document(files.get(folder / "Chart.yaml"))
    chart_values = with_values(_document(files.get(folder / "values.yaml")), values)
    for path, text in files.items():
        if folder / "crds" in path.parents:
            documents = [each for each in documents_of(text) if isinstance(each, dict)]
            # One without a name is left to helm, which reports it.
            yield from (
                (each, certain and each.get("kind") == _CRD.kind and bool(metadata_of(each).get("name")))
                for each in documents
            )
    for path in files:
        if path.name == "Chart.yaml" and path.parent.parent == folder / "charts":
            name = _document(files[path]).get("name")
            entries = [each for each in about.get("dependencies") or () if each.get("name") == name]
            if not entries or any(_is_on(each, chart_values) for each in entries):
                # Helm decides about duplicates, and about charts that depend on tags.
                is_clear = len(entries) <= 1 and not any(each.get("tags") for each in entries)
                inner = chart_values.get(next((each["alias"] for each in entries if each.get("alias")), str(name)))
                is_clear &= isinstance(inner, Mapping | None)
                inner = inner if isinstance(inner, Mapping) else {}
                yield from _kinds_in(path.parent, files, inner, certain=certain and is_clear)


def _is_on(entry: Mapping[str, Any], values: Mapping[str, Any]) -> bool:
    """Return whether the conditions of a dependency leave it on: the first one with a value decides."""
    for condition in str(entry.get("condition") or "").split(","):
        value: Any = values
        for key in condition.strip().split("."):
            value = value.get(key) if isinstance(value, Mapping) else None
        if isinstance(value, bool):
            return value
    return True


def _files(chart: Path) -> Mapping[PurePosixPath, str]:
    """Return the texts of a chart that determine its kinds, by path in it."""
    if chart.is_dir():
        texts = {path: path.read_text(encoding="utf-8") for path in sorted(chart.rglob("*")) if _tells(path)}
        return {PurePosixPath(path.relative_to(chart)): text for path, text in texts.items()}
    with tarfile.open(chart) as archive:
        contents = {}
        for member in archive:
            path = PurePosixPath(*PurePosixPath(member.name).parts[1:])
            if member.isfile() and _tells(path):
                content = archive.extractfile(member)
                contents[path] = content.read().decode() if content else ""
        return contents


def _tells(path: PurePosixPath | Path) -> bool:
    """Return whether a file is a chart's description, its values, or one of helm's CRD files."""
    return path.name in ("Chart.yaml", "values.yaml") or ("crds" in path.parent.parts and path.suffix in _SUFFIXES)


def _document(text: str | None) -> dict[str, Any]:
    (found, *_) = documents_of(text or "") or [None]
    return found if isinstance(found, dict) else {}


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

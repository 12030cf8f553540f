"""The kinds of a chart, created side by side before helm is called: helm creates one after the other, and then waits.

Helm passes over a CRD that exists. So only those are created here of which it is certain that helm would create them:
of the chart itself, and of charts in it that no more than one condition switches. All others are left to helm.
"""

import tarfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any, Final

from hpkit_local.kubernetes.client import ApiResource
from hpkit_local.plugins.kubernetes.api import RetryingApi
from hpkit_local.plugins.kubernetes.documents import documents_of
from hpkit_local.plugins.kubernetes.objects import LiveObject, Ref
from hpkit_local.plugins.kubernetes.release_inputs import with_values
from hpkit_local.plugins.kubernetes.waiting import Readiness
from hpkit_provider.engine.errors import PluginError
from hpkit_provider.engine.task import Task
from hpkit_provider.engine.values import Props

__all__ = ["create_kinds", "kinds_of"]

_MANAGER: Final = "helm"  # as whom helm creates objects
_AT_ONCE: Final = 4
_CRD: Final = ApiResource("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions")


def create_kinds(task: Task, api: RetryingApi, chart: Path, values: Mapping[str, Any]) -> None:
    """Create the CRDs of a chart and wait until they are served; what is refused, helm is refused too, and reports."""
    kinds = list(kinds_of(chart, values))
    if kinds:
        task.progress(f"creating {len(kinds)} CustomResourceDefinitions")
        with ThreadPoolExecutor(max_workers=_AT_ONCE) as threads:
            list(threads.map(lambda kind: _create(task, api, kind), kinds))


def _create(task: Task, api: RetryingApi, kind: Props) -> None:
    ref = Ref(_CRD.api_version, _CRD.kind, "", str(kind["metadata"]["name"]))
    with suppress(PluginError):
        if api.find(task, _CRD.path("", ref.name)) is None:
            made = api.ask(task, "POST", _CRD.folder(), kind, fieldManager=_MANAGER)
            Readiness(api).wait(task, LiveObject(ref, made, _MANAGER), _CRD, kind)


def kinds_of(chart: Path, values: Mapping[str, Any]) -> Iterator[Props]:
    """Yield the CRDs that helm is certain to create of a chart on the disk, with these values for it."""
    return _kinds_in(PurePosixPath(), _files(chart), values)


def _kinds_in(folder: PurePosixPath, files: Mapping[PurePosixPath, str], values: Mapping[str, Any]) -> Iterator[Props]:
    """Yield those of the chart in a folder, and of the charts in it."""
    about = _document(files.get(folder / "Chart.yaml"))
    known = with_values(_document(files.get(folder / "values.yaml")), values)
    for path, text in files.items():
        if path.parent == folder / "crds":
            yield from (each for each in documents_of(text) if isinstance(each, dict) and each.get("kind") == _CRD.kind)
    for path in files:
        if path.name == "Chart.yaml" and path.parent.parent == folder / "charts":
            name = str(_document(files[path]).get("name"))
            entries = [each for each in about.get("dependencies") or () if each.get("name") == name]
            inner = known.get(name)
            if all(_is_on(each, known) for each in entries) and isinstance(inner, Mapping | None):
                yield from _kinds_in(path.parent, files, inner or {})


def _is_on(entry: Mapping[str, Any], values: Mapping[str, Any]) -> bool:
    """Say whether a dependency is on for certain."""
    if entry.get("tags") or entry.get("alias") or "," in str(entry.get("condition") or ""):
        return False
    condition = entry.get("condition")
    found: Any = values
    for key in str(condition).split(".") if condition else ():
        found = found.get(key) if isinstance(found, Mapping) else None
    return found is True or not condition


def _files(chart: Path) -> Mapping[PurePosixPath, str]:
    """Return the texts of a chart that say what kinds it has, by path in it."""
    if chart.is_dir():
        texts = {path: path.read_text(encoding="utf-8") for path in sorted(chart.rglob("*.yaml")) if _tells(path)}
        return {PurePosixPath(path.relative_to(chart)): text for path, text in texts.items()}
    with tarfile.open(chart) as archive:
        found = {}
        for member in archive:
            path = PurePosixPath(*PurePosixPath(member.name).parts[1:])
            if member.isfile() and _tells(path):
                content = archive.extractfile(member)
                found[path] = content.read().decode() if content else ""
        return found


def _tells(path: PurePosixPath | Path) -> bool:
    return path.name in ("Chart.yaml", "values.yaml") or path.parent.name == "crds"


def _document(text: str | None) -> dict[str, Any]:
    (found, *_) = documents_of(text or "") or [None]
    return found if isinstance(found, dict) else {}

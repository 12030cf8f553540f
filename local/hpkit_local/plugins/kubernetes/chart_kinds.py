"""Creates a chart's CRDs in parallel before helm is called, because helm creates and checks them one by one.

Helm skips an existing CRD, but the API server first checks it again, which takes a second for large ones. Only CRDs
that helm would certainly create are created here: those of the chart itself, and of its subcharts that depend only on
conditions. Others are left to helm; if none are left, helm skips CRDs.

As with helm, new kinds are served before the templates are rendered, because these can depend on what is served.
"""

import tarfile
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, Final, Literal

from hpkit_local.kubernetes.api import ApiResource
from hpkit_local.kubernetes.crds import without_descriptions
from hpkit_local.plugins.kubernetes.api import RetryingApi
from hpkit_local.plugins.kubernetes.helm import documents_of
from hpkit_local.plugins.kubernetes.objects import metadata_of
from hpkit_local.plugins.kubernetes.ready import Condition
from hpkit_local.plugins.kubernetes.release_inputs import with_values
from hpkit_local.plugins.kubernetes.waiting import Readiness
from hpkit_provider.engine.call import EngineCall, silent
from hpkit_provider.engine.errors import PluginError
from hpkit_provider.engine.values import Props

__all__ = ["create_kinds", "kinds_of"]

_MANAGER: Final = "helm"  # as whom helm creates objects
_AT_ONCE: Final = 16
_SERVED_SECONDS: Final = 60.0
_FIRST, _MOST = 0.1, 0.3
_MANIFESTS: Final = (".yaml", ".yml", ".json")
_CRD: Final = ApiResource("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions")


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
    return path.name in ("Chart.yaml", "values.yaml") or ("crds" in path.parent.parts and path.suffix in _MANIFESTS)


def _document(text: str | None) -> dict[str, Any]:
    (found, *_) = documents_of(text or "") or [None]
    return found if isinstance(found, dict) else {}

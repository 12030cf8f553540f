"""A release from helm: status, values, revision and chart, and the contents of its manifest."""

import json
from dataclasses import dataclass
from typing import Final

from hpkit_local.plugins.kubernetes.documents import documents_of
from hpkit_local.plugins.kubernetes.helm import HelmRun
from hpkit_provider.engine.call import EngineCall
from hpkit_provider.engine.errors import PluginError
from hpkit_provider.engine.values import Props

__all__ = ["LiveRelease", "live_release", "written_release"]

_NOT_FOUND: Final = "release: not found"


@dataclass(frozen=True)
class LiveRelease:
    """Helm's data about the newest revision of a release."""

    status: str
    description: str
    values: Props
    objects: list[Props]
    chart: Props

    @property
    def pending(self) -> bool:
        """Return whether a helm is running, or was interrupted."""
        return self.status.startswith("pending-")

    @property
    def cut_off(self) -> bool:
        """Return whether a first installation was interrupted, so that nothing uses it yet."""
        ended = self.status == "failed" and "context canceled" in self.description
        return self.status == "pending-install" or (ended and self.chart["revision"] == 1)

    @property
    def outputs(self) -> Props:
        """The outputs of a Release, as the official plugin has them (helm_release.go, setReleaseAttributes)."""
        names: dict[str, set[str]] = {}
        for live_object in self.objects:
            metadata, api_version = live_object.get("metadata") or {}, str(live_object.get("apiVersion"))
            group = api_version.rpartition("/")[0]
            key = f"{live_object['kind']}{'.' if group else ''}{group}/{api_version}"
            space = metadata.get("namespace")
            names.setdefault(key, set()).add(f"{space}/{metadata.get('name')}" if space else str(metadata.get("name")))
        status = {key: value for key, value in self.chart.items() if value != ""}
        return {"status": status, "resourceNames": {key: sorted(each) for key, each in sorted(names.items())}}


def live_release(call: EngineCall, helm: HelmRun, namespace: str, name: str) -> LiveRelease | None:
    """Return helm's data of a release; None if it doesn't exist."""
    answers = []
    for question in (("status",), ("get", "metadata")):
        answer = helm.call(call, *question, name, "--namespace", namespace, "--output", "json")
        if _NOT_FOUND in answer.error:
            return None
        if answer.code:
            raise PluginError(f"helm can't read release {namespace}/{name}: {answer.error}")
        answers.append(json.loads(answer.output))
    return _release(*answers)


def written_release(output: str) -> LiveRelease:
    """Return the data that helm prints as JSON of a release that it has installed or upgraded."""
    release = json.loads(output)
    chart, status = release["chart"]["metadata"], release["info"]["status"]
    own = {"name": release["name"], "namespace": release["namespace"], "revision": release["version"], "status": status}
    return _release(release, {**own, **chart, "name": release["name"], "chart": chart["name"]})


def _release(release: Props, metadata: Props) -> LiveRelease:
    info = release.get("info") or {}
    keys = ("name", "namespace", "revision", "status", "chart", "version", "appVersion")
    return LiveRelease(
        status=str(info.get("status")),
        description=str(info.get("description", "")),
        values=release.get("config") or {},
        objects=_objects(str(release.get("manifest") or "")),
        chart={key: metadata.get(key, "") for key in keys},
    )


def _objects(manifest: str) -> list[Props]:
    return [each for each in documents_of(manifest) if isinstance(each, dict) and each.get("kind")]

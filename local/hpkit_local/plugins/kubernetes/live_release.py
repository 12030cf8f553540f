"""A release from helm: status, values, revision and chart, and the contents of its manifest."""

import base64
import json
from dataclasses import dataclass
from typing import Final

from hpkit_local.plugins.kubernetes.cluster import Cluster
from hpkit_local.plugins.kubernetes.helm import HelmRun, documents_of
from hpkit_provider.engine.call import EngineCall
from hpkit_provider.engine.errors import PluginError
from hpkit_provider.engine.values import Props

__all__ = [
    "LACKING",
    "RECORDED",
    "LiveRelease",
    "RecordedReleases",
    "live_release",
    "path_of_release",
    "written_release",
]

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


RECORDED: Final = "recorded"
LACKING: Final = "lacksSubstitute"
_MANAGER: Final = "pulumi-kubernetes"
_TYPE: Final = "hpkit.local/release.v1"


@dataclass(frozen=True)
class RecordedReleases:
    """A Secret for each, in the release's namespace."""

    cluster: Cluster

    def write(self, call: EngineCall, inputs: Props, *, revision: int, lacking: bool) -> Props:
        """Write down; return the outputs. lacking: whether what replaces the chart couldn't be installed either."""
        known = {key: inputs.get(key, "") for key in ("name", "namespace", "chart", "version")}
        status = {**known, "status": RECORDED, "revision": revision, **({LACKING: True} if lacking else {})}
        outputs = {**inputs, "status": status, "resourceNames": {}}
        name, namespace = str(inputs["name"]), str(inputs["namespace"])
        if inputs.get("createNamespace"):
            space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            self._apply(call, f"/api/v1/namespaces/{namespace}", space)
        document = {
            **_document(namespace, name),
            "type": _TYPE,
            "data": {"release": base64.b64encode(json.dumps(outputs).encode()).decode()},
        }
        document["metadata"]["labels"] = {"owner": "hpkit", "name": name}
        self._apply(call, path_of_release(namespace, name), document)
        return outputs

    def read(self, call: EngineCall, namespace: str, name: str) -> Props | None:
        """Return the outputs as written down; None when nothing is."""
        secret = self.cluster.api.find(call, path_of_release(namespace, name))
        if secret is None or secret.get("type") != _TYPE:
            return None
        outputs: Props = json.loads(base64.b64decode(secret["data"]["release"]))
        return outputs if outputs["status"]["status"] == RECORDED else None

    def forget(self, call: EngineCall, namespace: str, name: str) -> None:
        """Delete the record, if there is one."""
        self.cluster.delete(call, _document(namespace, name), manager=_MANAGER, patch=False)

    def _apply(self, call: EngineCall, path: str, document: Props) -> None:
        self.cluster.api.apply(call, path, document, fieldManager=_MANAGER, force="true")


def _document(namespace: str, name: str) -> Props:
    metadata = {"name": f"hpkit.release.v1.{name}", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}


def path_of_release(namespace: str, name: str) -> str:
    """Return the API path of the Secret that a release is written down in."""
    return f"/api/v1/namespaces/{namespace}/secrets/hpkit.release.v1.{name}"

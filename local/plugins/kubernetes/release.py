"""Helm releases: recorded on the API server, not installed. Does not: render or apply a chart."""

import base64
import json
import random
import secrets
from dataclasses import dataclass
from typing import Any, Final

from local.plugins.kubernetes.api import Api
from local.plugins.kubernetes.cluster import Cluster
from provider.errors import PluginError
from provider.task import Task
from provider.values import UNKNOWN, Props, is_unknown

__all__ = ["REPLACES", "TOKEN", "Release", "checked"]

TOKEN: Final = "kubernetes:helm.sh/v3:Release"  # noqa: S105 - a type's token
REPLACES: Final = ("name", "namespace")
_MANAGER: Final = "pulumi-kubernetes"
_TYPE: Final = "hpkit.local/release.v1"
_NOTE: Final = "recorded, not installed: the local cloud has no helm, and no kubelet that would run what a chart holds"


def checked(inputs: Props, old: Props, *, name: str, namespace: str, seed: bytes) -> Props:
    """Return the inputs with a name and a namespace, as the official plugin gives them."""
    digits = random.Random(seed).getrandbits(32) if seed else secrets.randbits(32)  # noqa: S311 - the engine's seed
    made = {"name": old.get("name") or f"{name}-{digits:08x}", "namespace": old.get("namespace") or namespace}
    return {**made, **inputs}


@dataclass(frozen=True)
class Release:
    """The records of releases: one Secret each, in the release's namespace."""

    cluster: Cluster

    @property
    def _api(self) -> Api:
        return self.cluster.api

    def foresee(self, inputs: Props) -> Props:
        """Return the outputs of a preview."""
        return {**inputs, "status": UNKNOWN, "resourceNames": UNKNOWN}

    def write(self, task: Task, inputs: Props, *, revision: int) -> tuple[str, Props]:
        """Write the record down; return id and outputs."""
        if any(is_unknown(inputs.get(key)) for key in ("name", "namespace", "chart")):
            raise PluginError("name, namespace and chart of a release must be known to record it")
        name, namespace = str(inputs["name"]), str(inputs["namespace"])
        if inputs.get("createNamespace"):
            document = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            self._api.apply(task, f"/api/v1/namespaces/{namespace}", document, fieldManager=_MANAGER, force="true")
        outputs = _outputs(inputs, revision)
        record = base64.b64encode(json.dumps(outputs).encode()).decode()
        document = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": _record(name), "namespace": namespace, "labels": {"owner": "hpkit", "name": name}},
            "type": _TYPE,
            "data": {"release": record},
        }
        self._api.apply(task, _path(namespace, name), document, fieldManager=_MANAGER, force="true")
        task.warn(f"{inputs.get('chart')} {inputs.get('version', '')}: {_NOTE}")
        return f"{namespace}/{name}", outputs

    def read(self, task: Task, release_id: str) -> tuple[Props, Props] | None:
        """Return inputs and outputs of a record; None when it is not there."""
        namespace, _, name = release_id.rpartition("/")
        found = self._api.find(task, _path(namespace or self._api.namespace, name))
        if found is None or found.get("type") != _TYPE:
            return None
        outputs: Props = json.loads(base64.b64decode(found["data"]["release"]))
        return {key: value for key, value in outputs.items() if key not in ("status", "resourceNames")}, outputs

    def delete(self, task: Task, release_id: str) -> None:
        """Delete the record; a namespace made for it stays, as with helm."""
        namespace, _, name = release_id.rpartition("/")
        secret: Props = {"apiVersion": "v1", "kind": "Secret"}
        secret["metadata"] = {"name": _record(name), "namespace": namespace}
        self.cluster.delete(task, secret, manager=_MANAGER, patch=False)


def _outputs(inputs: Props, revision: int) -> Props:
    known: dict[str, Any] = {key: inputs.get(key, "") for key in ("name", "namespace", "chart", "version")}
    return {**inputs, "status": {**known, "status": "recorded", "revision": revision}, "resourceNames": {}}


def _record(name: str) -> str:
    return f"hpkit.release.v1.{name}"


def _path(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{namespace}/secrets/{_record(name)}"

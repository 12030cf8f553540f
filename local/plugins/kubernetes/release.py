"""Helm releases: installed where helm and the chart can be had, else recorded; a Secret says which it was."""

import base64
import json
import random
import secrets
from dataclasses import dataclass
from typing import Final

from local.plugins.kubernetes.cluster import Cluster
from local.plugins.kubernetes.helm import Helm
from provider.engine.errors import InitFailedError, PluginError
from provider.engine.task import Task
from provider.engine.values import UNKNOWN, Props, is_unknown

__all__ = ["REPLACES", "TOKEN", "Release", "checked"]

TOKEN: Final = "kubernetes:helm.sh/v3:Release"  # noqa: S105 - a type's token
REPLACES: Final = ("name", "namespace")
_MANAGER: Final = "pulumi-kubernetes"
_TYPE: Final = "hpkit.local/release.v1"
_OUTPUTS: Final = ("status", "resourceNames")
_RECORDED: Final = "recorded"


def checked(inputs: Props, old: Props, *, name: str, namespace: str, seed: bytes) -> Props:
    """Return the inputs with a name and a namespace, as the official plugin gives them."""
    digits = random.Random(seed).getrandbits(32) if seed else secrets.randbits(32)  # noqa: S311 - the engine's seed
    made = {"name": old.get("name") or f"{name}-{digits:08x}", "namespace": old.get("namespace") or namespace}
    return {**made, **inputs}


@dataclass(frozen=True)
class Release:
    """The releases of an API server, and one Secret for each, in the release's namespace."""

    cluster: Cluster
    helm: Helm

    def preview(self, inputs: Props) -> Props:
        """Return the outputs of a preview."""
        return {**inputs, **dict.fromkeys(_OUTPUTS, UNKNOWN)}

    def write(self, task: Task, inputs: Props, *, revision: int) -> tuple[str, Props]:
        """Install and write down, or write down only; return id and outputs."""
        if any(is_unknown(inputs.get(key)) for key in ("name", "namespace", "chart")):
            raise PluginError("name, namespace and chart of a release must be known to make it")
        release_id = f"{inputs['namespace']}/{inputs['name']}"
        if inputs.get("createNamespace"):
            self._create_namespace(task, str(inputs["namespace"]))
        known = {key: inputs.get(key, "") for key in ("name", "namespace", "chart", "version")}
        status = {**known, "status": _RECORDED, "revision": revision}
        lacks = self.helm.why_not(task, inputs)
        if lacks:
            task.warn(f"{inputs['chart']} {inputs.get('version', '')}: recorded, not installed: {lacks}")
            return release_id, self._record(task, inputs, status)
        # Written down before, so that what fails half-way is known to be helm's.
        outputs = self._record(task, inputs, {**status, "status": "pending"})
        try:
            status = self.helm.install(task, inputs)
        except PluginError as error:
            raise InitFailedError(str(error), resource_id=release_id, state=outputs, inputs=inputs) from None
        task.warn("installed without hooks, and not waited for: no kubelet and no controllers run in the local cloud")
        return release_id, self._record(task, inputs, status)

    def read(self, task: Task, release_id: str) -> tuple[Props, Props] | None:
        """Return inputs and outputs as written down; None when nothing is."""
        namespace, _, name = release_id.rpartition("/")
        found = self.cluster.api.find(task, _path(namespace or self.cluster.api.namespace, name))
        if found is None or found.get("type") != _TYPE:
            return None
        outputs: Props = json.loads(base64.b64decode(found["data"]["release"]))
        return {key: value for key, value in outputs.items() if key not in _OUTPUTS}, outputs

    def delete(self, task: Task, release_id: str) -> None:
        """Uninstall what was installed, and delete the record; a namespace made for it stays, as with helm."""
        namespace, _, name = release_id.rpartition("/")
        found = self.read(task, release_id)
        if found is not None and found[1]["status"]["status"] != _RECORDED:
            self.helm.uninstall(task, namespace, name)
        secret: Props = {"apiVersion": "v1", "kind": "Secret"}
        secret["metadata"] = {"name": _secret(name), "namespace": namespace}
        self.cluster.delete(task, secret, manager=_MANAGER, patch=False)

    def _create_namespace(self, task: Task, name: str) -> None:
        document = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        self.cluster.api.apply(task, f"/api/v1/namespaces/{name}", document, fieldManager=_MANAGER, force="true")

    def _record(self, task: Task, inputs: Props, status: Props) -> Props:
        outputs = {**inputs, "status": status, "resourceNames": {}}
        name, namespace = str(inputs["name"]), str(inputs["namespace"])
        document = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": _secret(name), "namespace": namespace, "labels": {"owner": "hpkit", "name": name}},
            "type": _TYPE,
            "data": {"release": base64.b64encode(json.dumps(outputs).encode()).decode()},
        }
        self.cluster.api.apply(task, _path(namespace, name), document, fieldManager=_MANAGER, force="true")
        return outputs


def _secret(name: str) -> str:
    return f"hpkit.release.v1.{name}"


def _path(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{namespace}/secrets/{_secret(name)}"

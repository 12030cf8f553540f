"""Releases whose chart isn't available: recorded in a Secret, so that the rest of a program can be tested."""

import base64
import json
from dataclasses import dataclass
from typing import Final

from hpkit_local.plugins.kubernetes.cluster import Cluster
from hpkit_provider.engine.call import EngineCall
from hpkit_provider.engine.values import Props

__all__ = ["LACKING", "RECORDED", "RecordedReleases", "path_of_release"]

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

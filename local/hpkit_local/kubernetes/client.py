"""One request to an API server on loopback, by its path: shared by `Api` and the fake `kubernetes` plugin.

The ApiClient of package `kubernetes` sends it. Why not its DynamicClient: docs/decisions/0008-requests-by-path.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from kubernetes.client import ApiClient, Configuration
from kubernetes.config.kube_config import KubeConfigLoader

__all__ = [
    "APPLY_PATCH",
    "JSON",
    "MERGE_PATCH",
    "METADATA_LIST",
    "ApiResource",
    "configuration_of",
    "loopback_client",
    "request",
]

JSON = "application/json"
APPLY_PATCH = "application/apply-patch+yaml"
MERGE_PATCH = "application/merge-patch+json"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_CONNECTIONS = 64


@dataclass(frozen=True)
class ApiResource:
    """A kind that the API server serves; `verbs` are set if discovery returned them."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool = False
    verbs: tuple[str, ...] = ()

    def folder(self, namespace: str = "") -> str:
        """Return the path of all objects of the kind, in a namespace if it has those."""
        root = f"/apis/{self.api_version}" if "/" in self.api_version else f"/api/{self.api_version}"
        inside = f"/namespaces/{quote(namespace)}" if self.namespaced and namespace else ""
        return f"{root}{inside}/{self.plural}"

    def path(self, namespace: str, name: str) -> str:
        """Return the path of one object."""
        return f"{self.folder(namespace)}/{quote(name)}"


def configuration_of(
    document: dict[str, Any], *, folder: Path, context: str | None = None, certificates: Path | None = None
) -> Configuration:
    """Return a kubeconfig's data, in its current context or another. Raises ConfigException if it's invalid.

    Relative paths in it start from `folder`. Certificates that it contains as data are written to files in
    `certificates`, or to temporary ones, because Python reads them only from files.
    """
    configuration = Configuration()
    loader = KubeConfigLoader(  # type: ignore[no-untyped-call] # `kubernetes` has no types
        config_dict=document,
        active_context=context,
        config_base_path=str(folder),
        temp_file_path=str(certificates) if certificates else None,
    )
    loader.load_and_set(configuration)  # type: ignore[no-untyped-call]
    return configuration


def loopback_client(configuration: Configuration) -> ApiClient:
    """Return a client that threads can share; it keeps connections, and leaves retries to its users."""
    configuration.proxy = None  # a loopback address is never behind one
    configuration.retries = False
    configuration.connection_pool_maxsize = _CONNECTIONS
    return ApiClient(configuration)


def request(
    client: ApiClient,
    method: str,
    path: str,
    document: Mapping[str, Any] | None = None,
    *,
    query: Mapping[str, str] | None = None,
    content_type: str = JSON,
    accept: str = JSON,
    seconds: float,
) -> tuple[int, bytes]:
    """Return status and body of the answer; HTTPError or ApiException if the server doesn't answer."""
    headers = {"Accept": accept, "Content-Type": content_type}
    bearer = client.configuration.auth_settings().get("BearerToken")
    if bearer is not None and bearer["value"]:
        headers["Authorization"] = bearer["value"]
    url = f"{client.configuration.host}{path}" + (f"?{urlencode(query)}" if query else "")
    response = client.call_api(method, url, headers, document, _request_timeout=seconds)
    body: bytes = response.read()  # type: ignore[no-untyped-call] # `kubernetes` has no types
    return response.status, body

"""The API server of a local cloud: read, server-side apply, merge, replace and delete, each by path.

One request to an API server on loopback, by its path: shared by `Api` and the fake `kubernetes` plugin. The ApiClient
of package `kubernetes` sends it. Why not its DynamicClient: docs/decisions/0008-requests-by-path.md.

Reads CRDs and other manifests from folders, and applies Kueue's CRDs to the local API server. The API server reads and
writes a CRD about ten times before it serves it. Most of a large one is descriptions of fields, which only `kubectl
explain` shows, so CRDs are created without them.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import yaml
from kubernetes.client import ApiClient, Configuration
from kubernetes.client.exceptions import ApiException
from kubernetes.config.kube_config import KubeConfigLoader
from urllib3.exceptions import HTTPError

__all__ = [
    "APPLY_PATCH",
    "JSON",
    "Api",
    "ApiResource",
    "RejectedError",
    "apply_crds",
    "configuration_of",
    "crds_in",
    "documents",
    "loopback_client",
    "request",
    "without_descriptions",
]

JSON = "application/json"
APPLY_PATCH = "application/apply-patch+yaml"
MERGE_PATCH = "application/merge-patch+json"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_CONNECTIONS = 64
_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_DIGEST = "hpkit.local/digest"
_SERVED_SECONDS, _PAUSE_SECONDS = 5.0, 0.1
# As in Kueue 0.19.2, config/components/crd/kustomization.yaml.
_CONVERTED = {"clusterqueues", "cohorts", "localqueues", "multikueueclusters", "workloads"}


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


# A large CRD takes a busy API server more than ten.
_SECONDS = 30
_FIELD_MANAGER = "hpkit-local"


class RejectedError(OSError):
    """The API server answered with an error; the message is its own, `status` the HTTP one."""

    def __init__(self, message: str, *, status: int) -> None:
        super().__init__(message)
        self.status = status


class Api:
    """An API server on loopback. Threads share it; OSError while it cannot be reached."""

    def __init__(self, client: ApiClient, *, field_manager: str) -> None:
        self._client = client
        self._field_manager = field_manager

    @classmethod
    def of_kubeconfig(cls, path: Path, *, field_manager: str = _FIELD_MANAGER) -> Api:
        """Return the server that a kubeconfig of a local cloud leads to.

        Python reads certificates only from files. They are in folder `pki` next to the kubeconfig until this process
        ends, because temporary files may be cleaned up earlier.
        """
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        # The local cloud's own context, even if a user has chosen another since.
        context = document["contexts"][0]["name"]
        configuration = configuration_of(
            document, context=context, folder=path.parent, certificates=path.parent / "pki"
        )
        return cls(loopback_client(configuration), field_manager=field_manager)

    @property
    def host(self) -> str:
        """Return the server's address."""
        return str(self._client.configuration.host)

    def healthy(self) -> bool:
        """Return whether it's ready to serve."""
        return self._send("GET", "/readyz")[0] == http.client.OK

    def read(self, path: str) -> dict[str, Any]:
        """Return the object at a path. Raises RejectedError if the server doesn't return it."""
        return self._answer("GET", path)

    def find(self, path: str) -> dict[str, Any] | None:
        """Return the object at a path, or None."""
        try:
            return self.read(path)
        except RejectedError as error:
            if error.status != http.client.NOT_FOUND:
                raise
            return None

    def items(
        self, folder: str, *, labels: str = "", fields: str = "", metadata_only: bool = False, cached: bool = False
    ) -> list[dict[str, Any]]:
        """Return the objects of a kind, or none if the server does not have the kind.

        metadata_only: without spec and status; cached: from the API server's cache, which may be slightly behind.
        """
        query = {**({"labelSelector": labels} if labels else {}), **({"fieldSelector": fields} if fields else {})}
        if cached:
            query["resourceVersion"] = "0"
        try:
            # Empty lists can be null.
            answer = self._answer("GET", folder, query=query, accept=METADATA_LIST if metadata_only else JSON)
        except RejectedError as error:
            if error.status != http.client.NOT_FOUND:
                raise
            return []
        return answer["items"] or []

    def plurals(self, api_version: str) -> set[str]:
        """Return the plural names of the kinds that a group and version serves; none if it doesn't exist."""
        return {str(each["name"]) for each in (self.find(f"/apis/{api_version}") or {}).get("resources", [])}

    def revision(self) -> str:
        """Return the server's version: the same as before if nothing was written."""
        answer = self._answer("GET", "/api/v1/namespaces", query={"limit": "1"}, accept=METADATA_LIST)
        return str(answer["metadata"]["resourceVersion"])

    def changes(self, folder: str) -> Iterator[None]:
        """Yield on each change of an object of a kind, and once for each existing one; OSError when the watch ends."""
        url = f"{self.host}{folder}?watch=true"
        headers = {"Accept": METADATA_LIST.replace("List", "")}
        try:
            response = self._client.call_api("GET", url, headers, None)
            for _ in response.response:
                yield
        except (HTTPError, ApiException) as error:
            raise ConnectionError(f"GET {folder}: {error}") from error

    def apply(self, path: str, document: Mapping[str, Any]) -> dict[str, Any]:
        """Apply server-side: the document's fields are set, regardless of their previous owner."""
        query = {"fieldManager": self._field_manager, "force": "true"}
        return self._answer("PATCH", path, document, query=query, content_type=APPLY_PATCH)

    def merge(self, path: str, document: Mapping[str, Any]) -> dict[str, Any]:
        """JSON merge patch: null removes a field."""
        return self._answer("PATCH", path, document, content_type=MERGE_PATCH)

    def create(self, folder: str, document: Mapping[str, Any]) -> dict[str, Any]:
        """Create an object; RejectedError if it exists."""
        return self._answer("POST", folder, document)

    def replace(self, path: str, document: Mapping[str, Any]) -> dict[str, Any]:
        """Replace a whole object."""
        return self._answer("PUT", path, document)

    def delete(self, path: str) -> None:
        """Begin to delete; do nothing if the object doesn't exist.

        A pod ends immediately, without its grace period.
        """
        query = {"propagationPolicy": "Background", "gracePeriodSeconds": "0"}
        try:
            self._answer("DELETE", path, query=query)
        except RejectedError as error:
            if error.status != http.client.NOT_FOUND:
                raise

    def close(self) -> None:
        """Close the open connections."""
        self._client.rest_client.close()

    def _answer(self, method: str, path: str, document: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        status, text = self._send(method, path, document, **more)
        if status >= http.client.BAD_REQUEST:
            reason = text[:2000].decode(errors="replace")
            raise RejectedError(f"{method} {path}: {status} {reason}", status=status)
        answer: dict[str, Any] = json.loads(text)
        return answer

    def _send(
        self, method: str, path: str, document: Mapping[str, Any] | None = None, **options: Any
    ) -> tuple[int, bytes]:
        try:
            return request(self._client, method, path, document, seconds=_SECONDS, **options)
        except (HTTPError, ApiException) as error:
            raise ConnectionError(f"{method} {path}: {error}") from error


def documents(file: Path) -> Iterator[dict[str, Any]]:
    """Yield every document of a manifest file."""
    # The C loader reads the 1.5 MB of CRDs eight times as fast; it is the same safe one.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    yield from (each for each in yaml.load_all(file.read_text(encoding="utf-8"), Loader=loader) if each)


def crds_in(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield every CRD of a folder; their files are named <group>_<plural>.yaml, as controller-gen names them."""
    for file in sorted(folder.glob("*_*.yaml")):
        yield from documents(file)


def without_descriptions(part: Any) -> Any:
    """Return a CRD, or a part of one, without the texts of descriptions; fields of that name have schemas."""
    if isinstance(part, list):
        return [without_descriptions(each) for each in part]
    if not isinstance(part, dict):
        return part
    return {
        key: without_descriptions(value)
        for key, value in part.items()
        if not (key == "description" and isinstance(value, str))
    }


def apply_crds(api: Api, folder: Path, *, convert_url: str, bundle: str) -> None:
    """Apply Kueue's CRDs from a folder; CRDs with version conversion get their webhook's address.

    CRDs that are already up to date aren't applied: the API server takes seconds for them.
    """
    existing = {
        definition["metadata"]["name"]: definition["metadata"].get("annotations", {})
        for definition in api.items(_PATH, metadata_only=True)
    }
    crds = [without_descriptions(each) for each in crds_in(folder)]
    for crd in crds:
        metadata = crd["metadata"]
        if crd["spec"]["names"]["plural"] in _CONVERTED:
            client = {"url": convert_url, "caBundle": bundle}
            webhook = {"clientConfig": client, "conversionReviewVersions": ["v1"]}
            crd["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
        digest = hashlib.sha256(json.dumps(crd, sort_keys=True).encode()).hexdigest()
        metadata["annotations"] = {**metadata.get("annotations", {}), _DIGEST: digest}
        if metadata["name"] not in existing:
            api.create(_PATH, crd)
        elif existing[metadata["name"]].get(_DIGEST) != digest:
            api.apply(f"{_PATH}/{metadata['name']}", crd)
    _await_served(api, crds)


def _await_served(api: Api, crds: Sequence[Mapping[str, Any]]) -> None:
    """Wait for the kinds. Raises ConnectionError if they aren't served in time; the caller tries again."""
    deadline = time.monotonic() + _SERVED_SECONDS
    for crd in crds:
        group, plural = crd["spec"]["group"], crd["spec"]["names"]["plural"]
        for version in (each["name"] for each in crd["spec"]["versions"] if each["served"]):
            while plural not in api.plurals(f"{group}/{version}"):
                if time.monotonic() > deadline:
                    raise ConnectionError(f"{plural}.{group} isn't served yet")
                time.sleep(_PAUSE_SECONDS)

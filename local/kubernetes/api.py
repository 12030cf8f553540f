"""HTTPS to the local API server: read, server-side apply, merge, replace and delete."""

import base64
import http.client
import json
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlencode, urlparse

import yaml

from local.kubernetes.pki import Pair
from local.supervisor.files import write_private

__all__ = ["Api", "RefusedError", "get"]

_SECONDS = 10
_OWNER = "hpkit-local"
_JSON = "application/json"
_BARE = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


class RefusedError(OSError):
    """The API server answered with an error; the message is its own, `status` the HTTP one."""

    def __init__(self, message: str, *, status: int) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Api:
    """An API server on loopback, reached with a client certificate.

    `owner` is the field manager of `apply`. With `keep` it is for one thread, which closes the one connection at last.
    """

    port: int
    authority: Pair
    client: Pair
    owner: str = _OWNER
    keep: bool = False

    @classmethod
    def of_kubeconfig(cls, path: Path, *, owner: str, keep: bool = False) -> "Api":
        """Return the server that a kubeconfig of `write_kubeconfig` leads to."""
        told = yaml.safe_load(path.read_text(encoding="utf-8"))
        cluster, user = told["clusters"][0]["cluster"], told["users"][0]["user"]
        texts = {
            "ca": cluster["certificate-authority-data"],
            "certificate": user["client-certificate-data"],
            "key": user["client-key-data"],
        }
        port = int(urlparse(cluster["server"]).port or 443)
        # Certificates are read from files only: these are there until the context has them.
        with TemporaryDirectory() as folder:
            files = {name: Path(folder) / name for name in texts}
            for name, text in texts.items():
                write_private(files[name], base64.b64decode(text))
            # A kubeconfig holds no authority's key, and nothing is signed here.
            ca, pair = Pair(files["ca"], Path(os.devnull)), Pair(files["certificate"], files["key"])
            found = cls(port=port, authority=ca, client=pair, owner=owner, keep=keep)
            _ = found._context
        return found

    def healthy(self) -> bool:
        """Say whether it is ready to serve."""
        return self._ask("GET", "/readyz")[0] == http.client.OK

    def read(self, path: str) -> dict[str, Any]:
        """Return what a path holds; RefusedError if the server does not give it."""
        return self._said("GET", path)

    def items(self, folder: str, *, labels: str = "", bare: bool = False) -> list[dict[str, Any]]:
        """Return the objects of a kind, `bare` only their metadata; none if the server does not have the kind."""
        path = f"{folder}?{urlencode({'labelSelector': labels})}" if labels else folder
        try:
            # No objects may come as null.
            found: list[dict[str, Any]] = self._said("GET", path, accept=_BARE if bare else _JSON)["items"] or []
        except RefusedError as error:
            if error.status != http.client.NOT_FOUND:
                raise
            return []
        return found

    def apply(self, path: str, document: Mapping[str, Any]) -> dict[str, Any]:
        """Server-side apply: the document's fields become as given, whoever had them before."""
        query = urlencode({"fieldManager": self.owner, "force": "true"})
        return self._said("PATCH", f"{path}?{query}", document, kind="application/apply-patch+yaml")

    def merge(self, path: str, document: Mapping[str, Any]) -> dict[str, Any]:
        """JSON merge patch: null takes a field away."""
        return self._said("PATCH", path, document, kind="application/merge-patch+json")

    def create(self, folder: str, document: Mapping[str, Any]) -> dict[str, Any]:
        """Create an object; RefusedError if it is there."""
        return self._said("POST", folder, document)

    def replace(self, path: str, document: Mapping[str, Any]) -> dict[str, Any]:
        """Put a whole object in the place of what is there."""
        return self._said("PUT", path, document)

    def delete(self, path: str) -> None:
        """Begin to delete; nothing happens if it is gone.

        No garbage collector would end an orphaning delete, and no kubelet a pod's period of grace.
        """
        status, text = self._ask("DELETE", f"{path}?propagationPolicy=Background&gracePeriodSeconds=0")
        if status >= http.client.BAD_REQUEST and status != http.client.NOT_FOUND:
            raise RefusedError(_reason("DELETE", path, status, text), status=status)

    def _said(
        self,
        method: str,
        path: str,
        document: Mapping[str, Any] | None = None,
        *,
        kind: str = _JSON,
        accept: str = _JSON,
    ) -> dict[str, Any]:
        status, text = self._ask(method, path, document, kind=kind, accept=accept)
        if status >= http.client.BAD_REQUEST:
            raise RefusedError(_reason(method, path, status, text), status=status)
        answer: dict[str, Any] = json.loads(text)
        return answer

    def _ask(
        self,
        method: str,
        path: str,
        document: Mapping[str, Any] | None = None,
        *,
        kind: str = _JSON,
        accept: str = _JSON,
    ) -> tuple[int, bytes]:
        body = None if document is None else json.dumps(document)
        headers = {"Content-Type": kind, "Accept": accept}
        if self._kept:
            try:
                return _exchange(self._kept[0], method, path, body, headers=headers)
            except OSError:
                # The server may have ended it meanwhile; what is asked here does no harm when asked twice.
                self.close()
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=_SECONDS, context=self._context)
        try:
            answer = _exchange(connection, method, path, body, headers=headers)
            if self.keep:
                self._kept.append(connection)
            return answer
        finally:
            if connection not in self._kept:
                connection.close()

    def close(self) -> None:
        """Close the connection that was kept."""
        while self._kept:
            self._kept.pop().close()

    @cached_property
    def _kept(self) -> list[http.client.HTTPSConnection]:
        return []

    @cached_property
    def _context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.authority.certificate))
        context.load_cert_chain(self.client.certificate, self.client.key)
        return context


def get(port: int, path: str) -> int:
    """Return the status that a plain HTTP endpoint on loopback answers."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        return _exchange(connection, "GET", path, None)[0]
    finally:
        connection.close()


def _reason(method: str, path: str, status: int, text: bytes) -> str:
    return f"{method} {path}: {status} {text[:2000].decode(errors='replace')}"


def _exchange(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    body: str | None,
    *,
    headers: Mapping[str, str] | None = None,
) -> tuple[int, bytes]:
    try:
        connection.request(method, path, body=body, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read()
    except http.client.HTTPException as error:
        raise ConnectionError(f"{method} {path}: {error!r}") from error

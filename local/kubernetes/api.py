"""HTTPS to the local API server: read, and server-side apply."""

import http.client
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from local.kubernetes.pki import Pair

__all__ = ["Api", "RefusedError", "get"]

_SECONDS = 10
_OWNER = "hpkit-local"


class RefusedError(OSError):
    """The API server answered with an error; the message is its own."""


@dataclass(frozen=True)
class Api:
    """An API server on loopback, reached with a client certificate."""

    port: int
    authority: Pair
    client: Pair

    def healthy(self) -> bool:
        """Say whether it is ready to serve."""
        return self._ask("GET", "/readyz")[0] == http.client.OK

    def read(self, path: str) -> dict[str, Any]:
        """Return what a path holds; RefusedError if the server does not give it."""
        return self._said("GET", path)

    def apply(self, path: str, document: Mapping[str, Any]) -> dict[str, Any]:
        """Server-side apply: the document's fields become as given, whoever had them before."""
        return self._said("PATCH", f"{path}?fieldManager={_OWNER}&force=true", document)

    def _said(self, method: str, path: str, document: Mapping[str, Any] | None = None) -> dict[str, Any]:
        status, text = self._ask(method, path, document)
        if status >= http.client.BAD_REQUEST:
            raise RefusedError(f"{method} {path}: {status} {text[:2000].decode(errors='replace')}")
        answer: dict[str, Any] = json.loads(text)
        return answer

    def _ask(self, method: str, path: str, document: Mapping[str, Any] | None = None) -> tuple[int, bytes]:
        context = ssl.create_default_context(cafile=str(self.authority.certificate))
        context.load_cert_chain(self.client.certificate, self.client.key)
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=_SECONDS, context=context)
        body = None if document is None else json.dumps(document)
        return _exchange(connection, method, path, body)


def get(port: int, path: str) -> int:
    """Return the status that a plain HTTP endpoint on loopback answers."""
    return _exchange(http.client.HTTPConnection("127.0.0.1", port, timeout=2), "GET", path, None)[0]


def _exchange(connection: http.client.HTTPConnection, method: str, path: str, body: str | None) -> tuple[int, bytes]:
    try:
        connection.request(method, path, body=body, headers={"Content-Type": "application/apply-patch+yaml"})
        answer = connection.getresponse()
        return answer.status, answer.read()
    except http.client.HTTPException as error:
        raise ConnectionError(f"{method} {path}: {error!r}") from error
    finally:
        connection.close()

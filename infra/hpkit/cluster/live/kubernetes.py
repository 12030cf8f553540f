"""The Kubernetes API as plain data: typed models would cost more than the call."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kubernetes.client import ApiException
from pydantic_core import from_json

__all__ = ["CONFLICT", "FORBIDDEN", "NOT_FOUND", "TOO_MANY_REQUESTS", "Kubernetes", "Query", "message_of"]

FORBIDDEN: Final = 403
NOT_FOUND: Final = 404
CONFLICT: Final = 409
TOO_MANY_REQUESTS: Final = 429
_PAGE: Final = 500
_TYPES: Final = {"POST": "application/json", "DELETE": "application/json"}

Query = tuple[tuple[str, str], ...]


class Kubernetes:
    """Calls of one API server; each raises ApiException where the server rejects."""

    def __init__(self, client: Any, headers: Mapping[str, str] | None = None) -> None:
        self._client = client
        self._headers = headers or {}

    def impersonating(self, user: str, group: str) -> Kubernetes:
        """Return the same API server as another user in a group, for a caller who can impersonate."""
        return Kubernetes(self._client, {"Impersonate-User": user, "Impersonate-Group": group})

    def get(self, path: str, query: Query = ()) -> Any:
        """Return an object, or one page of a list."""
        return self._call("GET", path, query=query)

    def find(self, path: str) -> Any | None:
        """Return the object at a path, or None."""
        try:
            return self.get(path)
        except ApiException as error:
            if error.status != NOT_FOUND:
                raise
            return None

    def pages(self, path: str, query: Query = ()) -> Iterator[Any]:
        """Yield all objects of a list, page by page."""
        token = ""
        while True:
            page = self.get(path, (*query, ("limit", str(_PAGE)), *([("continue", token)] if token else [])))
            yield from page["items"]
            token = page["metadata"].get("continue") or ""
            if not token:
                return

    def count(self, path: str) -> int | None:
        """Return how many objects a list without selectors has; None if the API server doesn't count them."""
        page = self.get(path, (("limit", "1"),))
        found, metadata = len(page["items"]), page["metadata"]
        if not metadata.get("continue"):
            return found
        more: int | None = metadata.get("remainingItemCount")
        return None if more is None else found + more

    def create(self, path: str, document: Mapping[str, Any], query: Query = ()) -> Any:
        """Create an object, or ask a review, and return the answer."""
        return self._call("POST", path, query=query, body=document)

    def delete(self, path: str, options: Mapping[str, Any]) -> Any:
        """Delete an object."""
        return self._call("DELETE", path, body=options)

    def version_of(self, group: str) -> str | None:
        """Return the path of an API group's preferred version, None where the API server has none such."""
        found = self.find(f"/apis/{group}")
        return None if found is None else f"/apis/{found['preferredVersion']['groupVersion']}"

    def _call(self, method: str, path: str, *, query: Query = (), body: Mapping[str, Any] | None = None) -> Any:
        content = {"Content-Type": _TYPES[method]} if body is not None else {}
        headers = {"Accept": "application/json", **content, **self._headers}
        request = self._client.param_serialize(
            method, path, query_params=list(query), header_params=headers, body=body, auth_settings=["BearerToken"]
        )
        response = self._client.call_api(*request)
        response.read()
        if not 200 <= response.status < 300:
            raise ApiException(http_resp=response)
        # Takes half the time of json's. Values differ too much for a cache.
        return from_json(response.data, cache_strings="keys")


def message_of(error: ApiException) -> str:
    """Return the API server's reason of a rejection, with its causes, such as a blocking budget."""
    try:
        status = json.loads(error.body or "{}")
    except ValueError:
        return f"{error.status} {error.reason}"
    causes = [each["message"] for each in (status.get("details") or {}).get("causes") or () if each.get("message")]
    return "; ".join(causes) or status.get("message") or f"{error.status} {error.reason}"

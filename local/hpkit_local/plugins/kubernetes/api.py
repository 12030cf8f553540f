"""Calls to the API server: discovery of kinds, retries of temporary failures, and its own texts in every error."""

import json
import threading
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from kubernetes.client import Configuration
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from hpkit_local.kubernetes.api import APPLY_PATCH, JSON, ApiResource, request
from hpkit_local.plugins.kubernetes.access import Connection
from hpkit_provider.engine.call import EngineCall
from hpkit_provider.engine.errors import PluginError

__all__ = ["ApiError", "RetryingApi"]

_SECONDS = 30
_PATIENCE_SECONDS = 300.0  # a cloud that is started again is up by then, on the busiest machine
_FIRST, _MOST = 0.1, 2.0
_DENIALS = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)


class ApiError(PluginError):
    """The API server rejected a request; the message is its own."""

    def __init__(self, subject: str, status: Mapping[str, Any]) -> None:
        self.code = int(status.get("code", 0))
        self.reason = str(status.get("reason", ""))
        self.message = str(status.get("message", "no message"))
        self.causes: list[dict[str, str]] = (status.get("details") or {}).get("causes") or []
        super().__init__(f"{subject} was rejected ({self.code} {self.reason}): {self.message}" + _advice(self.code))


class RetryingApi:
    """The API server. Threads share it."""

    def __init__(self, access: Connection) -> None:
        self._access = access
        self._lock = threading.Lock()
        self._kinds: dict[str, list[ApiResource]] = {}

    @property
    def namespace(self) -> str:
        """The namespace of objects that name none."""
        return self._access.namespace

    @property
    def configuration(self) -> Configuration:
        """The connection to the API server."""
        configuration: Configuration = self._access.client.configuration
        return configuration

    def renew_token(self) -> None:
        """Make the next token a new one, for a caller that uses it longer than a call takes."""
        if self._access.token is not None:
            self._access.token.forget()

    def kind(self, call: EngineCall, api_version: str, name: str) -> ApiResource | None:
        """Return a kind; None if the API server does not serve it (any more, or yet)."""
        with self._lock:
            known = self._kinds.get(api_version, [])
        found = next((kind for kind in known if kind.kind == name), None)
        return found or next((kind for kind in self.kinds(call, api_version) if kind.kind == name), None)

    def kinds(self, call: EngineCall, api_version: str) -> list[ApiResource]:
        """Return what a group and version serves; nothing if it doesn't exist."""
        root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        try:
            listed = self.ask(call, "GET", root).get("resources", [])
        except ApiError as error:
            if error.code != HTTPStatus.NOT_FOUND:
                raise
            listed = []
        kinds = [
            ApiResource(api_version, entry["kind"], entry["name"], bool(entry["namespaced"]), tuple(entry["verbs"]))
            for entry in listed
            if "/" not in entry["name"]
        ]
        with self._lock:
            self._kinds[api_version] = kinds
        return kinds

    def find(self, call: EngineCall, path: str) -> dict[str, Any] | None:
        """Return an object; None when it is not there."""
        try:
            return self.ask(call, "GET", path)
        except ApiError as error:
            if error.code == HTTPStatus.NOT_FOUND:
                return None
            raise

    def apply(self, call: EngineCall, path: str, document: Mapping[str, Any], **query: str) -> dict[str, Any]:
        """Server-side apply, strict about fields that do not exist."""
        return self.ask(call, "PATCH", path, document, fieldValidation="Strict", **query)

    def ask(
        self, call: EngineCall, method: str, path: str, document: Mapping[str, Any] | None = None, **query: str
    ) -> dict[str, Any]:
        """Call; temporary failures are retried for a while, because every call can be repeated."""
        delays = call.delays(_FIRST, _MOST)
        started = call.left
        sure = False
        while True:
            try:
                return self._once(method, path, document, query)
            except ApiError as error:
                if error.code in _DENIALS and not sure:
                    sure = self._is_meant(error.code)
                elif not _passes(error):
                    raise
                if started - call.left > _PATIENCE_SECONDS:
                    raise
                call.progress(f"the API server is busy: {error.message}")
            except HTTPError as error:
                self.require_way()
                if started - call.left > _PATIENCE_SECONDS:
                    raise PluginError(
                        f"{method} {path}: the API server {self.configuration.host} doesn't respond "
                        f"({error}). To fix: `hpkit local list` shows the local clouds; `hpkit local start --name "
                        "NAME`."
                    ) from None
                call.progress("the API server doesn't respond yet")
            except ApiException as error:  # the client's error for a certificate that doesn't match
                self.require_way()
                reason = " ".join(str(error.reason).split())
                raise PluginError(
                    f"{method} {path}: no safe connection to {self.configuration.host}: {reason}. To fix: "
                    "check certificate-authority-data in kubernetes:kubeconfig."
                ) from None
            call.pause(next(delays))

    def require_way(self) -> None:
        """Raise PluginError if EKS's endpoint doesn't admit this machine, because a retry would fail too."""
        why = self._access.token.why_unreachable() if self._access.token is not None else ""
        if why:
            raise PluginError(
                f"configured Kubernetes cluster is unreachable: {why}. On AWS, the connection would time out. "
                "To fix: eks.endpoint of the organization sets who can connect; `hpkit local start --from "
                "ADDRESS` sets your address."
            )

    def _is_meant(self, denial: int) -> bool:
        """Return whether a denial is permanent: the authorizer might be unavailable, or not ready."""
        if denial == HTTPStatus.FORBIDDEN:
            # Until it's ready, it doesn't know any permissions.
            return self._ready()
        token = self._access.token
        if token is None:
            return True
        self.require_way()
        token.forget()
        return token.can_be_reviewed()

    def _ready(self) -> bool:
        try:
            self._once("GET", "/readyz", None, {})
        except (ApiError, HTTPError):
            return False
        return True

    def _once(
        self, method: str, path: str, document: Mapping[str, Any] | None, query: Mapping[str, str]
    ) -> dict[str, Any]:
        content_type = APPLY_PATCH if method == "PATCH" else JSON
        status, text = request(
            self._access.client, method, path, document, query=query, content_type=content_type, seconds=_SECONDS
        )
        answer = _read(text, status)
        if status >= HTTPStatus.BAD_REQUEST:
            raise ApiError(f"{method} {path}", {"code": status, **answer})
        return answer


def _read(text: bytes, status: int) -> dict[str, Any]:
    try:
        answer = json.loads(text)
    except ValueError:
        answer = None
    if isinstance(answer, dict):
        return answer
    return {"message": text.decode(errors="replace")[:1000], "reason": HTTPStatus(status).phrase}


def _advice(code: int) -> str:
    if code != HTTPStatus.UNAUTHORIZED:
        return ""
    return ". To fix: give the caller of `aws sts get-caller-identity` an EKS access entry, or other credentials."


def _passes(error: ApiError) -> bool:
    """Return whether the failure is temporary: overload, start-up, a webhook that is restarting."""
    if error.code in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT):
        return True
    unreachable = "failed calling webhook" in error.message and "connect" in error.message
    return error.code == HTTPStatus.INTERNAL_SERVER_ERROR and unreachable

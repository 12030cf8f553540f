"""The part of Grafana's HTTP API that hpkit uses: its own objects by UID, and the notification policy.

Source: Grafana documentation, HTTP API (data source, folder, dashboard, search, alerting provisioning), version 10.4
and 12.4. Errors are in the body's `message`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import urllib3

from hpkit.errors import ToolError
from hpkit.grafana.changes import Change, Found
from hpkit.grafana.desired import GrafanaObject, Kind
from hpkit.grafana.identity import prefix_of, uid_of

if TYPE_CHECKING:
    from hpkit.grafana.workspace import Access

__all__ = ["Client"]

_NOT_FOUND: Final = 404
_ERRORS: Final = 300  # Redirects aren't followed: they could lead to another server.
_CHANGED_MEANWHILE: Final = (409, 412)
_SECONDS: Final = urllib3.Timeout(connect=5, read=30)
# Only for reads: an interrupted write might have happened.
_RETRIES: Final = urllib3.Retry(3, backoff_factor=0.5, status_forcelist=(429, 502, 503), raise_on_status=False)
_PAGE: Final = 5000
# This lets people edit the policy in Grafana, which otherwise only the API could change.
_EDITABLE: Final = {"X-Disable-Provenance": "true"}
_PATHS: Final[Mapping[Kind, str]] = {
    "data source": "/api/datasources/uid/{uid}",
    "folder": "/api/folders/{uid}",
    "dashboard": "/api/dashboards/uid/{uid}",
    "contact point": "/api/v1/provisioning/contact-points/{uid}",
    "alert rule": "/api/v1/provisioning/alert-rules/{uid}",
}
_CREATE: Final[Mapping[Kind, str]] = {
    "data source": "/api/datasources",
    "folder": "/api/folders",
    "dashboard": "/api/dashboards/db",
    "contact point": "/api/v1/provisioning/contact-points",
    "alert rule": "/api/v1/provisioning/alert-rules",
}
_POLICIES: Final = "/api/v1/provisioning/policies"


class Client:
    """A workspace's Grafana; every method raises ToolError with Grafana's message."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._pool = urllib3.PoolManager(timeout=_SECONDS)

    def read(self, stack: str) -> Found:
        """Return the workspace's objects for a stack: all that have a UID of the stack."""
        prefix = prefix_of(stack)
        found = (*self._data_sources(), *self._folder(stack), *self._alerting())
        objects = {(each.kind, each.uid): each for each in found if each.uid.startswith(prefix)}
        # A workspace without Grafana alerting has no policy either.
        return Found(objects, self._find(_POLICIES) or {})

    def carry_out(self, change: Change, *, stack: str) -> None:
        """Create, update or delete one object, or write the notification policy."""
        if change.kind == "notification policy":
            self._set_policy(change.body)
        elif change.action == "delete":
            self._call("DELETE", _path(change.kind, change.uid), may_be_gone=True)
        elif change.kind == "dashboard":
            self._call("POST", _CREATE[change.kind], _dashboard_request(change, stack))
        elif change.action == "create":
            self._call("POST", _CREATE[change.kind], change.body)
        else:
            self._call("PUT", _path(change.kind, change.uid), _versioned(change))

    def _data_sources(self) -> Iterator[GrafanaObject]:
        for each in self._get(_CREATE["data source"]):
            yield GrafanaObject("data source", each["uid"], each["name"], each)

    def _folder(self, stack: str) -> Iterator[GrafanaObject]:
        """Yield the stack's folder, and the dashboards in it."""
        uid = uid_of(stack, "folder")
        folder = self._find(_path("folder", uid))
        if folder is None:
            return
        yield GrafanaObject("folder", uid, folder["title"], folder)
        for each in self._get(f"/api/search?type=dash-db&folderUIDs={quote(uid)}&limit={_PAGE}"):
            body = self._get(_path("dashboard", each["uid"]))["dashboard"]
            yield GrafanaObject("dashboard", each["uid"], each["title"], body)

    def _alerting(self) -> Iterator[GrafanaObject]:
        for body in self._find(_CREATE["contact point"]) or ():
            yield GrafanaObject("contact point", body["uid"], body["name"], body)
        for body in self._find(_CREATE["alert rule"]) or ():
            yield GrafanaObject("alert rule", body["uid"], body["title"], body)

    def _set_policy(self, policy: Mapping[str, Any]) -> None:
        # Objects provisioned by the API keep that mark; Grafana refuses to remove it.
        headers = {} if policy.get("provenance") == "api" else _EDITABLE
        body = {key: value for key, value in policy.items() if key != "provenance"}
        self._call("PUT", _POLICIES, body, headers=headers)

    def _get(self, path: str) -> Any:
        return self._call("GET", path)

    def _find(self, path: str) -> Any:
        return self._call("GET", path, may_be_gone=True)

    def _call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        may_be_gone: bool = False,
    ) -> Any:
        """Return Grafana's response, or None for a missing object if that is allowed."""
        sent = None if body is None else json.dumps(body).encode()
        try:
            answer = self._pool.request(
                method,
                f"{self._access.url}{path}",
                body=sent,
                headers={**self._access.headers(), "Content-Type": "application/json", **(headers or {})},
                retries=_RETRIES if method == "GET" else False,
                redirect=False,
            )
        except urllib3.exceptions.HTTPError as error:
            raise ToolError(
                f"Grafana at {self._access.url} doesn't respond: {type(error).__name__}. What to do: check that this "
                "machine can reach it; a workspace with networkAccessControl responds only to its own networks"
            ) from None
        if answer.status == _NOT_FOUND and may_be_gone:
            return None
        if answer.status >= _ERRORS:
            raise _refused(method, path, answer.status, answer.data, self._access.secret)
        try:
            return json.loads(answer.data) if answer.data else None
        except ValueError:
            raise ToolError(
                f"{self._access.address}{path.partition('?')[0]} doesn't return JSON, so it isn't Grafana's API. "
                "What to do: check that existingGrafana.url is Grafana's address, without a login page in front of it"
            ) from None


def _path(kind: Kind, uid: str) -> str:
    return _PATHS[kind].format(uid=quote(uid, safe=""))


def _versioned(change: Change) -> Mapping[str, Any]:
    """Return the request body. Grafana rejects a version that isn't the newest."""
    return change.body if change.version is None else {**change.body, "version": change.version}


def _dashboard_request(change: Change, stack: str) -> dict[str, Any]:
    return {
        "dashboard": {"id": None, **_versioned(change)},
        "folderUid": uid_of(stack, "folder"),
        "message": "hpkit cluster grafana apply",
        "overwrite": False,
    }


def _refused(method: str, path: str, status: int, data: bytes, secret: str) -> ToolError:
    try:
        message = str(json.loads(data).get("message") or "no reason given")
    except (ValueError, AttributeError):
        message = "no reason given"
    advice = {
        **dict.fromkeys(range(_ERRORS, 400), "set existingGrafana.url to the address that it leads to"),
        401: f"store a valid token of a service account in {secret}"
        if secret
        else "Grafana no longer accepts the token of this run; run the command again",
        404: "alert rules need Grafana alerting, which `pulumi up` turns on for a file with grafanaAlerts",
        403: "see the permissions of service accounts in the workspace",
        **dict.fromkeys(_CHANGED_MEANWHILE, "something of this name or a newer version is there; run it again to see"),
    }.get(status, "see Grafana's message")
    return ToolError(
        f"Grafana answered {method} {path.partition('?')[0]} with {status}: {message}. What to do: {advice}"
    )

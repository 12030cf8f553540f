"""Grafana's HTTP API, as far as the kit uses it: its own objects by uid, and the notification policy.

Source: Grafana documentation, HTTP API (data source, folder, dashboard, search, alerting provisioning), version 10.4
and 12.4. A body says what is wrong in `message`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
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
_ERRORS: Final = 400
_CHANGED_MEANWHILE: Final = (409, 412)
_SECONDS: Final = urllib3.Timeout(connect=5, read=30)
# Of reading alone: a write that was cut off may have happened.
_RETRIES: Final = urllib3.Retry(3, backoff_factor=0.5, status_forcelist=(429, 502, 503), raise_on_status=False)
_PAGE: Final = 5000
# With it people may go on to change the policy in Grafana, which otherwise only the API could.
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
    """One workspace's Grafana; every method raises ToolError with what Grafana said."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._pool = urllib3.PoolManager(timeout=_SECONDS)

    def read(self, stack: str) -> Found:
        """Return what the workspace holds of a stack: whatever has a uid of it."""
        prefix, folder = prefix_of(stack), uid_of(stack, "folder")
        objects: dict[tuple[Kind, str], GrafanaObject] = {}

        def keep(kind: Kind, uid: str, title: str, body: dict[str, Any]) -> None:
            objects[kind, uid] = GrafanaObject(kind, uid, title, body)

        for each in self._get("/api/datasources"):
            if str(each["uid"]).startswith(prefix):
                # The list leaves out what the source itself has.
                keep("data source", each["uid"], each["name"], self._get(_path("data source", each["uid"])))
        if (found := self._find(_path("folder", folder))) is not None:
            keep("folder", folder, found["title"], found)
            query = f"/api/search?type=dash-db&folderUIDs={quote(folder)}&limit={_PAGE}"
            for each in self._get(query):
                if str(each["uid"]).startswith(prefix):
                    body = self._get(_path("dashboard", each["uid"]))["dashboard"]
                    keep("dashboard", each["uid"], each["title"], body)
        for each in self._get(_CREATE["contact point"]):
            if str(each["uid"]).startswith(prefix):
                keep("contact point", each["uid"], each["name"], each)
        for each in self._get(_CREATE["alert rule"]):
            if str(each["uid"]).startswith(prefix):
                keep("alert rule", each["uid"], each["title"], each)
        return Found(objects, self._get(_POLICIES))

    def carry_out(self, change: Change, *, stack: str) -> None:
        """Make, update or delete one object, or write the notification policy."""
        if change.kind == "notification policy":
            assert change.wanted is not None
            # What was provisioned by the API stays so: Grafana refuses to take that mark away.
            provisioned = change.wanted.get("provenance") == "api"
            body = {key: value for key, value in change.wanted.items() if key != "provenance"}
            self._call("PUT", _POLICIES, body, headers={} if provisioned else _EDITABLE)
        elif change.wanted is None:
            assert change.found is not None
            self._delete(change.found)
        elif change.found is None:
            self._create(change.kind, change.wanted, stack)
        else:
            self._update(change.kind, change.wanted, change.found, stack)

    def _create(self, kind: Kind, body: dict[str, Any], stack: str) -> None:
        sent = _dashboard_request(body, stack) if kind == "dashboard" else body
        self._call("POST", _CREATE[kind], sent)

    def _update(self, kind: Kind, body: dict[str, Any], found: GrafanaObject, stack: str) -> None:
        # Grafana refuses a version that is no longer the newest: somebody changed it since it was read.
        version = found.body.get("version")
        if kind == "dashboard":
            self._call("POST", _CREATE[kind], _dashboard_request({**body, "version": version}, stack))
        elif kind in ("folder", "data source"):
            self._call("PUT", _path(kind, found.uid), {**body, "version": version})
        else:
            self._call("PUT", _path(kind, found.uid), body)

    def _delete(self, found: GrafanaObject) -> None:
        self._call("DELETE", _path(found.kind, found.uid), may_be_gone=True)

    def _get(self, path: str) -> Any:
        return self._call("GET", path)

    def _find(self, path: str) -> Any:
        return self._call("GET", path, may_be_gone=True)

    def _call(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        may_be_gone: bool = False,
    ) -> Any:
        """Return what Grafana answers, None for what is not there where that may be."""
        sent = None if body is None else json.dumps(body).encode()
        try:
            answer = self._pool.request(
                method,
                f"{self._access.url}{path}",
                body=sent,
                headers={**self._access.headers(), "Content-Type": "application/json", **(headers or {})},
                retries=_RETRIES if method == "GET" else False,
            )
        except urllib3.exceptions.HTTPError as error:
            raise ToolError(
                f"Grafana at {self._access.url} does not answer: {type(error).__name__}. What to do: see whether this "
                "machine reaches it; a workspace with networkAccessControl answers to its own networks alone"
            ) from None
        if answer.status == _NOT_FOUND and may_be_gone:
            return None
        if answer.status >= _ERRORS:
            raise _refused(method, path, answer.status, answer.data)
        return json.loads(answer.data) if answer.data else None


def _path(kind: Kind, uid: str) -> str:
    return _PATHS[kind].format(uid=quote(uid, safe=""))


def _dashboard_request(body: dict[str, Any], stack: str) -> dict[str, Any]:
    return {
        "dashboard": {"id": None, **body},
        "folderUid": uid_of(stack, "folder"),
        "message": "hpkit grafana apply",
        "overwrite": False,
    }


def _refused(method: str, path: str, status: int, data: bytes) -> ToolError:
    try:
        said = str(json.loads(data).get("message") or "no reason given")
    except (ValueError, AttributeError):
        said = "no reason given"
    advice = {
        401: "the token of this run is no longer taken; run it again",
        403: "see the permissions of service accounts in the workspace",
        **dict.fromkeys(_CHANGED_MEANWHILE, "something of this name or a newer version is there; run it again to see"),
    }.get(status, "see Grafana's message")
    return ToolError(f"Grafana answered {method} {path.partition('?')[0]} with {status}: {said}. What to do: {advice}")

"""Data sources, folders and dashboards of a workspace, as Grafana's HTTP API stores them."""

from __future__ import annotations

import re
from typing import Any

from hpkit_local.aws.backend import Record
from hpkit_local.aws.services.grafana.http import GrafanaError, Request, route

__all__: list[str] = []

_UID = re.compile(r"[A-Za-z0-9_-]{1,40}")
_CHANGED = "has been changed by someone else"


# Source: https://grafana.com/docs/grafana/v10.4/developers/http_api/data_source/
def _object(request: Request, kind: str, message: str) -> Record:
    record: Record | None = request.content[kind].get(request.uid)
    if record is None:
        raise GrafanaError(404, message)
    return record


# Source: https://grafana.com/docs/grafana/v10.4/developers/http_api/dashboard/
def _new_uid(request: Request, uid: str | None) -> str:
    new_uid = uid or request.ctx.token(14)
    if not _UID.fullmatch(new_uid):
        raise GrafanaError(400, "uid contains illegal characters or is longer than 40 characters")
    return new_uid


# Grafana documentation, Data source HTTP API.
@route("GET", "/api/datasources", role="ADMIN")
def list_data_sources(request: Request) -> tuple[int, Any]:
    """All data sources."""
    return 200, list(request.content["datasources"].values())


@route("GET", "/api/datasources/uid/{uid}", role="ADMIN")
def get_data_source(request: Request) -> tuple[int, Any]:
    """One data source."""
    return 200, _object(request, "datasources", "Data source not found")


# Source: https://grafana.com/docs/grafana/v10.4/developers/http_api/data_source/
@route("POST", "/api/datasources", role="ADMIN")
def add_data_source(request: Request) -> tuple[int, Any]:
    """Add one; names and uids are unique."""
    uid = _new_uid(request, request.body.get("uid"))
    _check_data_source(request, uid)
    if uid in request.content["datasources"]:
        raise GrafanaError(409, "data source with the same uid already exists")
    made = {"readOnly": False, "isDefault": False, "version": 1, **request.body, "uid": uid}
    request.content["datasources"][uid] = made
    return 200, {"datasource": made, "message": "Datasource added", "name": made["name"]}


# Inferred from: https://grafana.com/docs/grafana/v10.4/developers/http_api/data_source/
@route("PUT", "/api/datasources/uid/{uid}", role="ADMIN")
def update_data_source(request: Request) -> tuple[int, Any]:
    """Replace one, if the version that was read is still the newest."""
    stored = _object(request, "datasources", "Data source not found")
    _check_data_source(request, request.uid)
    if request.body.get("version") not in (None, stored["version"]):
        raise GrafanaError(409, "Datasource has already been updated by someone else. Please reload and try again")
    updated = {**stored, **request.body, "uid": request.uid, "version": stored["version"] + 1}
    request.content["datasources"][request.uid] = updated
    return 200, {"datasource": updated, "message": "Datasource updated", "name": updated["name"]}


# Source: https://grafana.com/docs/grafana/v10.4/developers/http_api/data_source/
def _check_data_source(request: Request, uid: str) -> None:
    body = request.body
    if not all(body.get(key) for key in ("name", "type", "access")):
        raise GrafanaError(400, "bad request data")
    others = [each["name"] for each in request.content["datasources"].values() if each["uid"] != uid]
    if body["name"] in others:
        raise GrafanaError(409, "data source with the same name already exists")


@route("DELETE", "/api/datasources/uid/{uid}", role="ADMIN")
def delete_data_source(request: Request) -> tuple[int, Any]:
    """Delete one."""
    _object(request, "datasources", "Data source not found")
    del request.content["datasources"][request.uid]
    return 200, {"message": "Data source deleted"}


# Grafana documentation, Folder HTTP API.
@route("GET", "/api/folders/{uid}", role="VIEWER")
def get_folder(request: Request) -> tuple[int, Any]:
    """One folder."""
    return 200, _object(request, "folders", "folder not found")


# Source: https://grafana.com/docs/grafana/v10.4/developers/http_api/folder/
@route("POST", "/api/folders", role="EDITOR")
def add_folder(request: Request) -> tuple[int, Any]:
    """Add one; titles and uids are unique."""
    uid = _new_uid(request, request.body.get("uid"))
    _check_folder(request, uid)
    if uid in request.content["folders"]:
        raise GrafanaError(412, f"The folder {_CHANGED}", word="version-mismatch")
    made = {"uid": uid, "title": request.body["title"], "version": 1}
    request.content["folders"][uid] = made
    return 200, made


# Source: https://grafana.com/docs/grafana/v10.4/developers/http_api/folder/
@route("PUT", "/api/folders/{uid}", role="EDITOR")
def update_folder(request: Request) -> tuple[int, Any]:
    """Change the title, if the version that was read is still the newest."""
    folder = _object(request, "folders", "folder not found")
    _check_folder(request, request.uid)
    if request.body.get("version") != folder["version"] and not request.body.get("overwrite"):
        raise GrafanaError(412, f"The folder {_CHANGED}", word="version-mismatch")
    folder.update(title=request.body["title"], version=folder["version"] + 1)
    return 200, folder


# Source: https://grafana.com/docs/grafana/v10.4/developers/http_api/folder/
def _check_folder(request: Request, uid: str) -> None:
    title = request.body.get("title")
    if not title:
        raise GrafanaError(400, "folder title cannot be empty")
    if title in [each["title"] for each in request.content["folders"].values() if each["uid"] != uid]:
        raise GrafanaError(409, "a folder with the same name already exists in the current location")


# Source: https://grafana.com/docs/grafana/v10.4/developers/http_api/folder/
@route("DELETE", "/api/folders/{uid}", role="EDITOR")
def delete_folder(request: Request) -> tuple[int, Any]:
    """Delete one with its dashboards, unless alert rules are in it."""
    _object(request, "folders", "folder not found")
    forced = request.query.get("forceDeleteRules") == ["true"]
    rules = [uid for uid, rule in request.content["rules"].items() if rule["folderUID"] == request.uid]
    if rules and not forced:
        raise GrafanaError(400, "folder cannot be deleted: folder contains alert rules")
    for uid in rules:
        del request.content["rules"][uid]
    dashboards = request.content["dashboards"]
    for uid in [uid for uid, each in dashboards.items() if each["folderUid"] == request.uid]:
        del dashboards[uid]
    del request.content["folders"][request.uid]
    return 200, {"message": "Folder deleted"}


# Grafana documentation, Dashboard HTTP API, Folder/Dashboard search HTTP API.
@route("GET", "/api/search", role="VIEWER")
def search(request: Request) -> tuple[int, Any]:
    """Dashboards in folders."""
    folders = request.query.get("folderUIDs", [])
    return 200, [
        {"uid": uid, "title": record["dashboard"]["title"], "type": "dash-db", "folderUid": record["folderUid"]}
        for uid, record in request.content["dashboards"].items()
        if not folders or record["folderUid"] in folders
    ]


@route("GET", "/api/dashboards/uid/{uid}", role="VIEWER")
def get_dashboard(request: Request) -> tuple[int, Any]:
    """One dashboard."""
    found = _object(request, "dashboards", "Dashboard not found")
    return 200, {"dashboard": found["dashboard"], "meta": {"folderUid": found["folderUid"]}}


# Source: https://grafana.com/docs/grafana/v10.4/developers/http_api/dashboard/
@route("POST", "/api/dashboards/db", role="EDITOR")
def save_dashboard(request: Request) -> tuple[int, Any]:
    """Create or replace a dashboard; a version that isn't the newest is refused, unless `overwrite` is set."""
    body, folder = request.body.get("dashboard"), request.body.get("folderUid", "")
    if not isinstance(body, dict) or not body.get("title"):
        raise GrafanaError(400, "Dashboard title cannot be empty", word="empty-name")
    if folder and folder not in request.content["folders"]:
        raise GrafanaError(400, "folder not found")
    uid = _new_uid(request, body.get("uid"))
    saved, overwrite = request.content["dashboards"].get(uid), bool(request.body.get("overwrite"))
    if saved and body.get("version") != saved["dashboard"]["version"] and not overwrite:
        raise GrafanaError(412, f"The dashboard {_CHANGED}", word="version-mismatch")
    version = saved["dashboard"]["version"] + 1 if saved else 1
    number = saved["dashboard"]["id"] if saved else len(request.content["dashboards"]) + 1
    dashboard = {**body, "uid": uid, "id": number, "version": version}
    request.content["dashboards"][uid] = {"dashboard": dashboard, "folderUid": folder}
    return 200, {"id": number, "uid": uid, "status": "success", "version": version, "url": f"/d/{uid}"}


@route("DELETE", "/api/dashboards/uid/{uid}", role="EDITOR")
def delete_dashboard(request: Request) -> tuple[int, Any]:
    """Delete one."""
    found = _object(request, "dashboards", "Dashboard not found")
    del request.content["dashboards"][request.uid]
    return 200, {"title": found["dashboard"]["title"], "message": "Dashboard deleted"}

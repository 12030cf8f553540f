"""The HTTP API of the workspaces' Grafana: paths and permissions.

No Grafana runs: no query is executed, no alert rule is evaluated, and no one is notified.

Source: Grafana documentation, HTTP API, of version 10.4.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, unquote

from hpkit_local.aws.api import HOSTS
from hpkit_local.aws.backend import Backend, Context, Record
from hpkit_local.aws.errors import Reply
from hpkit_local.aws.services.grafana.service_accounts import role_of_token
from hpkit_local.aws.services.grafana.workspaces import TABLE

__all__ = ["GrafanaError", "Request", "answer", "route", "workspace_of_host"]

_HOST = re.compile(r"(g-[0-9a-f]{10})\.grafana-workspace\.([a-z0-9-]+)\.amazonaws\.com(?::\d+)?")
_ROLES = ("VIEWER", "EDITOR", "ADMIN")
_NO_CONTENT = 204


class GrafanaError(Exception):
    """A rejection by Grafana: HTTP status and message, and a status text for some."""

    def __init__(self, status: int, message: str, *, word: str = "") -> None:
        super().__init__(f"{status} {message}")
        self.status = status
        self.body = {"message": message, **({"status": word} if word else {})}


@dataclass(frozen=True)
class Request:
    """One request to a workspace; uid is the part of the path that names an object."""

    ctx: Context
    workspace: Record
    uid: str
    query: Mapping[str, list[str]]
    body: Record
    headers: Mapping[str, str]

    @property
    def content(self) -> Record:
        """The contents of a workspace's Grafana."""
        found: Record = self.workspace["content"]
        return found


Handler = Callable[[Request], tuple[int, Any]]
_ROUTES: list[tuple[str, re.Pattern[str], str, Handler]] = []


def route(method: str, path: str, *, role: str) -> Callable[[Handler], Handler]:
    """Register the handler of a path, which can contain `{uid}`; role: the minimum role of a caller."""
    pattern = re.compile(re.escape(path).replace(r"\{uid\}", "(?P<uid>[^/]+)"))

    def register(handler: Handler) -> Handler:
        _ROUTES.append((method, pattern, role, handler))
        return handler

    return register


def workspace_of_host(host: str) -> tuple[str, str] | None:
    """Return id and region of the workspace that a host name is of, None for any other host."""
    found = _HOST.fullmatch(host)
    return (found[1], found[2]) if found else None


def answer(backend: Backend, environ: Mapping[str, Any], identifier: str, region: str) -> Reply:
    """Answer one request to a workspace's Grafana; call it with the backend locked."""
    backend.settle()
    try:
        status, body = _answered(backend.context(region), environ, identifier)
    except GrafanaError as error:
        status, body = error.status, error.body
    if environ["REQUEST_METHOD"] != "GET":
        backend.touched("own")
        backend.save()
    text = b"" if status == _NO_CONTENT else json.dumps(body).encode()
    return Reply(status, text, {"Content-Type": "application/json"})


# Source: https://docs.aws.amazon.com/grafana/latest/userguide/authenticating-grafana-apis.html
def _answered(ctx: Context, environ: Mapping[str, Any], identifier: str) -> tuple[int, Any]:
    workspace = _workspace(ctx, identifier)
    method, path = environ["REQUEST_METHOD"], unquote(environ.get("PATH_INFO", ""))
    role = _role(ctx, workspace, environ.get("HTTP_AUTHORIZATION", ""))
    for known, pattern, least, handler in _ROUTES:
        match = pattern.fullmatch(path)
        if known == method and match:
            if _ROLES.index(role) < _ROLES.index(least):
                raise GrafanaError(403, "You'll need additional permissions to perform this action.")
            return handler(_request(ctx, workspace, environ, match.groupdict().get("uid", "")))
    raise GrafanaError(404, "Not found")


# Inferred from: https://docs.aws.amazon.com/grafana/latest/userguide/authenticating-grafana-apis.html
def _workspace(ctx: Context, identifier: str) -> Record:
    workspace = ctx.table(TABLE).get(identifier)
    if workspace is None or workspace["status"] != "ACTIVE":
        raise GrafanaError(404, "Not found")
    return workspace


# Source: https://docs.aws.amazon.com/grafana/latest/userguide/authenticating-grafana-apis.html
def _role(ctx: Context, workspace: Record, authorization: str) -> str:
    kind, _, key = authorization.partition(" ")
    role = role_of_token(ctx, workspace, key) if kind == "Bearer" else None
    if role is None:
        raise GrafanaError(401, "Invalid API key")
    return role


# Inferred from: https://grafana.com/docs/grafana/v10.4/developers/http_api/data_source/
def _request(ctx: Context, workspace: Record, environ: Mapping[str, Any], uid: str) -> Request:
    raw = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    try:
        body = json.loads(raw) if raw else {}
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise GrafanaError(400, "bad request data")
    headers = {name[5:].replace("_", "-").lower(): value for name, value in environ.items() if name[:5] == "HTTP_"}
    return Request(ctx, workspace, uid, parse_qs(environ.get("QUERY_STRING", "")), body, headers)


HOSTS.append((workspace_of_host, answer))

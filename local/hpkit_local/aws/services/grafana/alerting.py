"""Alert rules, contact points and the notification policy of a workspace, by Grafana's alerting provisioning API.

Source: Grafana documentation, "Alerting provisioning HTTP API". Objects written without the header
`X-Disable-Provenance` have the provenance `api`, which no request removes.
"""

from __future__ import annotations

import re
from typing import Any

from hpkit_local.aws.backend import Record
from hpkit_local.aws.services.grafana.http import GrafanaError, Request, route

__all__: list[str] = []

_RULES = "/api/v1/provisioning/alert-rules"
_POINTS = "/api/v1/provisioning/contact-points"
_POLICIES = "/api/v1/provisioning/policies"
_RULE_MEMBERS = ("title", "ruleGroup", "folderUID", "condition", "data", "noDataState", "execErrState", "for")
_UID = re.compile(r"[A-Za-z0-9_-]{1,40}")
# Known types of contact points of Amazon Managed Grafana, and the settings that each requires.
_POINT_TYPES = {"email": "addresses", "sns": "topic", "slack": "url", "webhook": "url"}


# Inferred from: https://grafana.com/docs/grafana/v10.4/developers/http_api/alerting_provisioning/
def _provenance(request: Request, before: str = "") -> str:
    """Return the provenance after a write, from the previous one."""
    _require_alerting(request)
    provenance = "" if "x-disable-provenance" in request.headers else "api"
    if before == "api" and not provenance:
        raise GrafanaError(403, "cannot change provenance from 'api' to ''")
    return provenance


# Inferred from: https://docs.aws.amazon.com/grafana/latest/userguide/AMG-configure-workspace.html
def _require_alerting(request: Request) -> None:
    if not request.workspace["configuration"]["unifiedAlerting"]["enabled"]:
        raise GrafanaError(404, "Not found")


@route("GET", _RULES, role="EDITOR")
def list_rules(request: Request) -> tuple[int, Any]:
    """All rules."""
    _require_alerting(request)
    return 200, list(request.content["rules"].values())


# Inferred from: https://grafana.com/docs/grafana/v10.4/developers/http_api/alerting_provisioning/
@route("POST", _RULES, role="EDITOR")
def add_rule(request: Request) -> tuple[int, Any]:
    """Add a rule; its uid is unique, and its title in its folder."""
    provenance = _provenance(request)
    uid = str(request.body.get("uid") or request.ctx.token(14))
    _check_rule(request, uid)
    if uid in request.content["rules"]:
        raise GrafanaError(409, "conflicting alert rule found: a rule with this uid exists")
    made = {"orgID": 1, **request.body, "uid": uid, "provenance": provenance}
    request.content["rules"][uid] = made
    return 201, made


@route("PUT", _RULES + "/{uid}", role="EDITOR")
def update_rule(request: Request) -> tuple[int, Any]:
    """Replace a rule."""
    found = _rule(request)
    provenance = _provenance(request, found["provenance"])
    _check_rule(request, request.uid)
    made = {"orgID": 1, **request.body, "uid": request.uid, "provenance": provenance}
    request.content["rules"][request.uid] = made
    return 200, made


@route("DELETE", _RULES + "/{uid}", role="EDITOR")
def delete_rule(request: Request) -> tuple[int, Any]:
    """Delete a rule; one that is not there is deleted as well."""
    _require_alerting(request)
    request.content["rules"].pop(request.uid, None)
    return 204, None


# Source: https://grafana.com/docs/grafana/v10.4/developers/http_api/alerting_provisioning/
def _rule(request: Request) -> Record:
    _require_alerting(request)
    rule: Record | None = request.content["rules"].get(request.uid)
    if rule is None:
        raise GrafanaError(404, "could not find the alert rule")
    return rule


# Inferred from: https://grafana.com/docs/grafana/v10.4/developers/http_api/alerting_provisioning/
def _check_rule(request: Request, uid: str) -> None:
    body = request.body
    missing = [member for member in _RULE_MEMBERS if not body.get(member)]
    if missing or not _UID.fullmatch(uid):
        raise GrafanaError(400, f"invalid alert rule: {', '.join(missing) or 'uid'}")
    if body["folderUID"] not in request.content["folders"]:
        raise GrafanaError(400, "invalid alert rule: folder does not exist")
    if body["condition"] not in [each.get("refId") for each in body["data"]]:
        raise GrafanaError(400, f"invalid alert rule: condition {body['condition']} does not exist")
    sources = {each.get("datasourceUid") for each in body["data"]} - {"__expr__"}
    if not sources <= request.content["datasources"].keys():
        raise GrafanaError(400, "invalid alert rule: data source not found")
    place = (body["folderUID"], body["title"])
    others = [(each["folderUID"], each["title"]) for key, each in request.content["rules"].items() if key != uid]
    if place in others:
        raise GrafanaError(409, "conflicting alert rule found: a rule with this title exists in the folder")


@route("GET", _POINTS, role="EDITOR")
def list_points(request: Request) -> tuple[int, Any]:
    """All contact points."""
    _require_alerting(request)
    return 200, list(request.content["contactPoints"].values())


# Inferred from: https://grafana.com/docs/grafana/v10.4/developers/http_api/alerting_provisioning/
@route("POST", _POINTS, role="EDITOR")
def add_point(request: Request) -> tuple[int, Any]:
    """Add a contact point; its uid is unique."""
    provenance = _provenance(request)
    uid = str(request.body.get("uid") or request.ctx.token(14))
    _check_point(request)
    if uid in request.content["contactPoints"]:
        raise GrafanaError(409, "a contact point with this uid exists")
    made = {**request.body, "uid": uid, "provenance": provenance}
    request.content["contactPoints"][uid] = made
    return 202, made


# Inferred from: https://grafana.com/docs/grafana/v10.4/developers/http_api/alerting_provisioning/
@route("PUT", _POINTS + "/{uid}", role="EDITOR")
def update_point(request: Request) -> tuple[int, Any]:
    """Replace a contact point."""
    _require_alerting(request)
    point = request.content["contactPoints"].get(request.uid)
    if point is None:
        raise GrafanaError(404, "contact point does not exist")
    provenance = _provenance(request, point["provenance"])
    _check_point(request)
    request.content["contactPoints"][request.uid] = {**request.body, "uid": request.uid, "provenance": provenance}
    return 202, {"message": "contactpoint updated"}


# Inferred from: https://grafana.com/docs/grafana/v10.4/developers/http_api/alerting_provisioning/
@route("DELETE", _POINTS + "/{uid}", role="EDITOR")
def delete_point(request: Request) -> tuple[int, Any]:
    """Delete a contact point that no policy names."""
    _require_alerting(request)
    point = request.content["contactPoints"].get(request.uid)
    if point is None:
        raise GrafanaError(404, "contact point does not exist")
    if point["name"] in _receivers(request.content["policy"]):
        raise GrafanaError(409, "contact point is currently used by a notification policy")
    del request.content["contactPoints"][request.uid]
    return 202, {"message": "contactpoint deleted"}


# Source: https://grafana.com/docs/grafana/v10.4/developers/http_api/alerting_provisioning/
def _check_point(request: Request) -> None:
    needed = _POINT_TYPES.get(str(request.body.get("type")))
    if needed is None or not (request.body.get("settings") or {}).get(needed) or not request.body.get("name"):
        raise GrafanaError(400, "invalid object specification: contact point lacks its name, type or settings")


@route("GET", _POLICIES, role="EDITOR")
def get_policy(request: Request) -> tuple[int, Any]:
    """Return the whole policy."""
    _require_alerting(request)
    return 200, request.content["policy"]


# Source: https://grafana.com/docs/grafana/v10.4/developers/http_api/alerting_provisioning/
@route("PUT", _POLICIES, role="EDITOR")
def set_policy(request: Request) -> tuple[int, Any]:
    """Replace the whole policy; every contact point that it names has to be there."""
    provenance = _provenance(request, request.content["policy"].get("provenance", ""))
    names = {each["name"] for each in request.content["contactPoints"].values()}
    unknown = sorted(_receivers(request.body) - names)
    if unknown or not request.body.get("receiver"):
        raise GrafanaError(400, f"invalid object specification: receiver {', '.join(unknown)!r} does not exist")
    mark = {"provenance": provenance} if provenance else {}
    request.workspace["content"]["policy"] = {**request.body, **mark}
    return 202, {"message": "policies updated"}


def _receivers(policy: Record) -> set[str]:
    below = set().union(*(_receivers(each) for each in policy.get("routes") or ()))
    return below | ({policy["receiver"]} if policy.get("receiver") else set())

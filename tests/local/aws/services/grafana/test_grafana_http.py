"""What Grafana's API rejects, and what the service rejects about the tokens for that API."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import urllib3

RULES = "/api/v1/provisioning/alert-rules"
POINTS = "/api/v1/provisioning/contact-points"
POLICIES = "/api/v1/provisioning/policies"
QUERY = {"refId": "A", "datasourceUid": "source", "model": {"expr": "up"}}
RULE = {
    "uid": "rule",
    "title": "Rule",
    "ruleGroup": "g",
    "folderUID": "folder",
    "condition": "A",
    "data": [QUERY],
    "noDataState": "OK",
    "execErrState": "Error",
    "for": "1m",
}
POINT = {"uid": "point", "name": "Point", "type": "sns", "settings": {"topic": "t"}}
SOURCE = {"uid": "source", "name": "Source", "type": "prometheus", "access": "proxy"}
FOLDER = {"uid": "folder", "title": "Folder"}
BOARD = {"dashboard": {"uid": "board", "title": "Board"}, "folderUid": "folder"}


class Grafana:
    """A workspace, with a token for each role."""

    def __init__(self, cloud: Any, configuration: str = '{"unifiedAlerting": {"enabled": true}}') -> None:
        self.url, self.aws = cloud.endpoint.url, cloud.endpoint.client("grafana")
        made = self.aws.create_workspace(
            accountAccessType="CURRENT_ACCOUNT",
            permissionType="CUSTOMER_MANAGED",
            authenticationProviders=["AWS_SSO"],
            configuration=configuration,
        )["workspace"]
        self.host, self.which = made["endpoint"], {"workspaceId": made["id"]}
        cloud.advance(180)
        self.keys = {role: self.token(role) for role in ("ADMIN", "VIEWER")}

    def token(self, role: str) -> str:
        account = self.aws.create_workspace_service_account(**self.which, name=role, grafanaRole=role)["id"]
        answer = self.aws.create_workspace_service_account_token(
            **self.which, serviceAccountId=account, name="t", secondsToLive=600
        )
        return str(answer["serviceAccountToken"]["key"])

    def ask(
        self, method: str, path: str, body: Any = None, *, key: str | None = None, **headers: str
    ) -> tuple[int, Any]:
        sent = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        authorization = f"Bearer {self.keys['ADMIN'] if key is None else key}"
        answer = urllib3.request(
            method,
            f"{self.url}{path}",
            body=sent,
            headers={"Host": self.host, "Authorization": authorization, **headers},
            retries=False,
        )
        return answer.status, json.loads(answer.data) if answer.data else None

    def filled(self) -> Grafana:
        """Create one object of each type."""
        made = (
            ("/api/datasources", SOURCE),
            ("/api/folders", FOLDER),
            ("/api/dashboards/db", BOARD),
            (POINTS, POINT),
            (RULES, RULE),
        )
        for path, body in made:
            assert self.ask("POST", path, body)[0] in (200, 201, 202)
        return self


@pytest.fixture
def grafana(cloud: Any) -> Grafana:
    return Grafana(cloud)


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "message"),
    [
        ("GET", "/api/datasources/uid/other", None, 404, "Data source not found"),
        ("POST", "/api/datasources", {**SOURCE, "uid": "a" * 41, "name": "n"}, 400, "uid contains illegal"),
        ("POST", "/api/datasources", {**SOURCE, "name": "n"}, 409, "data source with the same uid"),
        ("POST", "/api/datasources", {**SOURCE, "uid": "n"}, 409, "data source with the same name"),
        ("POST", "/api/datasources", {"uid": "n", "name": "n"}, 400, "bad request data"),
        ("PUT", "/api/datasources/uid/source", {**SOURCE, "version": 7}, 409, "Datasource has already been updated"),
        ("POST", "/api/folders", {**FOLDER, "title": "n"}, 412, "The folder has been changed by someone else"),
        ("POST", "/api/folders", {**FOLDER, "uid": "n"}, 409, "a folder with the same name already exists"),
        ("POST", "/api/folders", {"uid": "n"}, 400, "folder title cannot be empty"),
        ("PUT", "/api/folders/folder", {**FOLDER, "version": 7}, 412, "The folder has been changed by someone else"),
        ("DELETE", "/api/folders/folder", None, 400, "folder cannot be deleted: folder contains alert rules"),
        ("POST", "/api/dashboards/db", {"dashboard": {"uid": "n"}}, 400, "Dashboard title cannot be empty"),
        ("POST", "/api/dashboards/db", {**BOARD, "folderUid": "n"}, 400, "folder not found"),
        ("POST", "/api/dashboards/db", BOARD, 412, "The dashboard has been changed by someone else"),
        ("POST", RULES, {**RULE, "title": "n"}, 409, "a rule with this uid exists"),
        ("POST", RULES, {**RULE, "uid": "n"}, 409, "a rule with this title exists"),
        ("POST", RULES, {**RULE, "uid": "n", "title": ""}, 400, "invalid alert rule: title"),
        ("POST", RULES, {**RULE, "uid": "n", "title": "n", "folderUID": "n"}, 400, "folder does not exist"),
        ("POST", RULES, {**RULE, "uid": "n", "title": "n", "condition": "B"}, 400, "condition B does not exist"),
        (
            "POST",
            RULES,
            {**RULE, "uid": "n", "title": "n", "data": [{**QUERY, "datasourceUid": "n"}]},
            400,
            "data source not found",
        ),
        ("PUT", f"{RULES}/other", RULE, 404, "could not find the alert rule"),
        ("POST", POINTS, POINT, 409, "a contact point with this uid exists"),
        ("POST", POINTS, {**POINT, "uid": "n", "settings": {}}, 400, "contact point lacks its name, type or settings"),
        ("PUT", f"{POINTS}/other", POINT, 404, "contact point does not exist"),
        ("DELETE", f"{POINTS}/other", None, 404, "contact point does not exist"),
        ("PUT", POLICIES, {"receiver": "n"}, 400, "receiver 'n' does not exist"),
        ("POST", "/api/folders", b"{", 400, "bad request data"),
        ("GET", "/api/no-such-page", None, 404, "Not found"),
    ],
)
def test_a_request_is_refused(grafana: Grafana, method: str, path: str, body: Any, status: int, message: str) -> None:
    grafana.filled()
    found, answer = grafana.ask(method, path, body)
    assert found == status, answer
    assert message in answer["message"]


def test_a_token_is_needed_that_lives(cloud_on: Callable[[str], Any]) -> None:
    cloud = cloud_on("2026-11-21")
    grafana = Grafana(cloud)
    assert grafana.ask("GET", "/api/search", key="glsa_made_up") == (401, {"message": "Invalid API key"})
    assert grafana.ask("GET", "/api/search", key=grafana.keys["VIEWER"]) == (200, [])
    assert grafana.ask("GET", "/api/search")[0] == 200
    cloud.advance(601)
    assert grafana.ask("GET", "/api/search")[0] == 401


def test_a_viewer_may_not_write(grafana: Grafana) -> None:
    status, answer = grafana.ask("POST", "/api/folders", FOLDER, key=grafana.keys["VIEWER"])
    assert (status, answer["message"][:41]) == (403, "You'll need additional permissions to per")


def test_a_contact_point_that_a_policy_names_stays(grafana: Grafana) -> None:
    grafana.filled()
    tree = {"receiver": "grafana-default-email", "routes": [{"receiver": "Point"}]}
    assert grafana.ask("PUT", POLICIES, tree)[0] == 202
    status, answer = grafana.ask("DELETE", f"{POINTS}/point")
    assert (status, answer["message"]) == (409, "contact point is currently used by a notification policy")


def test_the_mark_of_provisioning_is_not_taken_away(grafana: Grafana) -> None:
    grafana.filled()
    editable = {"X-Disable-Provenance": "true"}
    status, answer = grafana.ask("PUT", f"{RULES}/rule", RULE, **editable)
    assert (status, answer["message"]) == (403, "cannot change provenance from 'api' to ''")
    assert grafana.ask("PUT", f"{RULES}/rule", RULE)[0] == 200


def test_without_alerting_its_pages_are_not_there(cloud: Any) -> None:
    classic = Grafana(cloud, "{}")
    assert classic.ask("GET", RULES) == (404, {"message": "Not found"})
    assert classic.ask("GET", "/api/search")[0] == 200


def test_a_workspace_that_is_gone_answers_nobody(cloud: Any, grafana: Grafana) -> None:
    grafana.aws.delete_workspace(**grafana.which)
    cloud.advance(180)
    assert grafana.ask("GET", "/api/search") == (404, {"message": "Not found"})


def test_accounts_and_tokens_have_names_of_their_own(grafana: Grafana, refused: Callable[..., str]) -> None:
    aws, which = grafana.aws, grafana.which
    account = {**which, "name": "ADMIN", "grafanaRole": "ADMIN"}
    assert "already exists" in refused("ConflictException", aws.create_workspace_service_account, **account)
    own = {**which, "serviceAccountId": aws.list_workspace_service_accounts(**which)["serviceAccounts"][0]["id"]}
    token = {**own, "name": "t", "secondsToLive": 60}
    assert "already exists" in refused("ConflictException", aws.create_workspace_service_account_token, **token)


def test_accounts_and_tokens_that_are_not_there_are_said(grafana: Grafana, refused: Callable[..., str]) -> None:
    aws, which, gone = grafana.aws, grafana.which, "ResourceNotFoundException"
    own = {**which, "serviceAccountId": aws.list_workspace_service_accounts(**which)["serviceAccounts"][0]["id"]}
    refused(gone, aws.delete_workspace_service_account, **which, serviceAccountId="999")
    refused(gone, aws.delete_workspace_service_account_token, **own, tokenId="999")


@pytest.mark.parametrize(
    ("configuration", "message"),
    [("{{", "configuration is not valid JSON"), ('{"a": 1}', "configuration may have unifiedAlerting, plugins alone")],
)
def test_a_configuration_is_json_of_what_there_is(
    grafana: Grafana, refused: Callable[..., str], configuration: str, message: str
) -> None:
    update = grafana.aws.update_workspace_configuration
    assert refused("ValidationException", update, **grafana.which, configuration=configuration) == message

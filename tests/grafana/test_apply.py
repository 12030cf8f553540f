"""`hpkit cluster grafana` as users type it, on the local endpoint: AWS's API and the Grafana behind it."""

import datetime
import json
import shutil
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import urllib3
import yaml
from boto3 import Session

from hpkit.errors import ToolError
from hpkit.grafana.workspace import RIGHTS, Access, find_workspace, let_in
from hpkit.project import project_root
from hpkit_local.aws.clock import ManualClock
from hpkit_local.aws.testing import running_endpoint
from tests.cli.invoke import hpkit
from tests.documents import document
from tests.grafana.builders import file_of, plan_of

ALERTING = json.dumps({"unifiedAlerting": {"enabled": True}})
ADMIN = {"name": "somebody", "grafanaRole": "ADMIN"}


class Workspace:
    """A workspace on a running endpoint, as another user with a token sees it."""

    def __init__(self, endpoint, *, configuration=ALERTING):
        self.endpoint = endpoint
        self.aws = endpoint.client("grafana")
        made = self.aws.create_workspace(
            accountAccessType="CURRENT_ACCOUNT",
            permissionType="CUSTOMER_MANAGED",
            authenticationProviders=["AWS_SSO"],
            workspaceName="acme-dev",
            configuration=configuration,
        )["workspace"]
        self.id, self.host = made["id"], made["endpoint"]
        endpoint.client("amp").create_workspace(alias="acme-dev")
        self.account = self.aws.create_workspace_service_account(workspaceId=self.id, **ADMIN)["id"]
        own = {"workspaceId": self.id, "serviceAccountId": self.account}
        answer = self.aws.create_workspace_service_account_token(**own, name="t", secondsToLive=2592000)
        self.key = answer["serviceAccountToken"]["key"]

    def ask(self, method, path, body=None, **headers):
        """Return status and body of one request to Grafana."""
        answer = urllib3.request(
            method,
            f"{self.endpoint.url}{path}",
            body=None if body is None else json.dumps(body).encode(),
            headers={"Host": self.host, "Authorization": f"Bearer {self.key}", **headers},
            retries=False,
        )
        return answer.status, json.loads(answer.data) if answer.data else None

    def get(self, path):
        status, body = self.ask("GET", path)
        assert status == 200, body
        return body

    def accounts(self):
        found = self.aws.list_workspace_service_accounts(workspaceId=self.id)["serviceAccounts"]
        return [each["name"] for each in found]

    def session(self):
        return Session("a", "b", region_name="us-west-2")


@pytest.fixture(scope="module")
def endpoint():
    with running_endpoint(clock=ManualClock()) as running:
        yield running


@pytest.fixture
def clock(endpoint):
    clock = ManualClock()
    endpoint.reset(clock=clock)
    return clock


@pytest.fixture
def workspace(endpoint, clock, monkeypatch):
    del clock
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint.url)
    return Workspace(endpoint)


@pytest.fixture
def project(tmp_path):
    write(tmp_path)
    return tmp_path


def write(folder: Path, *names, **observability):
    shutil.copy(project_root() / "Pulumi.yaml", folder)
    (folder / "stacks").mkdir(exist_ok=True)
    (folder / "stacks" / "acme.yaml").write_text(yaml.safe_dump(file_of(*names, **observability)))
    settings = {"config": {"hpkit:organization": "acme", "hpkit:environment": "dev"}}
    (folder / "stacks" / "Pulumi.acme-dev.yaml").write_text(yaml.safe_dump(settings))


def run(project, *words, **more):
    variables = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_EC2_METADATA_DISABLED": "true", **more}
    return hpkit("cluster", "grafana", *words, cwd=project, **variables)


def done(project, *words, **more):
    answer = run(project, *words, **more)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def test_a_second_run_changes_nothing_and_says_so(workspace, project):
    first = done(project, "apply")
    assert "+ data source HyperPod acme-dev\n" in first
    assert "+ notification policy branch of acme-dev\n" in first
    assert first.splitlines()[-1] == f"18 changes made: https://{workspace.host}/dashboards"
    assert done(project, "apply") == f"no changes in {workspace.id}\n"
    assert done(project, "apply", "--remove", "--dry-run").count("\n- ") == 17


def test_what_is_made_is_what_the_stack_needs(workspace, project):
    done(project, "apply")
    (source,) = workspace.get("/api/datasources")
    amp = workspace.endpoint.client("amp").list_workspaces(alias="acme-dev")["workspaces"][0]["workspaceId"]
    assert source["url"].endswith(f"/workspaces/{amp}")
    assert source["jsonData"]["sigV4Region"] == "us-west-2"
    boards = workspace.get("/api/search?type=dash-db")
    assert len(boards) == 7
    assert len({each["folderUid"] for each in boards}) == 1
    points = workspace.get("/api/v1/provisioning/contact-points")
    assert [each["settings"]["topic"] for each in points if each["type"] == "sns"] == [
        "arn:aws:sns:us-west-2:123456789012:ops"
    ]
    assert len(workspace.get("/api/v1/provisioning/alert-rules")) == 7


def test_a_dry_run_changes_nothing(workspace, project):
    said = done(project, "apply", "--dry-run")
    assert said.splitlines()[-1] == f"18 changes to make in {workspace.id}; to apply them, remove --dry-run"
    assert workspace.get("/api/datasources") == []
    assert workspace.accounts() == ["somebody"]


def test_what_somebody_edited_is_put_back_and_named(workspace, project):
    done(project, "apply")
    uid = next(each["uid"] for each in workspace.get("/api/search") if each["title"] == "acme-dev: GPUs")
    board = workspace.get(f"/api/dashboards/uid/{uid}")["dashboard"]
    board["panels"][0]["title"] = "mine"
    saved = {"dashboard": board, "folderUid": workspace.get("/api/search")[0]["folderUid"]}
    assert workspace.ask("POST", "/api/dashboards/db", saved)[0] == 200
    said = done(project, "apply")
    assert said.splitlines()[0] == "~ dashboard acme-dev: GPUs: panels[0].title"
    assert workspace.get(f"/api/dashboards/uid/{uid}")["dashboard"]["panels"][0]["title"] != "mine"


def test_what_the_file_no_longer_says_goes_and_what_is_of_others_stays(workspace, project):
    others = [
        ("POST", "/api/folders", {"uid": "mine", "title": "Mine"}),
        ("POST", "/api/dashboards/db", {"dashboard": {"uid": "m", "title": "Mine"}, "folderUid": "mine"}),
        ("POST", "/api/datasources", {"uid": "s", "name": "Mine", "type": "prometheus", "access": "proxy"}),
        (
            "POST",
            "/api/v1/provisioning/contact-points",
            {"uid": "p", "name": "Mine", "type": "sns", "settings": {"topic": "t"}},
        ),
    ]
    for method, path, body in others:
        assert workspace.ask(method, path, body)[0] in (200, 202)
    tree = {"receiver": "grafana-default-email", "routes": [{"receiver": "Mine", "object_matchers": [["a", "=", "b"]]}]}
    assert workspace.ask("PUT", "/api/v1/provisioning/policies", tree, **{"X-Disable-Provenance": "true"})[0] == 202
    done(project, "apply")
    write(project, "ada", grafanaAlerts=None)
    said = done(project, "apply")
    assert "- dashboard acme-dev: team bob\n" in said
    assert "- contact point hpkit acme-dev\n" in said
    done(project, "apply", "--remove", "--yes")
    assert workspace.get("/api/v1/provisioning/policies") == tree
    assert workspace.get("/api/v1/provisioning/alert-rules") == []
    assert [each["uid"] for each in workspace.get("/api/datasources")] == ["s"]
    assert [each["uid"] for each in workspace.get("/api/search")] == ["m"]
    assert [each["name"] for each in workspace.get("/api/v1/provisioning/contact-points")] == [
        "grafana-default-email",
        "Mine",
    ]
    assert done(project, "apply", "--remove") == f"no changes in {workspace.id}\n"


def test_removing_asks_first(workspace, project):
    done(project, "apply")
    answer = run(project, "apply", "--remove")
    assert answer.returncode == 1
    assert "Delete these from" in answer.stdout + answer.stderr
    assert workspace.get("/api/datasources") != []
    assert workspace.accounts() == ["somebody"]


def test_the_token_is_gone_afterwards_and_was_shown_nowhere(workspace, project, monkeypatch):
    seen, made = [], Access.__init__

    def remember(self, url, host, token, **names):
        seen.append(token)
        made(self, url, host, token, **names)

    monkeypatch.setattr(Access, "__init__", remember)
    output = done(project, "apply")
    assert workspace.accounts() == ["somebody"]
    (key,) = seen
    assert key not in output
    workspace.key = key
    assert workspace.ask("GET", "/api/datasources") == (401, {"message": "Invalid API key"})
    assert not [file for file in project.rglob("*") if file.is_file() and key in file.read_text(errors="ignore")]


def test_the_token_is_gone_when_grafana_refuses(workspace, project):
    assert workspace.ask("POST", "/api/folders", {"uid": "f", "title": "HyperPod acme-dev"})[0] == 200
    answer = run(project, "apply")
    assert answer.returncode == 1
    assert (
        "Grafana answered POST /api/folders with 409: a folder with the same name already exists in the current"
        in answer.stderr
    )
    assert "What to do: " in answer.stderr
    assert workspace.accounts() == ["somebody"]


def test_a_run_that_was_killed_hinders_the_next_until_its_token_ends(workspace, project, clock):
    account = {"workspaceId": workspace.id, "name": "hpkit-grafana-apply", "grafanaRole": "ADMIN"}
    left = workspace.aws.create_workspace_service_account(**account)["id"]
    own = {"workspaceId": workspace.id, "serviceAccountId": left}
    soon = int(datetime.datetime.now(tz=datetime.UTC).timestamp() - clock.now()) + 600
    workspace.aws.create_workspace_service_account_token(**own, name="old", secondsToLive=max(soon, 1))
    answer = run(project, "apply", "--dry-run")
    assert answer.returncode == 1
    assert "another run is active in this workspace, or was killed. What to do: wait" in answer.stderr
    tokens = workspace.aws.list_workspace_service_account_tokens(**own)["serviceAccountTokens"]
    workspace.aws.delete_workspace_service_account_token(**own, tokenId=tokens[0]["id"])
    assert "18 changes to" in done(project, "apply", "--dry-run")
    assert workspace.accounts() == ["somebody"]


def test_nothing_but_its_rights_is_called(workspace, project):
    before = set(workspace.endpoint.stats()["calls"])
    account = {"workspaceId": workspace.id, "name": "hpkit-grafana-apply", "grafanaRole": "ADMIN"}
    workspace.aws.create_workspace_service_account(**account)
    done(project, "apply")
    calls = set(workspace.endpoint.stats()["calls"]) - before
    called = {each.replace(".", ":").replace("amp:", "aps:") for each in calls}
    # The fixture has called this as well.
    made = {f"grafana:CreateWorkspaceServiceAccount{each}" for each in ("", "Token")}
    assert called | made | {"secretsmanager:GetSecretValue"} == set(RIGHTS)


def test_a_workspace_without_grafana_alerting_takes_dashboards_and_says_what_it_lacks(
    endpoint, clock, project, monkeypatch
):
    del clock
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint.url)
    Workspace(endpoint, configuration="{}")
    answer = run(project, "apply")
    assert "alert rules need Grafana alerting, which `pulumi up` turns on" in answer.stderr
    write(project, grafanaAlerts=None)
    assert "no changes" in done(project, "apply")


def test_which_workspace_is_meant_is_said(workspace, project):
    again = Workspace(workspace.endpoint)
    answer = run(project, "apply", "--dry-run")
    assert "2 workspaces are called acme-dev in us-west-2: " in answer.stderr
    workspaces = workspace.endpoint.client("amp").list_workspaces()["workspaces"]
    workspace.endpoint.client("amp").delete_workspace(workspaceId=workspaces[0]["workspaceId"])
    assert again.id in done(project, "apply", "--dry-run", "--workspace", again.id)
    answer = run(project, "apply", "--workspace", "g-0123456789")
    assert "DescribeWorkspace: ResourceNotFoundException" in answer.stderr
    for each in (workspace, again):
        each.aws.delete_workspace(workspaceId=each.id)
    assert "no workspace is called acme-dev in us-west-2. What to do: deploy" in run(project, "apply").stderr


def test_without_prometheus_there_is_nothing_to_show(workspace, project):
    amp = workspace.endpoint.client("amp")
    for each in amp.list_workspaces()["workspaces"]:
        amp.delete_workspace(workspaceId=each["workspaceId"])
    answer = run(project, "apply")
    assert "0 workspaces of Managed Prometheus have the alias acme-dev" in answer.stderr
    write(project, prometheus=None)
    answer = run(project, "apply")
    assert (answer.returncode, "Set `grafana: true`" in answer.stderr) == (2, True)


def test_a_dashboard_that_somebody_saves_meanwhile_is_not_overwritten(workspace, project, monkeypatch):
    from hpkit.grafana.client import Client

    done(project, "apply")
    write(
        project,
        grafanaAlerts={"snsTopicArn": "arn:aws:sns:us-west-2:123456789012:other"},
        grafanaDashboards={"teams": []},
    )
    board = next(each for each in workspace.get("/api/search") if each["title"] == "acme-dev: nodes")
    read = Client.read

    def meanwhile(self, stack):
        live = read(self, stack)
        mine = workspace.get(f"/api/dashboards/uid/{board['uid']}")["dashboard"]
        body = {"dashboard": {**mine, "title": "mine"}, "folderUid": board["folderUid"]}
        assert workspace.ask("POST", "/api/dashboards/db", body)[0] == 200
        for each in live.objects.values():
            if each.uid == board["uid"]:
                each.body["panels"] = []
        return live

    monkeypatch.setattr(Client, "read", meanwhile)
    answer = run(project, "apply")
    assert "with 412: The dashboard has been changed by someone else" in answer.stderr
    assert workspace.get(f"/api/dashboards/uid/{board['uid']}")["dashboard"]["title"] == "mine"


def test_what_cannot_be_deleted_is_said_beside_what_went_wrong(workspace, monkeypatch):
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    session = workspace.session()
    described = find_workspace(session, plan_of())

    def fail():
        with let_in(session, described):
            workspace.endpoint.set_faults(throttle=1)
            raise ToolError("first")

    with pytest.raises(ToolError) as raised:
        fail()
    workspace.endpoint.set_faults(throttle=None)
    assert str(raised.value).startswith(
        "first. Its service account hpkit-grafana-apply is left in the workspace: DeleteWorkspaceServiceAccountToken"
    )


def test_export_writes_each_object_as_the_api_takes_it(project):
    words = ("export", "--to", "out", "--prometheus-url", "https://prometheus.example.com")
    said = run(project, *words, "--format", "json")
    assert (said.returncode, said.stderr) == (0, "wrote 18 files to out\n")
    assert len(document(said.stdout)["items"]) == 18
    (source,) = (project / "out" / "data-sources").iterdir()
    assert json.loads(source.read_text())["url"] == "https://prometheus.example.com"
    assert len(list((project / "out" / "dashboards").iterdir())) == 7
    assert "the ID of the Managed Prometheus workspace" in run(project, "export", "--to", "out").stderr


def test_a_folder_that_cannot_be_written_is_said(project):
    (project / "out").mkdir()
    (project / "out" / "dashboards").write_text("")
    answer = run(project, "export", "--to", "out")
    assert answer.returncode == 1
    assert "Name a writable folder" in answer.stderr


def test_the_page_lists_the_rights():
    page = (
        (project_root() / "docs" / "guides" / "observability.md")
        .read_text(encoding="utf-8")
        .partition("## Permissions")[2]
    )
    lacking = [each for each in RIGHTS if each.partition(":")[2] not in page]
    assert lacking == []


ARN = "arn:aws:secretsmanager:us-west-2:123456789012:secret:grafana-AbCdEf"


def stored(endpoint, **value):
    """Return the ARN of a new secret."""
    return endpoint.client("secretsmanager").create_secret(Name="grafana", **value)["ARN"]


def use_existing(project, url, arn=ARN):
    write(project, grafana=None, existingGrafana={"url": url, "tokenSecretArn": arn})


@pytest.mark.parametrize("form", ["{}", '{{"token": "{}"}}', "{}\n"], ids=["text", "JSON", "a line"])
def test_an_existing_grafana_is_opened_with_the_token_of_its_secret(workspace, project, form):
    use_existing(
        project, f"https://{workspace.host}/", stored(workspace.endpoint, SecretString=form.format(workspace.key))
    )
    before = set(workspace.endpoint.stats()["calls"])
    said = done(project, "apply")
    assert said.splitlines()[-1] == f"18 changes made: https://{workspace.host}/dashboards"
    assert workspace.key not in said
    assert done(project, "apply") == f"no changes in https://{workspace.host}\n"
    called = set(workspace.endpoint.stats()["calls"]) - before
    assert "secretsmanager.GetSecretValue" in called
    assert not any(each.startswith("grafana.") for each in called), "it may be another's"
    assert "Remove --workspace" in run(project, "apply", "--workspace", workspace.id).stderr


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (None, f"secret {ARN} doesn't exist. What to do: create it"),
        ({"SecretString": '{"key": "glsa_1"}'}, "has no token. What to do: store the token"),
        ({"SecretString": "two\nlines"}, "has no token"),
        ({"SecretBinary": b"glsa_1"}, "has no token"),
        (
            {"SecretString": "glsa_wrong"},
            "with 401: Invalid API key. What to do: store a valid token of a service account",
        ),
    ],
    ids=["no secret", "no key", "two lines", "binary", "refused"],
)
def test_a_secret_that_opens_nothing_is_reported(workspace, project, value, problem):
    arn = ARN if value is None else stored(workspace.endpoint, **value)
    use_existing(project, f"https://{workspace.host}", arn)
    answer = run(project, "apply", "--dry-run")
    assert answer.returncode == 1
    assert problem in " ".join(answer.stderr.split())
    assert "Traceback" not in answer.stderr
    assert value is None or "glsa" not in answer.stderr


class _Other(BaseHTTPRequestHandler):
    """A server that isn't Grafana: a sign-in page, or an address that redirects to one."""

    def do_GET(self):
        self.send_response(302 if self.path.startswith("/moved") else 200)
        self.send_header("Location", "http://127.0.0.1:1/login")
        self.end_headers()
        self.wfile.write(b"<html>Sign in</html>")

    def log_message(self, *_):
        pass


@pytest.mark.parametrize(
    ("path", "problem"),
    [("", "doesn't return JSON, so it isn't Grafana's API"), ("/moved", "with 302: no reason given")],
)
def test_an_address_that_is_not_grafanas_is_reported(workspace, project, path, problem):
    with HTTPServer(("127.0.0.1", 0), _Other) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}{path}"
        use_existing(project, url, stored(workspace.endpoint, SecretString="glsa_1"))
        answer = run(project, "apply", "--dry-run")
        server.shutdown()
    assert answer.returncode == 1
    assert problem in " ".join(answer.stderr.split())
    assert "existingGrafana.url" in answer.stderr


def test_a_token_is_not_sent_unencrypted(workspace, project):
    use_existing(project, "http://grafana.example.com", stored(workspace.endpoint, SecretString=workspace.key))
    answer = run(project, "apply")
    assert answer.returncode == 1
    assert "the token would be sent to grafana.example.com unencrypted; expected https" in answer.stderr

"""Dashboards are valid for Grafana, query only metrics that the platform exports, and are exported as typed."""

import json
import re
import shutil
from pathlib import Path

import pytest
import urllib3
import yaml

from hpkit.catalog import kueue_metrics_version, metrics
from hpkit.grafana import export as dashboards_module
from hpkit.grafana.export import STACK_LABEL, alert_rules, dashboards, uid_of
from hpkit.project import project_root
from hpkit_local.toolchain.table import tool_named
from tests.cli.invoke import hpkit
from tests.documents import document
from tests.grafana.builders import TOPIC, exported, file_of, plan_of, scaling_plan_of
from tests.grafana.exporters import EXPORTERS
from tests.grafana.expressions import grouped, parsed, selectors
from tests.program.cloud import Live
from tests.running import eventually

WIDTH = 24
FILES = sorted((Path(dashboards_module.__file__).parent / "data").glob("*.json"))


def panels(plan):
    return [(board["uid"], panel) for board in dashboards(plan) for panel in board["panels"]]


def expressions(plan):
    """Return every expression of dashboards and alert rules, with its location."""
    of_panels = [
        (f"{uid} {panel['title']}", target["expr"]) for uid, panel in panels(plan) for target in panel["targets"]
    ]
    rules = exported()["alert-rules.json"]["rules"]
    return of_panels + [(each["title"], each["data"][0]["model"]["expr"]) for each in rules]


@pytest.fixture(scope="module")
def plan():
    return scaling_plan_of()


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_files_are_what_grafana_exports_and_open_without_a_stack(file):
    text = file.read_text(encoding="utf-8")
    board = json.loads(text)
    assert json.dumps(board, indent=2, ensure_ascii=False) + "\n" == text
    assert (board["schemaVersion"], board["title"].partition(": ")[0]) == (39, "HyperPod")
    variables = {each["name"] for each in board["templating"]["list"]}
    asked = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    assert {name for each in asked for name in re.findall(r"\$([a-z]+)", each)} == variables - {"datasource"}


def test_every_expression_is_promql(plan):
    for where, expression in expressions(plan):
        assert parsed(expression).prettify(), where
    with pytest.raises(ValueError, match="unclosed left parenthesis"):
        parsed("sum by (a")


def test_every_metric_and_every_label_is_in_the_catalog(plan):
    count = 0
    for where, expression in expressions(plan):
        for metric, labels in selectors(expression):
            count += 1
            assert metric in metrics(), (where, metric)
            assert labels <= metrics()[metric].labels, (where, metric, labels)
        for kept, labels in grouped(expression):
            assert kept <= labels, (where, kept)
    assert count > len(expressions(plan))


def test_every_variable_lists_values_of_a_label_in_the_catalog():
    for file in FILES:
        board = json.loads(file.read_text(encoding="utf-8"))
        for variable in board["templating"]["list"]:
            if variable["type"] == "query":
                metric, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["query"]).groups()
                assert label in metrics()[metric].labels, (file.stem, variable["name"])


def test_a_counter_is_only_read_as_a_rate_or_an_increase(plan):
    for where, expression in expressions(plan):
        for metric, _ in selectors(expression):
            if metrics()[metric].type in ("counter", "histogram"):
                assert re.search(rf"(rate|increase)\({metric}\b", expression), where


def test_uids_are_unique_short_and_of_the_stack(plan):
    files = exported("ada", "a-team-with-a-name-that-is-longer-than-most")
    bodies = [body for name, body in files.items() if name != "alert-rules.json"]
    uids = [each["uid"] for each in [*bodies, *files["alert-rules.json"]["rules"]]]
    assert len(uids) == len(set(uids))
    for uid in uids:
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,40}", uid), uid
        assert uid.startswith(uid_of(plan.stack, ""))


def test_no_stack_takes_the_objects_of_one_whose_name_begins_like_its_own():
    assert uid_of("acme", "prod-teams") != uid_of("acme-prod", "teams")


def test_titles_are_unique_as_grafana_demands_of_a_folder(plan):
    titles = [board["title"] for board in dashboards(plan)]
    assert len(titles) == len(set(titles))


def test_no_two_panels_overlap(plan):
    for board in dashboards(plan):
        taken = set()
        for panel in board["panels"]:
            place = panel["gridPos"]
            assert 0 <= place["x"] <= place["x"] + place["w"] <= WIDTH, panel["title"]
            cells = {
                (x, y)
                for x in range(place["x"], place["x"] + place["w"])
                for y in range(place["y"], place["y"] + place["h"])
            }
            assert not cells & taken, panel["title"]
            taken |= cells


def test_every_data_source_is_the_variable_and_every_variable_is_there(plan):
    for board in dashboards(plan):
        variables = {each["name"] for each in board["templating"]["list"]}
        for panel in board["panels"]:
            assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
            refs = [each["refId"] for each in panel["targets"]]
            assert len(refs) == len(set(refs))
            for target in panel["targets"]:
                named = set(re.findall(r"\$([a-z_]+)", target["expr"])) - {"__rate_interval"}
                assert named <= variables, panel["title"]


def test_a_team_has_a_dashboard_about_itself_alone(plan):
    titles = {board["title"]: board for board in dashboards(plan)}
    for name, other in (("ada", "bob"), ("bob", "ada")):
        text = str(titles[f"acme-dev: team {name}"])
        assert f"hyperpod-ns-{name}" in text
        assert f"hyperpod-ns-{other}" not in text


def test_the_file_says_which_teams_have_one():
    def teams(**more):
        return [
            board["title"].rpartition(" ")[2] for board in dashboards(plan_of(**more)) if ": team " in board["title"]
        ]

    assert teams() == ["ada", "bob"]
    assert teams(grafanaDashboards={"teams": ["bob"]}) == ["bob"]
    assert teams(grafanaDashboards={"teams": []}) == []


def test_only_a_stack_with_autoscaling_has_a_dashboard_about_it(plan):
    scaling, others = ({board["title"] for board in dashboards(each)} for each in (plan, plan_of()))
    assert scaling - others == {"acme-dev: autoscaling"}


def test_the_resource_that_is_shown_first_is_what_the_stack_has(plan):
    (variable,) = [each for each in dashboards(plan)[0]["templating"]["list"] if each["name"] == "resource"]
    assert variable["current"]["value"] == "nvidia.com/gpu"


def test_people_choose_instance_types_and_see_all_of_them_at_first(plan):
    by_title = {board["title"]: board for board in dashboards(plan)}
    for title in ("acme-dev: teams", "acme-dev: team ada"):
        (variable,) = [each for each in by_title[title]["templating"]["list"] if each["name"] == "flavor"]
        assert (variable["multi"], variable["current"]["value"], variable["allValue"]) == (True, ["$__all"], ".+")
        asked = [target["expr"] for panel in by_title[title]["panels"] for target in panel["targets"]]
        assert all('flavor=~"$flavor"' in each for each in asked if "_queue_resource_usage" in each)


@pytest.fixture
def project(tmp_path):
    write(tmp_path)
    return tmp_path


def write(folder, *, account=True, **observability):
    shutil.copy(project_root() / "Pulumi.yaml", folder)
    (folder / "stacks").mkdir(exist_ok=True)
    data = file_of(**observability)
    if not account:
        del data["environments"]["dev"]["account"]
    (folder / "stacks" / "acme.yaml").write_text(yaml.safe_dump(data))
    settings = {"config": {"hpkit:organization": "acme", "hpkit:environment": "dev"}}
    (folder / "stacks" / "Pulumi.acme-dev.yaml").write_text(yaml.safe_dump(settings))


def export(project, *words):
    return hpkit("cluster", "grafana", "export", "--to", "out", *words, cwd=project)


def test_export_writes_each_file_as_grafana_imports_it(project):
    result = export(project, "--prometheus-url", "https://prometheus.example.com", "--format", "json")
    assert (result.returncode, result.stderr) == (0, "wrote 11 files to out\n")
    assert len(document(result.stdout)["items"]) == 11
    out = project / "out"
    assert json.loads((out / "data-source.json").read_text())["url"] == "https://prometheus.example.com"
    dashboards = [json.loads(file.read_text()) for file in (out / "dashboards").iterdir()]
    assert len(dashboards) == 7
    assert all({"uid", "title", "panels"} <= board.keys() for board in dashboards)
    rules = json.loads((out / "alert-rules.json").read_text())
    assert rules["folderUid"] == json.loads((out / "folder.json").read_text())["uid"]
    assert (rules["title"], len(rules["rules"])) == ("hpkit", 7)


def test_placeholders_are_reported(project):
    write(project, account=False, grafanaAlerts={}, alerts={"emails": ["ops@example.com"]})
    assert export(project).stderr.splitlines() == [
        "in data-source.json, replace WORKSPACE_ID with the ID of the Prometheus workspace",
        "in contact-point.json, replace 000000000000 with your account",
    ]


def test_a_stack_with_its_own_grafana_exports_too(project):
    write(project, grafana=None)
    assert export(project).returncode == 0
    source = json.loads((project / "out" / "data-source.json").read_text())
    assert source["jsonData"]["sigV4AuthType"] == "default"


def test_a_folder_that_cannot_be_written_is_reported(project):
    (project / "out").mkdir()
    (project / "out" / "dashboards").write_text("")
    result = export(project)
    assert result.returncode == 1
    assert "Name a writable folder" in result.stderr


def rules(**observability):
    return {each["title"]: each for each in alert_rules(plan_of(**observability))}


def expression(rule):
    return rule["data"][0]["model"]["expr"]


def test_a_file_without_alerts_has_no_rules_and_no_contact_point():
    files = exported(grafanaAlerts=None, topic_arn=None)
    assert {name.partition("/")[0] for name in files} == {"data-source.json", "folder.json", "dashboards"}


def test_of_waits_only_one_tells():
    both = rules(alerts={"emails": ["ops@example.com"]})
    assert rules().keys() - both.keys() == {
        "Kueue admits nothing",
        "Tasks wait although the team is below its quota",
        "A team preempts often",
    }
    assert "GPU is too hot" in both


def test_limits_are_those_of_the_file():
    alert_rules = rules(
        grafanaAlerts={
            "snsTopicArn": TOPIC,
            "waitingMinutes": 7,
            "preemptionsPerHour": 3,
            "gpuTemperature": 77,
            "idleGpuPercent": 20,
            "idleGpuHours": 4,
            "unhealthyNodeMinutes": 9,
        }
    )
    assert alert_rules["Tasks wait although the team is below its quota"]["for"] == "7m"
    assert expression(alert_rules["A team preempts often"]).endswith("> 3")
    assert expression(alert_rules["GPU is too hot"]).endswith("> 77")
    assert expression(alert_rules["Allocated GPUs are idle"]).endswith("> 80")
    assert alert_rules["Allocated GPUs are idle"]["for"] == "240m"
    assert alert_rules["Node is unhealthy"]["for"] == "9m"


def test_rules_have_a_label_of_the_stack_for_the_notification_policy():
    assert {each["labels"][STACK_LABEL] for each in alert_rules(plan_of())} == {"acme-dev"}


def test_the_contact_point_publishes_to_the_topic():
    assert exported()["contact-point.json"]["settings"]["topic"] == TOPIC


def test_every_rule_is_decided_by_its_threshold_over_the_data_source_of_the_kit():
    files = exported()
    source = files["data-source.json"]["uid"]
    for rule in files["alert-rules.json"]["rules"]:
        query, threshold = rule["data"]
        assert query["datasourceUid"] == source
        assert rule["condition"] == threshold["refId"]
        assert threshold["model"]["expression"] == query["refId"]


# It exports the others only after such an event, or not while their feature is off.
AT_ONCE = {
    "kueue_cluster_queue_nominal_quota",
    "kueue_cluster_queue_resource_usage",
    "kueue_cluster_queue_weighted_share",
    "kueue_pending_workloads",
}


# Labels that a scrape adds.
SCRAPED = {"cluster_id", "instance"}
# Only in AWS's build of the node exporter: its EFA dashboard is the source.
EFA = "node_amazonefa_rx_drops"

GROUP = "rbac.authorization.k8s.io"
ROLES, BINDINGS = (f"/apis/{GROUP}/v1/{kind}" for kind in ("clusterroles", "clusterrolebindings"))
NAME = "scraper"
LABEL = re.compile(r'(\w+)="')


def test_the_catalog_is_of_the_version_that_runs():
    assert kueue_metrics_version() == tool_named("kueue").version


@pytest.mark.nightly
@pytest.mark.parametrize("prefix", EXPORTERS)
def test_exporters_have_the_metrics_of_the_catalog(prefix):
    exposed = EXPORTERS[prefix]()
    wanted = {name: metric for name, metric in metrics().items() if name.startswith(prefix) and name != EFA}
    assert wanted.keys() <= exposed.keys()
    for name, metric in wanted.items():
        kind, labels = exposed[name]
        assert metric.type == kind, name
        # cAdvisor's page doesn't list labels that all its metrics have.
        assert prefix == "container_" or metric.labels <= labels | SCRAPED, name


@pytest.fixture(scope="module")
def scraper(clouds):
    """Yield a running cloud, and a token that may read metrics; Kueue verifies both with the API server."""
    live = Live(clouds.handson())
    rules = [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
    subject = {"kind": "ServiceAccount", "name": "default", "namespace": "default"}
    reference = {"apiGroup": GROUP, "kind": "ClusterRole", "name": NAME}
    metadata = {"metadata": {"name": NAME}}
    live.api.create(ROLES, {"apiVersion": f"{GROUP}/v1", "kind": "ClusterRole", **metadata, "rules": rules})
    binding = {"kind": "ClusterRoleBinding", **metadata, "subjects": [subject], "roleRef": reference}
    live.api.create(BINDINGS, {"apiVersion": f"{GROUP}/v1", **binding})
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    token = live.api.create("/api/v1/namespaces/default/serviceaccounts/default/token", request)["status"]["token"]
    yield live, token
    for folder in (BINDINGS, ROLES):
        live.api.delete(f"{folder}/{NAME}")


def page(live, token):
    """Return the lines of Kueue's metrics endpoint about its own metrics."""
    answer = urllib3.PoolManager(cert_reqs="CERT_NONE").request(
        "GET",
        f"https://127.0.0.1:{live.cloud.ports()['kueue-metrics']}/metrics",
        headers={"Authorization": f"Bearer {token}"},
    )
    assert answer.status == 200, answer.data
    return [line for line in answer.data.decode().splitlines() if line.startswith("kueue_")]


def exported_metrics(live, token):
    """Return metric → labels of Kueue's metrics endpoint."""
    metrics = {}
    for line in page(live, token):
        name, _, rest = line.partition("{")
        metrics.setdefault(name, set()).update(LABEL.findall(rest))
    return metrics


@pytest.mark.platform
@pytest.mark.timeout(900)
@pytest.mark.filterwarnings("ignore:Unverified HTTPS request")
def test_the_running_kueue_exports_what_the_catalog_says(scraper):
    eventually(lambda: exported_metrics(*scraper).keys() >= AT_ONCE, lambda: sorted(exported_metrics(*scraper)))
    for name, labels in exported_metrics(*scraper).items():
        assert name in metrics(), f"{name} is not in the catalog"
        assert labels <= metrics()[name].labels, name

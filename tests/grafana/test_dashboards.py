"""Dashboards are valid for Grafana, query only metrics that the platform exports, and are exported as typed."""

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml

from hpkit.catalog import metrics
from hpkit.grafana import export as dashboards_module
from hpkit.grafana.export import dashboards, uid_of
from hpkit.project import project_root
from tests.cli.invoke import hpkit
from tests.documents import document
from tests.grafana.builders import exported, file_of, plan_of, scaling_plan_of
from tests.grafana.expressions import grouped, parsed, selectors

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

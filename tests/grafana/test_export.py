"""`hpkit cluster grafana export` as users type it."""

import json
import shutil

import pytest
import yaml

from hpkit.project import project_root
from tests.cli.invoke import hpkit
from tests.documents import document
from tests.grafana.builders import file_of


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

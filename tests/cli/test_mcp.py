"""`hpkit mcp`, called by the official SDK's client over real pipes."""

import json
import os
import shutil
import sys
from pathlib import Path

import anyio
import pytest
from mcp import Client, StdioServerParameters

from hpkit.cli.common.documents import schema_of
from hpkit.cli.organization.schema import kinds
from tests.cli.invoke import hpkit
from tests.cli.test_validate import ROOT
from tests.documents import document
from tests.examples import copy_project

HPKIT = str(Path(sys.executable).parent / "hpkit")
SECRET = "of-the-environment-alone"  # noqa: S105 - none
TEAM = {"team": "john", "stacks": ["handson-dev"]}
SCENARIO = {"scenario": "stacks/scenarios/handson.yaml", "stack": "handson-dev"}


@pytest.fixture
def project(tmp_path):
    (tmp_path / "project").mkdir()
    folder = copy_project(tmp_path / "project")
    (folder / "stacks" / "scenarios").mkdir(exist_ok=True)
    shutil.copy(ROOT / "stacks" / "scenarios" / "handson.yaml", folder / "stacks" / "scenarios")
    return folder


def ask(project, *calls):
    """Start the server, and return its tools by name and its responses to the calls."""

    async def talk():
        environment = {"AWS_SECRET_ACCESS_KEY": SECRET, "PATH": os.environ["PATH"]}
        server = StdioServerParameters(command=HPKIT, args=["mcp"], cwd=project, env=environment)
        async with Client(server, read_timeout_seconds=120) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            return tools, [await client.call_tool(name, given) for name, given in calls]

    return anyio.run(talk)


def said(result):
    return "\n".join(part.text for part in result.content)


def test_tools_say_that_they_only_read_and_have_schemas(project):
    tools, _ = ask(project)
    assert list(tools) == ["validate", "quota", "job_why", "simulate", "review"]
    for tool in tools.values():
        assert (tool.annotations.read_only_hint, tool.annotations.destructive_hint) == (True, False)
        assert tool.annotations.open_world_hint is (tool.name == "job_why")
        assert len(tool.description) > 40
        assert all(part["description"] for part in tool.input_schema["properties"].values()), tool.name
        assert tool.output_schema == schema_of(kinds()[tool.output_schema["title"]].document)
    assert tools["job_why"].input_schema["required"] == ["task"]


def test_a_tool_answers_what_its_command_prints_and_writes_nothing(project):
    before = {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}
    _, results = ask(
        project,
        ("validate", {"files": ["stacks/handson.yaml"], "policies": True}),
        ("quota", {"stacks": ["handson-dev"]}),
        ("quota", TEAM),
        ("simulate", {**SCENARIO, "seed": 1, "skipImpossible": True}),
    )
    for result in results:
        assert not result.is_error, said(result)
        assert document(result.content[0].text) == result.structured_content
        assert SECRET not in said(result)
    printed = hpkit("quota", "--team", "john", "--stack", "handson-dev", "--format", "json", cwd=project)
    assert results[2].structured_content == json.loads(printed.stdout)
    assert {path: path.read_bytes() for path in project.rglob("*") if path.is_file()} == before


def test_findings_are_an_answer_and_failures_are_errors_in_words(project):
    (project / "stacks" / "bad.yaml").write_text("organization: 1\n")
    _, (findings, unreadable, unknown, outside_git) = ask(
        project,
        ("validate", {"files": ["stacks/bad.yaml"]}),
        ("quota", {"files": ["stacks/bad.yaml"]}),
        ("quota", {"stacks": ["none-dev"]}),
        ("review", {}),
    )
    assert not findings.is_error
    assert findings.structured_content["summary"]["errors"] > 0
    assert unreadable.is_error
    assert "CFG002" in said(unreadable)
    assert unknown.is_error
    assert "none-dev" in said(unknown)
    assert outside_git.is_error
    assert "git" in said(outside_git)


def test_what_is_outside_the_project_or_no_input_is_refused(project, tmp_path):
    secret = tmp_path / "secret.yaml"
    secret.write_text("organization: very-secret\n")
    (project / "linked.yaml").symlink_to(secret)
    (project / "day.yaml").write_text(f"files: [{secret}]\n")
    (project / "large.yaml").write_text("#" * (5 << 20))
    refused = (
        ("validate", {"files": ["../secret.yaml"]}, "outside the project"),
        ("validate", {"files": [str(secret)]}, "outside the project"),
        ("validate", {"files": ["linked.yaml"]}, "outside the project"),
        ("validate", {"files": ["large.yaml"]}, "larger than 4 MiB"),
        ("simulate", {**SCENARIO, "scenario": "day.yaml"}, "outside the project"),
        ("validate", {"files": "stacks/handson.yaml"}, "is not of type"),
        ("quota", {"output": "stacks/new.yaml"}, "Additional properties"),
        ("quota", {"files": ["--output=new.yaml"]}, "this file doesn't exist"),
        ("quota", {"stacks": ["handson-dev --output new.yaml"]}, "which isn't a valid name"),
        ("simulate", {}, "is a required property"),
        ("destroy", {}, "no tool destroy"),
    )
    _, results = ask(project, *((name, given) for name, given, _ in refused))
    for (_, given, words), result in zip(refused, results, strict=True):
        assert result.is_error, given
        assert words in said(result), (given, said(result))
        assert "very-secret" not in said(result)
    assert not (project / "new.yaml").exists()


def test_a_link_in_stacks_that_leads_outside_is_refused(project, tmp_path):
    (tmp_path / "secret.yaml").write_text("organization: very-secret\n")
    (project / "stacks" / "linked.yaml").symlink_to(tmp_path / "secret.yaml")
    _, (result,) = ask(project, ("validate", {}))
    assert result.is_error
    assert "outside the project" in said(result)


def test_a_folder_that_is_no_project_is_refused(tmp_path):
    result = hpkit("mcp", "--project", tmp_path, cwd=ROOT)
    assert (result.returncode, "has no Pulumi.yaml" in result.stderr) == (1, True)


def test_the_package_that_is_missing_is_named(project, monkeypatch):
    monkeypatch.setitem(sys.modules, "mcp", None)
    result = hpkit("mcp", cwd=project)
    assert (result.returncode, "pip install 'hpkit[mcp]'" in result.stderr) == (1, True)

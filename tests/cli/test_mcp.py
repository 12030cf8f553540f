"""`hpkit mcp`, called by the official SDK's client over real pipes."""

import json
import os
import shutil
import sys
from pathlib import Path

import anyio
import pytest

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


# Files that tools must not read, and one whose text is none.
LINKED, DAY, BAD, LARGE = "linked.yaml", "day.yaml", "stacks/bad.yaml", "large.yaml"
ANSWERED = (
    ("validate", {"files": ["stacks/handson.yaml"], "policies": True}),
    ("quota", {"stacks": ["handson-dev"]}),
    ("quota", TEAM),
    ("simulate", {**SCENARIO, "seed": 1, "skipImpossible": True}),
)
FAILING = (
    ("quota", {"files": [BAD]}, "CFG002"),
    ("quota", {"stacks": ["none-dev"]}, "none-dev"),
    ("review", {}, "git"),
    ("validate", {"files": ["../secret.yaml"]}, "outside the project"),
    ("validate", {"files": ["{secret}"]}, "outside the project"),
    ("validate", {"files": [LINKED]}, "outside the project"),
    ("validate", {"files": [LARGE]}, "larger than 4 MiB"),
    ("simulate", {**SCENARIO, "scenario": DAY}, "outside the project"),
    ("validate", {"files": "stacks/handson.yaml"}, "is not of type"),
    ("quota", {"output": "stacks/new.yaml"}, "Additional properties"),
    ("quota", {"files": ["--output=new.yaml"]}, "this file doesn't exist"),
    ("quota", {"stacks": ["handson-dev --output new.yaml"]}, "which isn't a valid name"),
    ("simulate", {}, "is a required property"),
    ("destroy", {}, "no tool destroy"),
)


def files_of(project):
    return {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("around")
    (folder / "project").mkdir()
    project = copy_project(folder / "project")
    (project / "stacks" / "scenarios").mkdir(exist_ok=True)
    shutil.copy(ROOT / "stacks" / "scenarios" / "handson.yaml", project / "stacks" / "scenarios")
    secret = folder / "secret.yaml"
    secret.write_text("organization: very-secret\n")
    (project / LINKED).symlink_to(secret)
    (project / DAY).write_text(f"files: [{secret}]\n")
    (project / LARGE).write_text("#" * (5 << 20))
    (project / BAD).write_text("organization: 1\n")
    return project


@pytest.fixture(scope="module")
def asked(project):
    """Start the server; return its tools by name, answers, findings, failures, and that of a link in stacks."""
    # Only the worker that runs this file loads it, because that takes a second.
    from mcp import Client, StdioServerParameters

    secret = project.parent / "secret.yaml"

    async def talk():
        environment = {"AWS_SECRET_ACCESS_KEY": SECRET, "PATH": os.environ["PATH"]}
        server = StdioServerParameters(command=HPKIT, args=["mcp"], cwd=project, env=environment)
        async with Client(server, read_timeout_seconds=120) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            answers = [await client.call_tool(name, given) for name, given in ANSWERED]
            findings = await client.call_tool("validate", {"files": [BAD]})
            failures = [
                await client.call_tool(name, json.loads(json.dumps(given).replace("{secret}", str(secret))))
                for name, given, _ in FAILING
            ]
            (project / "stacks" / LINKED).symlink_to(secret)
            linked = await client.call_tool("validate", {})
            (project / "stacks" / LINKED).unlink()
            return tools, answers, findings, failures, linked

    before = files_of(project)
    found = anyio.run(talk)
    assert files_of(project) == before, "a tool writes nothing"
    return found


def said(result):
    return "\n".join(part.text for part in result.content)


def test_tools_say_that_they_only_read_and_have_schemas(asked):
    tools, *_ = asked
    assert list(tools) == ["validate", "quota", "job_why", "simulate", "review"]
    for tool in tools.values():
        assert (tool.annotations.read_only_hint, tool.annotations.destructive_hint) == (True, False)
        assert tool.annotations.open_world_hint is (tool.name == "job_why")
        assert len(tool.description) > 40
        assert all(part["description"] for part in tool.input_schema["properties"].values()), tool.name
        assert tool.output_schema == schema_of(kinds()[tool.output_schema["title"]].document)
    assert tools["job_why"].input_schema["required"] == ["task"]


def test_a_tool_answers_what_its_command_prints(asked, project):
    _, answers, findings, *_ = asked
    for result in (*answers, findings):
        assert not result.is_error, said(result)
        assert document(result.content[0].text) == result.structured_content
        assert SECRET not in said(result)
    printed = hpkit("quota", "--team", "john", "--stack", "handson-dev", "--format", "json", cwd=project)
    assert answers[2].structured_content == json.loads(printed.stdout)
    assert findings.structured_content["summary"]["errors"] > 0


def test_failures_and_what_is_outside_the_project_are_errors_in_words(asked):
    *_, failures, linked = asked
    refused = [*FAILING, ("validate", {}, "outside the project")]
    for (_, given, words), result in zip(refused, (*failures, linked), strict=True):
        assert result.is_error, given
        assert words in said(result), (given, said(result))
        assert "very-secret" not in said(result)


def test_a_folder_that_is_no_project_is_refused(tmp_path):
    result = hpkit("mcp", "--project", tmp_path, cwd=ROOT)
    assert (result.returncode, "has no Pulumi.yaml" in result.stderr) == (1, True)


def test_the_package_that_is_missing_is_named(project, monkeypatch):
    monkeypatch.setitem(sys.modules, "mcp", None)
    result = hpkit("mcp", cwd=project)
    assert (result.returncode, "pip install 'hpkit[mcp]'" in result.stderr) == (1, True)

"""Output for agents and scripts: each command's JSON, its schema, and its errors."""

import json
from contextlib import nullcontext
from datetime import timedelta

import click
import jsonschema
import pytest

from hpkit.cli import commands
from hpkit.cli.cluster import job, status, usage, why
from hpkit.cli.common.documents import API_VERSION, schema_of
from hpkit.cli.organization.schema import kinds
from hpkit.cluster.live.model import ClusterNode
from tests.cli.invoke import hpkit
from tests.cli.test_validate import ROOT
from tests.cli.tries import ELSEWHERE, RUNS, VARIANTS, WITHOUT
from tests.cluster.live.builders import KIND, NOW, node, observed, pod, queue, task
from tests.cluster.live.test_status import platform
from tests.documents import document

WITH_JSON = {name for kind in kinds().values() for name in kind.commands} - {*ELSEWHERE}
CASES = {name: [*name.split(), *words.split()] for name, (words, *_) in RUNS.items() if name in WITH_JSON} | VARIANTS


@pytest.fixture
def running(monkeypatch):
    """Replace AWS and Kubernetes with a running platform."""
    instance = ClusterNode("i-1", "gpu", KIND, "Running", launched=NOW - timedelta(hours=1))
    seen = observed(
        nodes=[node("hyperpod-i-1", "a", "b", "c")],
        pods=[pod("john", "train", "hyperpod-i-1")],
        queues=[queue("john", 4, used=4), queue("smith", 4)],
        tasks=[task("john", "train", 4, runs=True), task("smith", "late", 8)],
        platform=platform(nodes=(instance,)),
    )
    for module in (job, status, usage, why):
        monkeypatch.setattr(module, "observe", lambda *_, **__: seen)
    monkeypatch.setattr("hpkit.cluster.live.read.read", lambda *_, **__: seen)
    monkeypatch.setattr(job, "_server", lambda *_: nullcontext())


def test_every_command_prints_json_or_has_a_reason_not_to():
    with_json, without = set(), set()
    for name, command in commands():
        if isinstance(command, click.Group) and not command.invoke_without_command:
            continue
        forms = [option.type.choices for option in command.params if option.name == "form"]
        (with_json if forms and "json" in forms[0] else without).add(name)
    assert without == set(WITHOUT)
    page = (ROOT / "docs/reference/json.md").read_text(encoding="utf-8")
    assert [name for name in WITHOUT if f"`{name}`" not in page] == []
    assert with_json == {name for kind in kinds().values() for name in kind.commands}
    assert with_json == {name.partition(" --")[0] for name in CASES} | {*ELSEWHERE}


@pytest.mark.parametrize("name", CASES)
def test_the_json_of_a_command_is_as_its_schema_says(name, running):
    answer = hpkit(*CASES[name], "--format", "json", cwd=ROOT)
    assert answer.returncode in (0, 1), answer.stderr
    said = document(answer.stdout)
    assert said["apiVersion"] == API_VERSION
    assert name.partition(" --")[0] in kinds()[said["kind"]].commands


@pytest.mark.parametrize("kind", kinds())
def test_schemas_are_valid_and_are_printed(kind):
    schema = schema_of(kinds()[kind].document)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert json.loads(hpkit("catalog", "schema", "--kind", kind, cwd=ROOT).stdout) == schema


@pytest.mark.parametrize(
    ("words", "reason", "code"),
    [
        (["quota", "--stack", "none-dev"], "Usage", 2),
        (["quota", "--bogus"], "Usage", 2),
        (["quota", "bad.yaml"], "Input", 1),
        (["catalog", "rules", "CAP999"], "Input", 1),
    ],
)
def test_an_error_is_json_too_in_the_last_line_of_standard_error(words, reason, code, tmp_path):
    (tmp_path / "stacks").mkdir()
    (tmp_path / "Pulumi.yaml").write_text("name: hpkit\n")
    (tmp_path / "bad.yaml").write_text("organization: 1\n")
    for option in (["--format", "json"], ["--format=json"]):
        answer = hpkit(*words, *option, cwd=tmp_path)
        error = document(answer.stderr.splitlines()[-1])
        assert (answer.stdout, answer.returncode) == ("", code)
        assert (error["kind"], error["reason"], error["exitCode"]) == ("Error", reason, code)
        assert bool(error["findings"]) is ("bad.yaml" in words)

"""Output for agents and scripts: each command's JSON, its schema, and its errors."""

import json
import os
import shutil
import subprocess
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
from tests.cli.test_validate import HPKIT, ROOT
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
    monkeypatch.setattr(why, "observe_instances", lambda *_: seen.platform)
    monkeypatch.setattr("hpkit.cluster.live.read.read", lambda *_, **__: seen)
    monkeypatch.setattr(job, "api_server", lambda *_: nullcontext())


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


def completed(words, cwd):
    """Return bash's suggestions for the last of some words, with click's protocol."""
    line = " ".join(["hpkit", *words])
    answer = hpkit(cwd=cwd, _HPKIT_COMPLETE="bash_complete", COMP_WORDS=line, COMP_CWORD=str(len(words)))
    return [each.partition(",")[2] for each in answer.stdout.splitlines() if each]


def test_commands_are_completed_without_importing_them(examples):
    assert completed(["va"], examples) == ["validate"]
    assert {"review", "local", "quota"} <= set(completed([""], examples))


@pytest.mark.parametrize(
    "command",
    ["aws deployer-policy", "aws destroy", "aws images", "plan", "aws preflight", "quota", "review", "validate"],
)
def test_stacks_are_completed(command, examples):
    assert completed([*command.split(), "--stack", "h"], examples) == ["handson-dev"]


def test_stacks_of_commands_within_commands_are_completed(examples):
    assert completed(["local", "up", "--stack", "e"], examples) == ["enterprise-dev", "enterprise-prod"]


def test_teams_and_groups_are_those_of_the_stack_that_was_named(examples):
    assert completed(["quota", "--stack", "handson-dev", "--team", ""], examples) == ["john", "smith"]
    assert "serving" in completed(["job", "why", "--team", "s"], examples)
    assert completed(["job", "why", "--stack", "nobody-dev", "--team", ""], examples) == []


def test_rules_are_completed_in_any_case(examples):
    assert completed(["catalog", "rules", "cap00"], examples)[:2] == ["CAP001", "CAP002"]


def test_files_with_errors_complete_what_can_be_read(project):
    (project / "stacks" / "acme.yaml").write_text("environments: {dev: {}, prod: {}}")
    (project / "stacks" / "bad.yaml").write_text("environments: [")
    assert completed(["quota", "--stack", ""], cwd=project) == ["acme-dev", "acme-prod"]
    assert completed(["quota", "--team", ""], cwd=project) == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell_that_the_page_of_commands_names_is_written(shell):
    page = (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
    assert f"_HPKIT_COMPLETE={shell}_source hpkit" in page
    answer = hpkit(cwd=ROOT, _HPKIT_COMPLETE=f"{shell}_source")
    assert answer.returncode == 0, answer.stderr
    assert f"_HPKIT_COMPLETE={shell}_complete" in answer.stdout


# Each sources the script as docs/reference/commands.md describes, and completes `hpkit va`.
IN_SHELL = {
    "bash": 'eval "$(_HPKIT_COMPLETE=bash_source hpkit)"; COMP_WORDS=(hpkit va); COMP_CWORD=1; '
    '_hpkit_completion hpkit va hpkit; echo "${COMPREPLY[@]}"',
    "zsh": 'compdef() { }; eval "$(_HPKIT_COMPLETE=zsh_source hpkit)"; '
    'COMP_WORDS="hpkit va" COMP_CWORD=1 _HPKIT_COMPLETE=zsh_complete hpkit',
    "fish": '_HPKIT_COMPLETE=fish_source hpkit | source; complete --do-complete "hpkit va"',
}


@pytest.mark.slow
@pytest.mark.parametrize("shell", IN_SHELL)
def test_a_shell_that_has_the_script_completes_a_command(shell):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not here")
    path = os.pathsep.join([str(HPKIT.parent), os.environ["PATH"]])
    command = [shell, *(["--norc"] if shell == "bash" else []), "-c", IN_SHELL[shell]]
    answer = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=60
    )
    assert "validate" in answer.stdout.split(), answer.stderr

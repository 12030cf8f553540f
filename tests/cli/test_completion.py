"""Shell completion: the script that click writes, and the requests that it sends to `hpkit`."""

import os
import shutil
import subprocess

import pytest

from tests.cli.invoke import hpkit
from tests.cli.test_validate import HPKIT, ROOT


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

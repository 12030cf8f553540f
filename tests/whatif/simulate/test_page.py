"""The page shows what the commands print."""

import re
import shlex
from pathlib import Path

import pytest
import yaml

from hpkit_whatif.scenario import open_scenario
from tests.cli.invoke import hpkit

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "guides" / "whatif.md").read_text(encoding="utf-8")
RUNS = re.findall(r"```console\n\$ hpkit ([^\n]+)\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize(("arguments", "shown"), RUNS, ids=[arguments for arguments, _ in RUNS])
def test_a_command_of_the_page_prints_what_the_page_shows(arguments, shown):
    assert hpkit(*shlex.split(arguments), cwd=ROOT).stdout == shown


def test_the_scenario_that_the_page_shows_can_be_read(tmp_path):
    text = "".join(re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL))
    file = tmp_path / "s.yaml"
    file.write_text(text)
    tasks = list(open_scenario(file).tasks())
    assert len(tasks) > len(yaml.safe_load(text)["tasks"])


def test_names_are_printed_as_they_are(tmp_path):
    file = tmp_path / "s.yaml"
    file.write_text("tasks: [{name: '[/]:ghost:', team: smith, count: 1, run: 1m}]\n")
    assert "[/]:ghost:" in hpkit("whatif", "simulate", file, "--stack", "handson-dev", cwd=ROOT).stdout

"""The page about the simulator as a library: its examples print what it shows, and its table lists every call."""

import re
import runpy
from pathlib import Path

import pytest

from hpkit.kueue import model
from hpkit_whatif.admission import Simulator

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "reference" / "whatif-api.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```\n\nThe output:\n\n```text\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize(("code", "shown"), EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example_prints_what_the_page_shows(code, shown, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    (tmp_path / "example.py").write_text(code, encoding="utf-8")
    runpy.run_path(str(tmp_path / "example.py"))
    assert capsys.readouterr().out == shown


def test_every_example_has_its_output():
    assert len(EXAMPLES) == PAGE.count("```python") >= 2


def test_the_page_names_every_call_of_the_simulator_and_every_type_of_the_model():
    calls = [name for name in vars(Simulator) if not name.startswith("_")]
    types = [name for name in model.__all__ if name != "Strategy"]
    assert [name for name in [*calls, *types] if name not in PAGE] == []

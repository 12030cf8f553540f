"""The second try of the gate: few failures, alone, and said."""

import json

import pytest

from tests.once_more import MOST, main


@pytest.fixture
def failed(tmp_path):
    """Return a function that writes what pytest keeps of a run: one test for each outcome that it will have now."""

    def write(*outcomes):
        tests = tmp_path / "test_some.py"
        tests.write_text("\n".join(f"def test_{at}():\n    assert {passes}" for at, passes in enumerate(outcomes)))
        kept = tmp_path / "lastfailed"
        kept.write_text(json.dumps({f"{tests}::test_{at}": True for at in range(len(outcomes))}))
        return kept

    return write


def test_what_passes_alone_is_let_pass_and_named(failed, capsys):
    assert main(failed(True, True)) == 0
    assert capsys.readouterr().out.count("BY CHANCE: ") == 2


def test_what_fails_again_has_failed(failed, capsys):
    assert main(failed(True, False)) == 1
    assert "BY CHANCE" not in capsys.readouterr().out


def test_more_than_a_handful_is_not_asked_again(failed, capsys):
    assert main(failed(*[True] * (MOST + 1))) == 1
    assert capsys.readouterr().out == ""


def test_a_run_that_kept_nothing_has_failed(tmp_path):
    assert main(tmp_path / "nothing") == 1

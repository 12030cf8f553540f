"""What `hpkit local up` and `down` show: few lines in a log, a picture in place on a terminal, errors in full."""

import io
import sys
import time

import pytest

from hpkit.cli.local_progress import Progress
from hpkit_local.supervisor.engine_events import EngineEvents, Work


@pytest.fixture
def events(tmp_path):
    made = EngineEvents(tmp_path / "events.json")
    made.done.update(created=41)
    made.under_way = {str(n): Work("creating", f"Vpc {n}", time.monotonic()) for n in range(11)}
    return made


def test_a_log_gets_few_lines_however_long_a_run_takes(events, capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    events.warnings.append("Vpc vpc: odd")
    with Progress("up", "acme-dev") as progress:
        for second in range(1800):
            now[0] = float(second)
            progress.show(events)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "warning: Vpc vpc: odd"
    assert lines[1] == "5 s: 41 resources created; creating Vpc 0 and 10 more"
    assert len(lines) <= 12


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_shows_what_is_under_way_and_is_left_clean(events, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    with Progress("up", "acme-dev") as progress:
        progress.show(events)
        shown = sys.stderr.getvalue()
        assert "41 resources created" in shown
        assert "creating Vpc 7" in shown
        assert "and 3 more" in shown
        events.interrupted = True
        progress.show(events)
        progress.show(events)
    assert sys.stderr.getvalue().count("interrupted: Pulumi ends what is under way") == 1
    assert sys.stderr.getvalue().endswith("\x1b[2K"), "its lines are erased"


def test_what_a_run_did_is_said_in_one_line_and_a_failure_in_full(events, tmp_path):
    log = tmp_path / "pulumi.log"
    log.write_text("all that Pulumi printed\n")
    progress = Progress("destroy", "acme-dev")
    assert progress.result(failed=False, log=log) == []
    events.done.clear()
    events.done.update(unchanged=2)
    events.done.update(deleted=98)
    events.seconds = 12
    progress.show(events)
    assert progress.result(failed=False, log=log) == ["acme-dev: 98 resources deleted, 2 unchanged in 12 s"]
    end = f"acme-dev: 98 resources deleted, 2 unchanged in 12 s; destroy failed, Pulumi's output: {log}"
    assert progress.result(failed=True, log=log) == ["error: all that Pulumi printed", end]
    events.errors.append("Vpc vpc: it has dependencies\nand a second line")
    assert progress.result(failed=True, log=log) == ["error: Vpc vpc: it has dependencies\nand a second line", end]

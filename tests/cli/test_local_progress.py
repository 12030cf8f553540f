"""The progress of `hpkit local up` and `down`: few lines in a log, a live display on a terminal, complete errors."""

import io
import sys
import time

import pytest

from hpkit_local.cli.local_progress import Progress
from hpkit_local.supervisor.pulumi_run import EngineEvents, ResourceChange, Work


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
    assert sys.stderr.getvalue().count("interrupted: Pulumi finishes running operations") == 1
    assert sys.stderr.getvalue().endswith("\x1b[2K"), "its lines are erased"


def test_a_preview_lists_what_would_change_and_counts_what_would_not(events, tmp_path):
    events.done.clear()
    events.done.update(updated=1, deleted=2, unchanged=95)
    events.changes += [
        ResourceChange("updated", "ComputeQuota", "smith", ("computeQuotaTarget.fairShareWeight 100 → 90",)),
        ResourceChange("deleted", "RoleBinding", "ada"),
        ResourceChange("deleted", "RoleBinding", "bob"),
    ]
    events.seconds = 7
    previews, refreshes, creates = (Progress(verb, "acme-dev") for verb in ("preview", "refresh", "up"))
    for progress in (previews, refreshes, creates):
        progress.show(events)
    assert previews.rows() == [
        "  delete RoleBinding ada, bob",
        "  update ComputeQuota smith (computeQuotaTarget.fairShareWeight 100 → 90)",
    ]
    assert previews.result(failed=False, log=tmp_path) == [
        "acme-dev: 1 resource to update, 2 to delete, 95 unchanged in 7 s"
    ]
    assert refreshes.rows()[0] == "  deleted RoleBinding ada, bob"
    assert creates.rows() == []
    assert creates.result(failed=False, log=tmp_path) == [
        "acme-dev: 1 resource updated, 2 deleted, 95 unchanged in 7 s"
    ]


def test_what_a_run_did_is_said_in_one_line_and_a_failure_in_full(events, tmp_path):
    log = tmp_path / "pulumi.log"
    log.write_text("all that Pulumi printed\n")
    progress = Progress("destroy", "acme-dev")
    assert progress.result(failed=False, log=log) == []
    events.done.clear()
    events.seconds = 1
    progress.show(events)
    assert progress.result(failed=False, log=log) == ["acme-dev: nothing to delete in 1 s"]
    events.done.update(unchanged=2)
    events.done.update(deleted=98)
    events.seconds = 12
    progress.show(events)
    assert progress.result(failed=False, log=log) == ["acme-dev: 98 resources deleted, 2 unchanged in 12 s"]
    end = f"acme-dev: 98 resources deleted, 2 unchanged in 12 s; destroy failed. Pulumi's output: {log}"
    assert progress.result(failed=True, log=log) == ["error: all that Pulumi printed", end]
    events.errors.append("Vpc vpc: it has dependencies\nand a second line")
    assert progress.result(failed=True, log=log) == ["error: Vpc vpc: it has dependencies\nand a second line", end]

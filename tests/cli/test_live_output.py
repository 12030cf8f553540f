"""Output of commands: narrow, wide and piped, color only for terminals, and the progress of `hpkit local`."""

import io
import os
import pty
import subprocess
import sys
import time

import pytest

from hpkit.cli.cluster import status
from hpkit.cli.common import formats, tables
from hpkit.cluster.live.status import status_of
from hpkit.plan.derive import derive
from hpkit_local.cli.local_progress import Progress
from hpkit_local.supervisor.pulumi_run import EngineEvents, ResourceChange, Work
from tests.builders import organization, text_of, typed
from tests.cli.invoke import hpkit
from tests.cli.test_validate import BROKEN, HPKIT, ROOT
from tests.cluster.live.builders import node, observed, pod, queue, task
from tests.cluster.live.test_status import platform

ROWS = (("node", "group", "runs"), ("i-0123456789abcdef0", "gpu", "john/train, smith/eval"), ("i-1", "cpu", ""))


@pytest.fixture
def terminal(monkeypatch):
    """Make standard output a terminal with a number of columns, and return the output."""

    def of(columns):
        written = io.StringIO()
        written.isatty = lambda: True
        monkeypatch.setattr(sys, "stdout", written)
        for module in (formats, tables, status):
            monkeypatch.setattr(module, "width", lambda: columns)
        monkeypatch.setenv("NO_COLOR", "1")
        return written

    return of


def test_columns_that_fit_are_columns_and_others_are_blocks(terminal):
    terminal(80)
    assert tables.columns(ROWS).splitlines() == [
        "node                 group  runs",
        "i-0123456789abcdef0  gpu    john/train, smith/eval",
        "i-1                  cpu",
    ]
    terminal(40)
    assert tables.columns(ROWS).splitlines() == [
        "i-0123456789abcdef0",
        "  group: gpu",
        "  runs: john/train, smith/eval",
        "i-1",
        "  group: cpu",
    ]


def test_what_is_piped_keeps_a_line_for_each_row(monkeypatch):
    monkeypatch.setattr(tables, "width", lambda: 20)
    assert len(tables.columns(ROWS).splitlines()) == len(ROWS)


@pytest.mark.parametrize("columns", [40, 80])
def test_status_keeps_to_the_terminal_without_colour(terminal, columns):
    written = terminal(columns)
    seen = observed(
        nodes=(node("n0", ready="False"),),
        queues=(queue("john", 8, used=4), queue("smith", 4, used=8, borrowed=4)),
        tasks=(task("smith", "huge", 6), task("smith", "a-rather-long-name-of-a-job-0-x7k2p", 2, runs=True)),
        platform=platform(),
    )
    plan = derive(typed(organization()), "dev")
    status._print(plan, status_of(seen), ("team john has a quota of 8 gpu, and 4 in the file",))
    text = written.getvalue()
    assert max(len(line.rstrip()) for line in text.splitlines()) <= columns
    assert "\x1b" not in text
    assert "a-rather-long-name-of-a-job-0-x7k2p" in text
    assert "2 pods, 8 nvidia.com/gpu" in " ".join(text.split())
    for word in ("john", "smith", "huge", "needs attention", "differs from the organization file"):
        assert word in " ".join(text.split())


def test_many_teams_are_plain_columns(terminal):
    written = terminal(100)
    seen = observed(queues=[queue(f"team-{number}", 8, used=4) for number in range(300)], platform=platform())
    status._print(derive(typed(organization()), "dev"), status_of(seen), ())
    text = written.getvalue()
    assert len([line for line in text.splitlines() if line.startswith("team-")]) == 300
    assert "─" not in text.split("quota")[1]


def test_nodes_are_listed_by_network_layer(monkeypatch):
    nodes = [node(f"n{number}", "a", "b", f"c{number % 2}") for number in range(4)]
    seen = observed(nodes=[*nodes, node("n9")], pods=[pod("john", "train", "n2", gpus=2)])
    monkeypatch.setattr(status, "observe", lambda *_, **__: seen)
    rows = hpkit("cluster", "status", "--topology", "--stack", "handson-dev", cwd=ROOT).stdout.splitlines()
    assert [row.split()[3] for row in rows[1:-1]] == ["n0", "n2", "n1", "n3"]
    assert rows[2].split() == ["a", "b", "c0", "n2", "us-west-2a", "2", "of", "4", "gpu", "john/job-train"]
    assert rows[-1].split()[0] == "n9", "nodes without layers are last"
    unread = observed(unread=frozenset({"nodes"}))
    monkeypatch.setattr(status, "observe", lambda *_, **__: unread)
    failed = hpkit("cluster", "status", "--topology", "--stack", "handson-dev", cwd=ROOT)
    assert (failed.returncode, "the nodes couldn't be read" in failed.stderr) == (1, True)


def on_a_terminal(*arguments, **environment):
    """Run hpkit with a real pseudo-terminal as its output."""
    main, end = pty.openpty()
    clean = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR")}
    process = subprocess.Popen(
        [HPKIT, *arguments],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=end,
        stderr=subprocess.DEVNULL,
        env={**clean, "TERM": "xterm-256color", **environment},
    )
    os.close(end)
    output = b""
    try:
        while chunk := os.read(main, 65536):
            output += chunk
    except OSError:
        pass  # The other end is closed, so all output has been read.
    finally:
        os.close(main)
    process.wait(timeout=300)
    return output.decode()


@pytest.mark.parametrize("arguments", [("validate",), ("quota",)], ids=str)
def test_a_terminal_gets_colour_unless_no_color_is_set(arguments, tmp_path):
    if arguments == ("validate",):
        file = tmp_path / "broken.yaml"
        file.write_bytes(text_of(BROKEN))
        arguments = ("validate", str(file))
    assert "\x1b[" in on_a_terminal(*arguments)
    assert "\x1b[3" not in on_a_terminal(*arguments, NO_COLOR="1")


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

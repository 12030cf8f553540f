"""Output of commands: narrow, wide and piped; color is only for terminals, and NO_COLOR is honored."""

import io
import os
import pty
import subprocess
import sys

import pytest

from hpkit.cli.cluster import status
from hpkit.cli.common import formats, tables
from hpkit.cluster.live.status import status_of
from hpkit.plan.derive import derive
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

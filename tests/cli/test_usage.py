"""`hpkit cluster usage`: its formats agree, and what couldn't be read never counts as zero."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from hpkit.cli.cluster import usage
from tests.cli.invoke import hpkit
from tests.cluster.live.builders import observed, queue, workload
from tests.cluster.usage.test_usage import node, platform
from tests.program.cloud import ROOT

SEEN = observed(
    platform=platform(node("i-0", 3), node("i-1", 3)),
    tasks=(workload("smith", "<train>", 1, runs=True, minutes=60),),
    queues=(queue("john", 4), queue("smith", 0)),
)


@pytest.fixture
def run(monkeypatch):
    def run(*words, seen=SEEN):
        def observe(*_, on_workload, **__):
            for document in seen.tasks:
                on_workload(document)
            return seen

        monkeypatch.setattr(usage, "observe", observe)
        return hpkit("cluster", "usage", "--stack", "handson-dev", *words, cwd=ROOT)

    return run


def test_text_and_json_show_the_usage(run):
    document = json.loads(run("--format", "json").stdout)
    rows = {row["name"]: row for row in document["rows"]}
    assert (rows["smith"]["used"], rows["smith"]["borrowed"], rows["john"]["lent"]) == (1, 1, 1)
    assert sum(float(row["cost"]) for row in document["rows"]) == float(document["total"]["cost"]) > 0
    text = " ".join(run().stdout.split())
    assert text.startswith("handson-dev: usage by team, 2026-10-23 to 2026-11-22 team used borrowed")
    assert "note: nodes that were removed, Workloads that were deleted and earlier quotas aren't known" in text


@pytest.mark.parametrize(
    ("seen", "error"),
    [
        (replace(SEEN, unread=frozenset({"workloads"})), "workloads couldn't be read, so hours would be missing"),
        (replace(SEEN, namespaces=("hyperpod-ns-john",)), "workloads of all namespaces couldn't be read"),
        (replace(SEEN, platform=None), "nodes of the cluster couldn't be read"),
        (replace(SEEN, platform=platform()), "no node of handson is known between 2026-10-23 and 2026-11-22"),
    ],
)
def test_what_could_not_be_read_or_does_not_exist_is_an_error_and_leaves_the_history(run, tmp_path, seen, error):
    history = tmp_path / "usage.jsonl"
    assert run("--history", str(history)).returncode == 0
    before = history.read_text(encoding="utf-8")
    answer = run(seen=seen)
    assert (answer.returncode, error in " ".join(answer.stderr.split())) == (1, True), answer.stderr
    if seen.platform is None or seen.platform.nodes:
        run("--history", str(history), seen=seen)
        assert history.read_text(encoding="utf-8") == before


def test_a_node_that_begins_later_than_this_machine_s_time_is_a_note(run):
    answer = run(seen=replace(SEEN, platform=platform(node("i-0", 3), node("i-1", -3))))
    assert "1 nodes and Workloads begin after this machine's time: the clocks differ" in " ".join(answer.stdout.split())


def test_with_a_history_what_ended_unseen_is_a_note_in_each_later_run(run, tmp_path):
    history = str(tmp_path / "usage.jsonl")
    run("--history", history)
    for hours in (2, 3):
        later = replace(SEEN, time=SEEN.time + timedelta(hours=hours), tasks=())
        output = " ".join(run("--history", history, seen=later).stdout.split())
        assert "0 nodes and 1 admission ended between two readings" in output
        assert "between two readings aren't counted; the longest time between two was 2h" in output


def test_a_history_in_a_missing_folder_is_refused_before_the_cluster_is_read(run, tmp_path):
    file = tmp_path / "no" / "usage.jsonl"
    answer = run("--history", str(file), seen=None)
    assert (answer.returncode, f"Run `mkdir -p {file.parent}`" in " ".join(answer.stderr.split())) == (1, True)


def test_a_range_of_more_than_ten_years_is_refused(run):
    answer = run("--since", "99999999d")
    assert (answer.returncode, "at most 3650d" in " ".join(answer.stderr.split())) == (2, True)
    assert run("--since", "3650d").returncode == 0


def test_a_file_that_is_no_history_stays_as_it_is(run, tmp_path):
    file = tmp_path / "notes.txt"
    file.write_text("hello\n", encoding="utf-8")
    answer = run("--history", str(file))
    assert answer.returncode == 1
    assert f"{file}:1:1 isn't a line of a usage history" in " ".join(answer.stderr.split())
    assert file.read_text(encoding="utf-8") == "hello\n"

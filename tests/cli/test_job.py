"""`hpkit job`: its manifests, its messages, and what it doesn't change."""

import re
from contextlib import nullcontext

import pytest
import yaml

from hpkit.cli.cluster import job
from hpkit.cluster.jobs import check as checking
from tests.cli.invoke import hpkit
from tests.cluster.jobs.test_forecast import job as forecast_job
from tests.cluster.live.builders import observed, queue, task
from tests.program.cloud import ROOT

NEW = ("job", "new", "--stack", "handson-dev", "--team", "john", "--instance-type", "ml.g5.12xlarge")
# From the example startup, which has the classes normal and urgent.
RANKED = ("--stack", "startup-dev", "--team", "data", "--instance-type", "ml.g6e.xlarge")


def test_a_job_is_written_and_has_nothing_to_lint(tmp_path):
    file = tmp_path / "job.yaml"
    made = hpkit(*NEW, *RANKED, "--count", 2, "--priority", "urgent", "--output", file, cwd=ROOT)
    assert (made.returncode, made.stdout) == (0, "")
    assert made.stderr == "It fits data's own quota: 2 of 5 nvidia.com/gpu of ml.g6e.xlarge.\n"
    linted = hpkit("job", "check", "--stack", "startup-dev", file, cwd=ROOT)
    assert (linted.returncode, linted.stdout) == (0, "1 file: no errors\n")
    again = hpkit(*NEW, "--output", file, cwd=ROOT)
    assert again.returncode == 2
    assert "already exists; name another file, or add --force" in again.stderr
    nowhere = hpkit(*NEW, "--output", tmp_path / "no" / "job.yaml", cwd=ROOT)
    assert nowhere.stderr.endswith("can't be written: No such file or directory; specify another file with --output\n")


def test_a_job_is_foretold_to_start_or_never_to_run(tmp_path, monkeypatch):
    seen = observed(queues=(queue("john", 12, limit=0),), tasks=(task("john", "own", 2, runs=True),))
    monkeypatch.setattr(job, "observe", lambda *_, **__: seen)
    monkeypatch.setattr(job, "api_server", lambda *_: nullcontext())
    file = tmp_path / "job.yaml"
    real = checking.check
    monkeypatch.setattr(checking, "check", lambda *_: iter(()))
    text = yaml.safe_dump(forecast_job("john", "train", 2))
    file.write_text(text, encoding="utf-8")
    waits = hpkit("job", "check", "--live", "--stack", "handson-dev", file, cwd=ROOT).stdout
    assert "train (Job of john) waits: too little of its quota" in waits
    assert "Quota is held: john holds 8 nvidia.com/gpu of ml.g5.12xlarge." in " ".join(waits.split())
    file.write_text(text.replace("parallelism: 2", "parallelism: 4"), encoding="utf-8")
    never = hpkit("job", "check", "--live", "--stack", "handson-dev", file, cwd=ROOT)
    assert (never.returncode, "train (Job of john) never runs: " in never.stdout) == (1, True)
    monkeypatch.setattr(checking, "check", real)
    file.write_text(text.replace("parallelism: 2", "parallelism: 1"), encoding="utf-8")
    rejected = hpkit("job", "check", "--live", "--stack", "handson-dev", file, cwd=ROOT)
    assert (rejected.returncode, "train (Job of john)" in rejected.stdout) == (1, False)


def test_a_job_that_can_never_run_is_not_written_so_the_corrected_command_works(tmp_path):
    file = tmp_path / "job.yaml"
    made = hpkit(*NEW, "--count", 9, "--output", file, cwd=ROOT)
    assert (made.returncode, made.stdout, file.exists()) == (1, "", False)
    assert "It can never run: at most 4 of" in " ".join(made.stderr.split())
    assert hpkit(*NEW, "--count", 2, "--output", file, cwd=ROOT).returncode == 0
    written, peers = yaml.safe_load_all(file.read_text(encoding="utf-8"))
    assert (written["spec"]["parallelism"], peers["kind"]) == (2, "Service")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--name", "Train"), "--name Train: use a lowercase letter,"),
        (("--topology", "near"), "--topology near: use required:LAYER"),
        (("--topology", "required:4"), "--topology required:4: use required:LAYER"),
        ((*RANKED, "--priority", "urgen"), "did you mean urgent?"),
        (("--team", "jon"), "did you mean john?"),
        (("--count", "0"), "--count"),
    ],
)
def test_misuse_is_one_sentence(words, message):
    made = hpkit(*NEW, *words, cwd=ROOT)
    assert made.returncode == 2
    assert message in made.stderr
    assert made.stdout == ""


def test_mistakes_are_shown_with_their_place_and_put_right(tmp_path):
    file = tmp_path / "job.yaml"
    hpkit(*NEW, *RANKED, "--output", file, cwd=ROOT)
    file.write_text(
        file.read_text(encoding="utf-8").replace(
            "  labels:\n", "  labels: # theirs\n    kueue.x-k8s.io/priority-class: urgent\n", 1
        )
    )
    shown = hpkit("job", "check", "--stack", "startup-dev", file, cwd=ROOT)
    assert shown.returncode == 1
    assert f"{file}:7:5: error priority" in shown.stdout
    mended = hpkit("job", "check", "--write", "--stack", "startup-dev", file, cwd=ROOT)
    assert mended.returncode == 0, mended.stdout
    assert "fixed: Use `urgent-priority`" in mended.stdout
    text = file.read_text(encoding="utf-8")
    assert "# theirs" in text
    assert "kueue.x-k8s.io/priority-class: urgent-priority" in text


def test_what_stays_wrong_after_writing_is_said_and_exits_1(tmp_path):
    file = tmp_path / "job.yaml"
    hpkit(*NEW, "--count", 2, "--output", file, cwd=ROOT)
    text = re.sub(r"(parallelism|completions): 2", r"\1: 9", file.read_text(encoding="utf-8"))
    file.write_text(text.replace("  namespace: hyperpod-ns-john\n", ""), encoding="utf-8")
    mended = hpkit("job", "check", "--write", "--stack", "handson-dev", file, cwd=ROOT)
    assert mended.returncode == 1
    assert "fixed: Set `namespace: hyperpod-ns-john`" in mended.stdout
    assert "error quota" in mended.stdout
    assert "no error" not in mended.stdout
    assert "  namespace: hyperpod-ns-john\n" in file.read_text(encoding="utf-8")


def test_a_file_that_cannot_be_read_is_said(tmp_path):
    gone = hpkit("job", "check", "--stack", "handson-dev", tmp_path / "gone.yaml", cwd=ROOT)
    assert gone.returncode == 1
    assert "gone.yaml: No such file or directory" in gone.stderr
    broken = tmp_path / "broken.yaml"
    broken.write_bytes(b"\xff\xfe\x00")
    assert "isn't valid UTF-8" in hpkit("job", "check", "--stack", "handson-dev", broken, cwd=ROOT).stderr


@pytest.mark.parametrize("text", ["", "# later\n", "organization: acme\n", "[]\n"])
def test_a_file_without_a_manifest_is_an_error(tmp_path, text):
    file = tmp_path / "job.yaml"
    file.write_text(text, encoding="utf-8")
    checked = hpkit("job", "check", str(file), "--stack", "handson-dev", cwd=ROOT)
    assert (checked.returncode, checked.stdout) == (1, "")
    assert f"error: {file}: has no Kubernetes manifest" in checked.stderr

"""`hpkit job`: its manifests, its messages, and what it doesn't change."""

import re

import pytest
import yaml

from tests.cli.invoke import hpkit
from tests.program.cloud import ROOT

NEW = ("job", "new", "--stack", "handson-dev", "--team", "john", "--instance-type", "ml.g5.12xlarge")
# From the example startup, which has the classes normal and urgent.
RANKED = ("--stack", "startup-dev", "--team", "data", "--instance-type", "ml.g6e.xlarge")


def test_a_job_is_written_and_has_nothing_to_lint(tmp_path):
    file = tmp_path / "job.yaml"
    made = hpkit(*NEW, *RANKED, "--count", 2, "--priority", "urgent", "--output", file, cwd=ROOT)
    assert (made.returncode, made.stdout) == (0, "")
    assert made.stderr == "It fits data's own quota: 2 of 5 nvidia.com/gpu of ml.g6e.xlarge.\n"
    linted = hpkit("job", "lint", "--stack", "startup-dev", file, cwd=ROOT)
    assert (linted.returncode, linted.stdout) == (0, "1 file: no errors\n")
    again = hpkit(*NEW, "--output", file, cwd=ROOT)
    assert again.returncode == 2
    assert "already exists; name another file, or add --force" in again.stderr


def test_a_job_that_can_never_run_is_not_written_so_the_corrected_command_works(tmp_path):
    file = tmp_path / "job.yaml"
    made = hpkit(*NEW, "--count", 9, "--output", file, cwd=ROOT)
    assert (made.returncode, made.stdout, file.exists()) == (1, "", False)
    assert "It can never run: at most 4 of" in " ".join(made.stderr.split())
    assert hpkit(*NEW, "--count", 2, "--output", file, cwd=ROOT).returncode == 0
    assert yaml.safe_load(file.read_text(encoding="utf-8"))["spec"]["parallelism"] == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--name", "Train"), "--name Train: use lowercase letters,"),
        (("--topology", "near"), "--topology near: use required:LAYER"),
        (("--topology", "required:4"), "--topology required:4: use required:LAYER"),
        ((*RANKED, "--priority", "urgen"), "did you mean urgent?"),
        (("--team", "jon"), "did you mean john?"),
        (("--count", "0"), "--count"),
    ],
)
def test_misuse_is_one_sentence(words, said):
    made = hpkit(*NEW, *words, cwd=ROOT)
    assert made.returncode == 2
    assert said in made.stderr
    assert made.stdout == ""


def test_mistakes_are_shown_with_their_place_and_put_right(tmp_path):
    file = tmp_path / "job.yaml"
    hpkit(*NEW, *RANKED, "--output", file, cwd=ROOT)
    file.write_text(
        file.read_text(encoding="utf-8").replace(
            "  labels:\n", "  labels: # theirs\n    kueue.x-k8s.io/priority-class: urgent\n", 1
        )
    )
    shown = hpkit("job", "lint", "--stack", "startup-dev", file, cwd=ROOT)
    assert shown.returncode == 1
    assert f"{file}:7:5: error priority" in shown.stdout
    mended = hpkit("job", "lint", "--write", "--stack", "startup-dev", file, cwd=ROOT)
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
    mended = hpkit("job", "lint", "--write", "--stack", "handson-dev", file, cwd=ROOT)
    assert mended.returncode == 1
    assert "fixed: Set `namespace: hyperpod-ns-john`" in mended.stdout
    assert "error quota" in mended.stdout
    assert "no error" not in mended.stdout
    assert "  namespace: hyperpod-ns-john\n" in file.read_text(encoding="utf-8")


def test_a_file_that_cannot_be_read_is_said(tmp_path):
    gone = hpkit("job", "lint", "--stack", "handson-dev", tmp_path / "gone.yaml", cwd=ROOT)
    assert gone.returncode == 1
    assert "gone.yaml: No such file or directory" in gone.stderr
    broken = tmp_path / "broken.yaml"
    broken.write_bytes(b"\xff\xfe\x00")
    assert "isn't valid UTF-8" in hpkit("job", "lint", "--stack", "handson-dev", broken, cwd=ROOT).stderr

"""Adoptions that fail: killed during the import, into a stack with other resources, or after a wrong import."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.adopt.shapes import Maker, by_hand
from tests.adopt.test_engine_shapes import STACK, counts

pytestmark = [pytest.mark.engine, pytest.mark.cluster, pytest.mark.nightly, pytest.mark.timeout(1800)]


def killed_while_importing(shell):
    """Start the import, and kill it with all its child processes when some resources exist."""
    command = ["hpkit", "aws", "adopt", "run", "--stack", STACK]
    process = subprocess.Popen(
        command,
        cwd=shell.folder,
        env=shell.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    imported = (line for line in process.stdout if " imported (" in line)
    for _ in range(5):
        next(imported)
    os.killpg(process.pid, signal.SIGKILL)
    process.stdout.close()
    process.wait()


def restored(shell):
    """Follow the message: restore the previous state if the kill interrupted Pulumi's write."""
    (kept,) = Path(shell.environment["PULUMI_BACKEND_URL"].removeprefix("file://")).rglob(f"{STACK}.json.bak")
    shutil.copy(kept, kept.with_suffix(""))


def cut_off(shell):
    """Truncate the state, as a full disk or a power cut does; the previous state stays next to it."""
    shell("pulumi", "stack", "init", STACK)
    (state,) = Path(shell.environment["PULUMI_BACKEND_URL"].removeprefix("file://")).rglob(f"{STACK}.json")
    shutil.copy(state, f"{state}.bak")
    state.write_text("")


def test_an_adoption_that_is_cut_off_and_killed_goes_on_and_what_is_not_the_programs_is_never_deleted(shell, live):
    by_hand(Maker(live))
    before = live.settled()
    where = ("--organization", "acme", "--environment", "prod", "--output", "stacks/acme.yaml")
    shell("hpkit", "aws", "adopt", "--cluster", "ours", *where)

    cut_off(shell)
    refused = shell("hpkit", "aws", "adopt", "run", "--stack", STACK, check=False)
    assert refused.returncode == 1
    assert f"Copy {STACK}.json.bak over {STACK}.json" in refused.stderr
    restored(shell)

    killed_while_importing(shell)
    again = shell("hpkit", "aws", "adopt", "run", "--stack", STACK, check=False)
    if "The state file is incomplete" in again.stderr:
        restored(shell)
        again = shell("hpkit", "aws", "adopt", "run", "--stack", STACK, check=False)
    if again.returncode != 0:
        assert f"pulumi cancel --yes --stack {STACK}" in again.stderr, again.stderr
        shell("pulumi", "cancel", "--yes", "--stack", STACK)
        again = shell("hpkit", "aws", "adopt", "run", "--stack", STACK)
    assert "the preview shows no changes" in again.stdout
    assert " are already imported" in again.stderr
    assert live.settled() == before

    assert "the preview shows no changes" in shell("hpkit", "aws", "adopt", "run", "--stack", STACK).stdout
    refused = shell("hpkit", "aws", "adopt", "--cluster", "ours", "--output", "stacks/acme.yaml", check=False)
    assert refused.returncode == 2
    assert "--force" in refused.stderr

    arn = live.cluster()["ClusterArn"]
    options = ["--generate-code=false", "--yes", "--skip-preview", "--non-interactive", "--stack", STACK]
    shell("pulumi", "import", "hyperpod:index:Cluster", "handson", arn, *options)
    refused = shell("hpkit", "aws", "adopt", "run", "--stack", STACK, check=False)
    assert refused.returncode == 1
    assert f"urn:pulumi:{STACK}::hpkit::hyperpod:index:Cluster::handson" in refused.stderr
    assert "Nothing was imported" in refused.stderr
    for verb in (["preview"], ["up", "--yes", "--skip-preview"]):
        lost = shell("pulumi", *verb, "--stack", STACK, "--non-interactive", check=False)
        assert lost.returncode != 0
        assert "hyperpod:index:Cluster::handson" in lost.stdout + lost.stderr
        assert "protected" in lost.stdout + lost.stderr
    assert live.settled() == before
    shell("pulumi", "state", "delete", "--yes", "--force", "--stack", STACK, refused_urn())
    assert counts(shell, "preview") == {}


def refused_urn():
    return f"urn:pulumi:{STACK}::hpkit::hyperpod:index:Cluster::handson"

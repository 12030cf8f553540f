"""`hpkit aws destroy` deletes a whole stack after a confirmation with its name."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.platform(taken_away=2), pytest.mark.nightly]


def destroy(up, repository, *arguments, answer=""):
    """Run `hpkit aws destroy` as a user does, with the settings of the instance."""
    command = [Path(sys.executable).parent / "hpkit", "aws", "destroy", *arguments]
    return subprocess.run(
        command, cwd=repository.folder, env=up.environment, input=answer, capture_output=True, text=True, timeout=300
    )


def test_hpkit_destroy_deletes_a_whole_stack_after_asking(up, repository, live):
    before = live.everything()
    refused = destroy(up, repository, "--stack", "handson-dev", answer="handson\n")
    assert refused.returncode == 1
    assert 'nothing was deleted: "handson" isn\'t handson-dev' in refused.stderr
    for text in ("gpu: 4 × ml.g5.12xlarge", "the quotas of 2 teams: john, smith", "the VPC: vpc-"):
        assert text in refused.stdout
    assert live.everything() == before
    settings = ["--", "--skip-preview", *up.settings_options]
    done = destroy(up, repository, "--stack", "handson-dev", *settings, answer="handson-dev\n")
    assert done.returncode == 0, done.stdout + done.stderr
    assert live.sm.list_clusters()["ClusterSummaries"] == []

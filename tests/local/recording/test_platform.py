"""A whole platform that is created and deleted through the recording has the same answers again."""

import pytest

from hpkit_local.recording.proxy import recorded
from hpkit_local.recording.replay import replay
from tests.program.cloud import Program, Repository
from tests.running import AT_ONCE, running

pytestmark = [pytest.mark.nightly, pytest.mark.engine, pytest.mark.cluster, pytest.mark.timeout(1800)]


def test_a_recorded_platform_is_replayed_without_differences(tmp_path):
    file = tmp_path / "calls.jsonl"
    for folder in ("repository", "cloud"):
        (tmp_path / folder).mkdir()
    repository = Repository(tmp_path / "repository")
    with running("recorded", tmp_path / "cloud", *AT_ONCE, engine=True) as instance:
        program = Program(instance, "handson-dev", root=repository.folder)
        with recorded(file, program.environment, "us-west-2") as variables:
            program.environment |= variables
            program.up()
            program.destroy()
    replayed = replay(file)
    assert replayed.calls > 200, replayed.summary
    assert [str(difference) for difference in replayed.differences] == [], replayed.summary

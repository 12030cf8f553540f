"""A first `up` with a tenth of AWS's delays, and at least three seconds for delayed effects, succeeds in one run."""

import pytest

from hpkit_local.aws.lateness import LATENESS, LEAST_SECONDS
from tests.program.cloud import Live, Program, Repository
from tests.running import running

FACTOR = 0.1

pytestmark = [pytest.mark.nightly, pytest.mark.engine, pytest.mark.cluster, pytest.mark.timeout(1800)]


def test_one_run_makes_everything_although_aws_is_late(tmp_path_factory):
    repository = Repository(tmp_path_factory.mktemp("repository"))
    root = tmp_path_factory.mktemp("cloud")
    with running("late", root, "--latency-factor", str(FACTOR), engine=True) as instance:
        program = Program(instance, "handson-dev", root=repository.folder)
        waits = float(program.environment["HYPERPOD_SETTLE_SECONDS"])
        # What has no status of its own is waited for by time.
        assert waits > LEAST_SECONDS >= FACTOR * max(LATENESS[each].seconds for each in ("key-rights", "pod-identity"))
        program.up()
        live = Live(instance)
        assert live.sm.list_clusters()["ClusterSummaries"][0]["ClusterStatus"] == "InService"
        assert program.preview() == {}
        program.destroy()

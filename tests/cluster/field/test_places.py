"""Forecasts and answers where nodes decide, not quota: topology-prod on a real Kueue with topology-aware scheduling."""

import pytest

from hpkit.cluster.jobs.forecast import predict_all, tasks_of
from hpkit.kueue.organization import fair_sharing_of
from hpkit.project import load_stack
from tests.cluster.field.test_state import World, job
from tests.program.cloud import Program
from tests.running import eventually

pytestmark = [pytest.mark.engine, pytest.mark.cluster, pytest.mark.timeout(1200)]

PLAN = load_stack("topology-prod").plans["prod"]


@pytest.fixture(scope="module")
def world(clouds):
    instance = clouds.empty()
    # The next file empties the cloud: a protected stack can't be destroyed.
    Program(instance, "topology-prod", root=clouds.repository.folder).up()
    made = World(instance)
    with made.client:
        yield made
        made.clean("pretraining")


def test_quota_without_a_node_with_room_is_no_start_and_the_answers_agree(world):
    world.create(job("pretraining", "five", 8, 5))
    eventually(lambda: world.runs("five"), "each node has three GPUs left")
    eight = job("pretraining", "eight", 1, 8)
    seen = world.jobs().observed
    (forecast,) = predict_all(seen, tasks_of([eight], PLAN, seen), fair_sharing=fair_sharing_of(PLAN))
    parts = "no node has 8 nvidia.com/gpu free for a pod; five of pretraining holds 40 nvidia.com/gpu on 8 nodes"
    assert (forecast.fate, forecast.remedies) == ("waits", ("task five ends",))
    assert forecast.reason == f"quota is free, but {parts}. Kueue keeps it queued"
    world.create(eight)
    eventually(lambda: "find a node with room" in world.reason("eight"), "Kueue says so")
    found = world.why("eight")
    assert (found.job.state, found.outlook) == ("pending", f"quota is free, but {parts}")
    assert (found.holders, found.remedies) == ((), ("task five ends",))
    world.live.api.delete(f"{world.paths[0]}")
    eventually(lambda: world.runs("eight"), "what the answer promised comes true")

"""Forecasts and answers where nodes decide, not quota: topology-prod on a real Kueue with topology-aware scheduling."""

import pytest

from hpkit.cluster.jobs.check import check, read_manifests
from hpkit.cluster.jobs.forecast import predict_all, tasks_of
from hpkit.cluster.jobs.server import Server
from hpkit.cluster.live.kubernetes import Kubernetes
from hpkit.kueue.organization import fair_sharing_of
from hpkit.project import load_stack
from tests.cluster.field.test_state import World, job
from tests.cluster.jobs.builders import text_of
from tests.program.cloud import Program
from tests.running import eventually
from tests.security.members import JOBS, member, tried

pytestmark = [pytest.mark.engine, pytest.mark.cluster, pytest.mark.timeout(1200)]

PLAN = load_stack("topology-prod").plans["prod"]


@pytest.fixture
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


def test_without_fair_share_a_job_above_the_quota_waits_for_its_team_and_its_run_time_limit_says_how_long(clouds):
    instance = clouds.empty()
    data = clouds.repository.read("handson")
    classes = [{"name": "high", "weight": 90}, {"name": "low", "weight": 10}]
    data["clusterPolicy"] |= {"taskPrioritization": "Rank", "fairShare": "Disabled", "priorityClasses": classes}
    borrows, lends = {"strategy": "LendAndBorrow", "borrowLimit": 100}, {"strategy": "Lend"}
    for team, sharing in zip(data["teams"], (borrows, lends), strict=True):
        team["sharing"] = sharing
        data["environments"]["dev"]["governance"]["allocations"][team["name"]][0]["count"] = 2
    clouds.repository.write("handson", data)
    Program(instance, "handson-dev", root=clouds.repository.folder).up()
    plan = load_stack("handson-dev", root=clouds.repository.folder).plans["dev"]

    def of_class(name, pods, **labels):
        document = job("john", name, pods)
        document["metadata"]["labels"] |= {"kueue.x-k8s.io/priority-class": f"{name[:-1]}-priority", **labels}
        return document

    world = World(instance, plan)
    with world.client:
        world.create(of_class("low1", 4, **{"kueue.x-k8s.io/max-exec-time-seconds": "3600"}))
        eventually(lambda: world.runs("low1"), "it borrows the whole of smith's quota")
        seen = world.jobs().observed
        (forecast,) = predict_all(seen, tasks_of([of_class("high1", 4)], plan, seen), fair_sharing=None)
        world.create(of_class("high1", 4))
        eventually(lambda: "must become free" in world.reason("high1"), "Kueue says so")
        found = world.why("high1")
        assert (forecast.fate, found.job.state) == ("waits", "pending")
        assert "requests more than the team's quota, and `fairShare` is Disabled" in found.outlook
        assert 0 < (found.runs_at - world.jobs().observed.time).total_seconds() <= 3600
        assert forecast.runs_at == found.runs_at
        assert world.runs("low1"), "it isn't preempted"
        world.create(of_class("high2", 2))
        eventually(lambda: world.runs("high2"), "within the quota, a higher priority preempts")
        world.clean("john")


def test_a_run_time_within_the_limit_of_its_team_is_accepted_as_job_check_says(clouds):
    instance = clouds.empty()
    data = clouds.repository.read("handson")
    data["teams"][0]["maxRunTime"] = {"limit": "2h"}
    clouds.repository.write("handson", data)
    Program(instance, "handson-dev", root=clouds.repository.folder).up()
    plan = load_stack("handson-dev", root=clouds.repository.folder).plans["dev"]
    john = member(instance, "john")
    server = Server(Kubernetes(john._client))
    world = World(instance, plan)
    with world.client:
        for name, labels, checks in (
            ("none", {}, ["run-time"]),
            ("long", {"kueue.x-k8s.io/max-exec-time-seconds": "7201"}, ["run-time"]),
            ("right", {"kueue.x-k8s.io/max-exec-time-seconds": "7200"}, []),
        ):
            document = job("john", name, gpus=1)
            document["metadata"]["labels"] |= labels
            found = [each.check for each in check(read_manifests("f", text_of(document)), plan, (), server)]
            assert found == checks
            rejected = tried(john.create, JOBS, document)
            assert ("max-exec-time-seconds must be the job's run time" in rejected) == bool(checks)
        eventually(lambda: world.runs("right"), "the label of its pods isn't required")
        world.paths = [f"{JOBS}/right"]
        world.clean("john")

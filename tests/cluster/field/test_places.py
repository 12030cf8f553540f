"""Forecasts and answers where nodes decide, not quota: topology-prod on a real Kueue with topology-aware scheduling."""

import pytest

from hpkit.cluster.jobs.check import check, read_manifests
from hpkit.cluster.jobs.forecast import predict_all, tasks_of
from hpkit.cluster.jobs.server import Server
from hpkit.cluster.live.kubernetes import Kubernetes
from hpkit.project import load_stack
from tests.builders import group
from tests.cluster.field.test_state import FOLDERS, World, job
from tests.cluster.jobs.builders import new_job, text_of
from tests.program.cloud import Program
from tests.running import eventually
from tests.security.members import member, tried

pytestmark = [pytest.mark.engine, pytest.mark.cluster, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def cloud(clouds):
    """Return topology-prod without fair share: pretraining borrows, and evaluation's jobs run at most two hours."""
    instance = clouds.empty()
    data = clouds.repository.read("topology")
    data["clusterPolicy"]["fairShare"] = "Disabled"
    borrower, lender = data["teams"]
    borrower["sharing"] = {"strategy": "LendAndBorrow", "borrowLimit": 100}
    lender |= {"sharing": {"strategy": "Lend"}, "maxRunTime": {"limit": "2h"}}
    prod = data["environments"]["prod"]
    for rows in prod["governance"]["allocations"].values():
        rows[0]["count"] = 4
    # Without network layers: only the lender's queue has both.
    prod["cluster"]["instanceGroups"].append(group("small", "ml.g6.12xlarge", 1))
    prod["governance"]["allocations"]["evaluation"].append({"instanceType": "ml.g6.12xlarge", "count": 1})
    clouds.repository.write("topology", data)
    # The next file empties the cloud: a protected stack can't be destroyed.
    Program(instance, "topology-prod", root=clouds.repository.folder).up()
    made = World(instance, load_stack("topology-prod", root=clouds.repository.folder).plans["prod"])
    with made.client:
        yield made


@pytest.fixture
def world(cloud):
    cloud.paths = []
    yield cloud
    cloud.clean("pretraining", "evaluation")


def test_quota_without_a_node_with_room_is_no_start_and_the_answers_agree(world):
    world.create(job("pretraining", "five", 8, 5))
    eventually(lambda: world.runs("five"), "each node has three GPUs left")
    eight = job("pretraining", "eight", 1, 8)
    seen = world.jobs().observed
    (forecast,) = predict_all(seen, tasks_of([eight], world.plan, seen), fair_sharing=None)
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


def test_in_a_queue_where_only_some_types_have_a_topology_a_job_runs_only_as_job_new_writes_it(world):
    written = new_job(world.plan, "evaluation", instance_type="ml.p5.48xlarge", priority="evaluation")
    plain = new_job(world.plan, "evaluation", instance_type="ml.p5.48xlarge", priority="evaluation", name="plain")
    del plain["spec"]["template"]["metadata"]["annotations"]
    (finding,) = check(read_manifests("f", text_of(plain)), world.plan)
    world.create(plain)
    eventually(lambda: world.reason("plain") == f"{finding.message}. {finding.fix}", "Kueue says so")
    assert (world.why("plain").remedies, world.why("plain").outlook) == ((), "")
    assert list(check(read_manifests("f", text_of(written)), world.plan)) == []
    world.create(written)
    eventually(lambda: world.runs("train"), "with the annotation")


def test_without_fair_share_a_job_above_the_quota_waits_for_its_team_and_its_run_time_limit_says_how_long(world):
    def of_class(name, kind, pods, gpus=8, **labels):
        document = job("pretraining", name, pods, gpus)
        document["metadata"]["labels"] |= {"kueue.x-k8s.io/priority-class": f"{kind}-priority", **labels}
        return document

    world.create(of_class("low", "evaluation", 8, **{"kueue.x-k8s.io/max-exec-time-seconds": "3600"}))
    eventually(lambda: world.runs("low"), "it borrows the whole of the other team's quota")
    # No node holds it, so it takes no quota from those behind it.
    world.create(of_class("fat", "pretraining", 1, 16))
    words = "it can never run: one of its pods requests 16 nvidia.com/gpu of ml.p5.48xlarge, but an instance provides 8"
    eventually(lambda: any("QuotaReserved" in each.conditions for each in world.jobs().named("fat")), "Kueue tries it")
    assert (world.reason("fat"), world.why("fat").remedies, world.why("fat").outlook) == (words, (), "")
    seen = world.jobs().observed
    high = of_class("high", "pretraining", 8)
    (forecast,) = predict_all(seen, tasks_of([high], world.plan, seen), fair_sharing=None)
    world.create(high)
    eventually(lambda: "must become free" in world.reason("high"), "Kueue says so")
    found = world.why("high")
    assert (forecast.fate, found.job.state) == ("waits", "pending")
    assert "requests more than the team's quota, and `fairShare` is Disabled" in found.outlook
    assert 0 < (found.runs_at - world.jobs().observed.time).total_seconds() <= 3600
    assert forecast.runs_at == found.runs_at
    assert world.runs("low"), "it isn't preempted"
    world.create(of_class("half", "pretraining", 4))
    eventually(lambda: world.runs("half"), "within the quota, a higher priority preempts")


def test_a_run_time_within_the_limit_of_its_team_is_accepted_as_job_check_says(world):
    scientist = member(world.live.cloud, "evaluation")
    server = Server(Kubernetes(scientist._client))
    for name, seconds, checks in (("none", None, ["run-time"]), ("long", "7201", ["run-time"]), ("right", "7200", [])):
        document = job("evaluation", name, gpus=1)
        labels = document["metadata"]["labels"]
        labels["kueue.x-k8s.io/priority-class"] = "evaluation-priority"
        labels |= {"kueue.x-k8s.io/max-exec-time-seconds": seconds} if seconds else {}
        found = [each.check for each in check(read_manifests("f", text_of(document)), world.plan, (), server)]
        assert found == checks
        rejected = tried(scientist.create, FOLDERS["Job"].format("hyperpod-ns-evaluation"), document)
        assert ("max-exec-time-seconds must be the job's run time" in rejected) == bool(checks)
    eventually(lambda: world.runs("right"), "the label of its pods isn't required")
    world.paths = [f"{FOLDERS['Job'].format('hyperpod-ns-evaluation')}/right"]

"""The status page: quota in use, lenders, waiting tasks, problems, and `--watch` with reads that fail."""

import io
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpkit.cli.cluster import status
from hpkit.cluster.live.model import AddonHealth, ClusterNode, Group, Platform, SchedulerPolicy, main_resource
from hpkit.cluster.live.parse import failed_streams, node_pool_of, platform_of
from hpkit.cluster.live.status import policy_words, status_of
from hpkit.cluster.live.tables import limit_words
from hpkit.errors import ToolError
from hpkit.plan.derive import derive
from tests.builders import organization, typed
from tests.cluster.live.builders import GPU, NOW, node, observed, pod, queue, task

POLICY = SchedulerPolicy("acme-dev", "Created", "", "Enabled", "Disabled", {"experiment": 40, "training": 80})
GROUP = Group("gpu", ("ml.g5.12xlarge",), 4, 4, "InService")


def platform(**parts):
    given = {"name": "acme", "status": "InService", "message": "", "groups": (GROUP,), "nodes": (), "addons": ()}
    return Platform(**{**given, "policy": POLICY, "events": (), **parts})


def node_pool(name, **status):
    return node_pool_of({"metadata": {"name": name}, "spec": {"limits": {GPU: 16}}, "status": status})


def shares(*queues):
    return {team.team: team.shares[0] for team in status_of(observed(queues=queues)).teams}


def test_what_one_borrows_the_only_other_one_lends():
    team_shares = shares(queue("john", 12, limit=6), queue("smith", 4, used=8, borrowed=4, limit=4))
    assert team_shares["smith"].lenders == ("john",)
    assert team_shares["john"].lent == (4, 4)
    assert team_shares["smith"].lent == (0, 0)


def test_of_two_lenders_each_lends_between_what_the_other_cannot_and_all():
    team_shares = shares(queue("a", 4), queue("b", 8), queue("c", 4, used=10, borrowed=6))
    assert team_shares["c"].lenders == ("b", "a"), "who has most first"
    assert team_shares["c"].borrowed_words == "6 from b or a"
    assert (team_shares["a"].lent, team_shares["b"].lent) == ((0, 4), (2, 6))


def test_of_many_lenders_three_are_named():
    found = shares(*(queue(f"l{number}", number + 1) for number in range(9)), queue("z", 0, used=2, borrowed=2))
    assert found["z"].borrowed_words == "2 from l8 or l7 or l6 or 6 more"


def test_who_holds_everything_back_lends_nothing():
    found = shares(queue("a", 4, lending=0), queue("b", 8), queue("c", 4, used=10, borrowed=6))
    assert found["a"].lent == (0, 0)
    assert found["c"].lenders == ("b",)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=6))
def test_together_they_lend_what_is_borrowed_at_least_and_at_most(teams):
    """For any usage that Kueue can reach, borrowed quota never exceeds idle quota."""
    queues = [
        queue(f"t{number}", nominal, used=used, borrowed=max(0, used - nominal))
        for number, (nominal, used) in enumerate(teams)
    ]
    borrowed = sum(max(0, used - nominal) for nominal, used in teams)
    idle = sum(max(0, nominal - used) for nominal, used in teams)
    if borrowed > idle:
        return
    lent = [share.lent for share in shares(*queues).values()]
    assert sum(least for least, _ in lent) <= borrowed <= sum(most for _, most in lent)
    assert all(least <= most for least, most in lent)


def test_the_main_resource_is_an_accelerator_where_there_is_one():
    assert main_resource(["cpu", "memory", GPU]) == GPU
    assert main_resource(["cpu", "aws.amazon.com/neurondevice"]) == "aws.amazon.com/neurondevice"
    assert main_resource(["memory", "nvidia.com/mig-1g.5gb"]) == "nvidia.com/mig-1g.5gb"
    assert main_resource(["memory"]) == "cpu"


def test_what_waits_is_listed_by_priority_and_age():
    tasks = [
        task("john", "old", 1, minutes=9),
        task("john", "young", 1, minutes=1),
        task("john", "high", 1, priority=80),
        task("john", "runs", 1, runs=True),
    ]
    pods = (pod("john", "runs", "n1"),)
    (team,) = status_of(observed(queues=(queue("john", 12),), tasks=tuple(tasks), pods=pods)).teams
    assert [each.name for each in team.waiting] == ["high", "old", "young"]
    assert team.waiting[1].seconds == timedelta(minutes=9).total_seconds()
    assert [(each.name, each.state, each.pods) for each in team.running] == [("runs", "running", 1)]


def test_what_waits_in_no_queue_is_listed_and_needs_attention():
    lost = replace(task("john", "lost", 1), queue="", local_queue="hyperpod-ns-johnn-localqueue")
    seen = observed(queues=(queue("john", 4),), tasks=(lost, task("john", "fine", 1)))
    status = status_of(seen)
    assert [each.name for each in status.teams[0].waiting] == ["fine"]
    assert [(each.team, each.name) for each in status.unserved] == [("john", "lost")]
    (problem,) = status.problems
    assert problem.startswith("Job lost of john is waiting: it has no queue: LocalQueue hyperpod-ns-johnn-localqueue")
    unread = status_of(replace(seen, unread=frozenset({"localqueues"})))
    assert unread.unserved == (), "what LocalQueues there are is not known"


def test_many_that_wait_in_no_queue_are_counted():
    lost = [replace(task("john", f"lost-{number}", 1), queue="") for number in range(9)]
    found = status_of(observed(queues=(queue("john", 4),), tasks=lost))
    assert len(found.unserved) == 9
    assert (
        found.problems[-1]
        == "4 more tasks are waiting without a team's queue; to list them, run `kubectl get workloads -A`"
    )


def test_the_cluster_policy_is_a_line():
    assert policy_words(platform()) == (
        "acme-dev is Created; priority classes training 80, experiment 40; fair share Enabled; "
        "idle resource sharing Disabled"
    )
    plain = replace(POLICY, priority_classes={}, fair_share="", idle_sharing="")
    assert policy_words(platform(policy=plain)) == "acme-dev is Created; first come, first served"
    assert policy_words(platform(policy=None)) == "none"
    assert policy_words(platform(policy=None, unread=frozenset({"policy"}))) == "not read"


def test_all_is_well_with_a_platform_on_which_nothing_fails():
    assert status_of(observed(platform=platform(), nodes=(node("n"),), queues=(queue("john", 4),))).problems == ()


def test_whatever_fails_is_said_with_the_reason_that_the_service_gives():
    instances = [ClusterNode(f"i-{number}", "gpu", "t", "Failure", "EFA did not come up") for number in range(2)]
    addons = (AddonHealth("vpc-cni", "v1", "DEGRADED", ("ConfigurationConflict: aws-node",)),)
    failing = platform(
        status="RollingBack",
        nodes=tuple(instances),
        addons=addons,
        policy=SchedulerPolicy("acme-dev", "UpdateFailed", "why"),
    )
    pool = node_pool("spot", conditions=[{"type": "Ready", "status": "False", "message": "NodeClass not found"}])
    status = status_of(
        observed(
            platform=failing,
            nodes=(node("n", ready="False"),),
            pools=(pool,),
            queues=(queue("john", 4, active=False, message="Can't admit new workloads: FlavorNotFound."),),
        )
    )
    assert status.problems == (
        "cluster acme is RollingBack",
        "the cluster policy is UpdateFailed: why",
        "add-on vpc-cni is DEGRADED: ConfigurationConflict: aws-node",
        "2 of 4 instances of gpu fail: Failure: EFA did not come up (2 instances)",
        "1 node is not ready: n (Ready is False (Kubelet))",
        "NodePool spot is not ready: NodeClass not found",
        "team john: Can't admit new workloads: FlavorNotFound",
    )


HEALTH = "sagemaker.amazonaws.com/node-health-status"


def test_a_node_that_hyperpod_replaces_has_its_reason():
    faults = {"sagemaker.amazonaws.com/fault-types": "NvidiaErrorTerminate"}
    ill = node("n", marked={HEALTH: "UnschedulablePendingReplacement", **faults})
    status = status_of(observed(platform=platform(), nodes=(ill,), queues=(queue("john", 4),)))
    assert status.problems == (
        "node n: HyperPod marks it UnschedulablePendingReplacement; fault types: NvidiaErrorTerminate",
    )


def test_the_end_of_a_failed_lifecycle_script_is_shown_with_the_place_of_the_rest():
    cluster = {"ClusterName": "acme", "ClusterStatus": "InService", "ClusterArn": "arn:aws:sagemaker:r:1:cluster/abc"}
    failed = {"InstanceId": "i-1", "InstanceGroupName": "gpu", "InstanceStatus": {"Status": "Failure"}}
    (stream,) = failed_streams([failed, {**failed, "InstanceStatus": {"Status": "Running"}}])
    found = platform_of(cluster, [failed], None, [], [], logs={stream: ["mount: denied", "exit 1"]})
    said = status_of(observed(platform=found)).problems
    assert said[-1] == (
        "the lifecycle script of i-1 ended with: mount: denied | exit 1. The whole log is in the log group "
        "/aws/sagemaker/Clusters/acme/abc, stream LifecycleConfig/gpu/i-1"
    )


def test_what_could_not_be_read_is_not_zero():
    status = status_of(observed(platform=platform(unread=frozenset({"nodes"}))))
    assert [group.running for group in status.groups] == [None]
    pools = [node_pool("spot", resources=each) for each in ({}, {"nodes": "0"}, {"nodes": "2", GPU: "8"})]
    words = [word for each in pools for word in limit_words(each)]
    assert words == [f"at most 16 {GPU}", f"0 of 16 {GPU}", f"8 of 16 {GPU}"]


def test_a_group_that_is_still_short_of_instances_is_said():
    group = Group("gpu", ("t",), 4, 1, "Creating")
    pending = tuple(ClusterNode(f"i-{number}", "gpu", "t", "Pending", "Insufficient capacity") for number in range(3))
    status = status_of(observed(platform=platform(groups=(group,), nodes=pending)))
    assert status.problems == ("gpu has 1 of 4 instances: Pending: Insufficient capacity (3 instances)",)
    assert status.groups[0].others == {"Pending": 3}
    assert status.observed.time == NOW


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def watch(monkeypatch):
    """Return a terminal's output for several reads, of which the last is ended with Ctrl-C."""

    def run(*answers):
        left = iter([*answers, KeyboardInterrupt()])

        def read(*_, **__):
            answer = next(left)
            if isinstance(answer, BaseException):
                raise answer
            return answer

        terminal = Terminal()
        monkeypatch.setattr("hpkit.cluster.live.read.read", read)
        monkeypatch.setattr(status, "aws_session", lambda *_: None)
        monkeypatch.setattr(time, "sleep", lambda _: None)
        monkeypatch.setattr(sys, "stdout", terminal)
        status._watch(derive(typed(organization()), "dev"), None, "text", 5.0)
        return terminal.getvalue()

    return run


def page(used):
    return observed(queues=(queue("smith", 4, used=used),))


def test_each_read_is_a_page_and_a_failure_is_above_the_last_one(watch):
    shown = watch(page(3), ToolError("eks:DescribeCluster: Expired\x1b[2JToken"), page(1))
    first, _, rest = shown.partition("not read: eks:DescribeCluster: Expired")
    assert "12:00:00 UTC, every 5 s; Ctrl-C to stop" in first
    assert "smith" in first
    failed, _, again = rest.partition("12:00:00 UTC")
    assert "smith" in failed
    assert "\x1b[2JToken" not in failed
    assert "smith" in again
    assert shown.endswith("\x1b[?25h\x1b[?1049l"), "the terminal is as it was"


def test_without_a_terminal_it_says_what_to_do_instead(monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    with pytest.raises(
        status.click.UsageError, match="requires a terminal; elsewhere, run `hpkit cluster status --format json`"
    ):
        status._watch(derive(typed(organization()), "dev"), None, "text", 5.0)


@pytest.mark.parametrize(("days", "shown"), [(3, True), (30, False)])
def test_a_training_plan_that_ends_soon_needs_attention(days, shown):
    cluster = {"ClusterName": "acme", "ClusterStatus": "InService", "ClusterArn": "arn:aws:sagemaker:r:1:cluster/abc"}
    plan = {"EndTime": datetime.now(tz=UTC) + timedelta(days=days)}
    found = platform_of(cluster, [], None, [], [], training_plans={"gpu": plan})
    problems = status_of(observed(platform=found)).problems
    assert any(each.startswith("the training plan of group gpu ends at ") for each in problems) is shown

"""The changes that would let a task run now, according to the simulator."""

import dataclasses
from decimal import Decimal
from types import SimpleNamespace

import pytest

from hpkit.cli.common import live
from hpkit.cluster.live.model import ClusterNode, Flavor, Quota
from hpkit.cluster.live.state import Jobs
from hpkit.cluster.live.waiting import HELD, topology_mismatch
from hpkit.cluster.live.why import explain, find_task, holders, with_failed_instances
from hpkit.errors import SelectionError, ToolError
from tests.builders import ranked_handson
from tests.cluster.live.builders import GPU, KIND, NOW, node, observed, pod, queue, task
from tests.cluster.live.test_status import platform

FAIR = ("LessThanOrEqualToFinalShare", "LessThanInitialShare")
SHORT = f"insufficient unused quota for {GPU} in flavor {KIND}, 4 more needed"


TEAMS = (queue("john", 12, limit=6), queue("smith", 4, limit=4))


def why(name, *tasks, classes=None, queues=TEAMS, **more):
    jobs = Jobs(observed(queues=queues, tasks=tasks, priority_classes=classes or {}, **more))
    return explain(jobs, find_task(jobs, name, None), fair_sharing=FAIR)


def test_each_task_that_has_not_ended_and_whose_end_would_be_enough_is_named():
    tasks = (task("john", "own", 3, runs=True), task("smith", "lend", 1, runs=True))
    done = task("john", "done", 3, runs=True, Finished=(True, "Succeeded", ""))
    answer = why("wait", done, *tasks, task("smith", "wait", 1, QuotaReserved=(False, "Pending", SHORT)))
    assert answer.job.reason == f"at least 4 more {GPU} of {KIND} must become free"
    assert answer.holders == (f"john holds 12 {GPU} of {KIND}", f"smith holds 4 {GPU} of {KIND}")
    assert answer.remedies == ("task own ends", "task lend ends")


def test_who_holds_memory_is_told_in_gib():
    gib, memory = Decimal(2**30), (KIND, "memory")
    john, own = queue("john", 4), task("john", "own", 1, runs=True)
    john = dataclasses.replace(john, quotas={memory: john.quotas[KIND, GPU]})
    running = dataclasses.replace(own, usage={memory: 1536 * gib})
    waiting = dataclasses.replace(own, requests={"cpu": Decimal(1), "memory": 512 * gib})
    seen = observed(queues=(john,), tasks=(running, waiting))
    assert list(holders(SimpleNamespace(running=(running,), usable={memory}), seen, waiting, john)) == [
        f"john holds 1536 GiB memory of {KIND}"
    ]


def test_a_higher_priority_helps_where_it_preempts():
    classes = {"training-priority": 80, "experiment-priority": 40, "none-priority": 10}
    tasks = (task("smith", "low", 2, runs=True, priority=10), task("smith", "wait", 2, priority=10))
    answer = why("wait", *tasks, task("john", "own", 2, runs=True), classes=classes)
    assert "it gets the priority class experiment-priority; then it preempts low" in answer.remedies


def test_fewer_pods_help_where_some_fit():
    tasks = (task("smith", "wait", 6), task("john", "own", 3, runs=True), task("smith", "lend", 1, runs=True))
    assert why("wait", *tasks[:1]).remedies == ("it is submitted with 2 instead of 6 pods",)
    assert why("wait", *tasks).remedies == ("it is submitted with at most 2 instead of 6 pods, and other tasks end",)


def test_a_task_that_ended_or_runs_says_so_and_for_whom_it_was_preempted():
    said = "Preempted to accommodate a workload (UID: uid-own, JobUID: 1) due to reclamation within the cohort"
    back = task("smith", "back", 1, runs=True, Preempted=(True, "InCohortReclamation", said))
    found = why("back", back, task("john", "own", 3, runs=True), pods=(pod("smith", "back", "n1"),))
    assert (
        found.job.reason == "its pod runs. Before, it was preempted, because the team that lent the quota reclaimed it"
    )
    assert (found.preempted_by, found.holders, found.remedies) == ("own of john", (), ())
    ended = why("bad", task("smith", "bad", 1, Finished=(True, "Failed", "BackoffLimitExceeded")))
    assert ended.job.reason == "it has failed: BackoffLimitExceeded"


def test_what_comes_free_goes_to_the_one_that_waits_before_it():
    tasks = (
        task("john", "own", 3, runs=True, priority=80),
        task("smith", "lend", 1, runs=True, priority=80),
        task("john", "high", 1, priority=80),
        task("john", "low", 1, priority=40),
    )
    assert why("high", *tasks).remedies == ("task own ends", "task lend ends")
    found = why("low", *tasks)
    assert "task lend ends" not in found.remedies
    assert "task own ends" in found.remedies


P5 = "ml.p5.48xlarge"
FLAVORS = {KIND: Flavor(KIND, {"node.kubernetes.io/instance-type": KIND}, topology=False)}


def select(kind):
    return {"spec": {"containers": [], "nodeSelector": {"node.kubernetes.io/instance-type": kind}}}


@pytest.mark.parametrize(
    ("waiting", "outlook"),
    [
        (
            task("john", "wait", 1, topology={"required": "topology.k8s.aws/network-node-layer-3"}),
            topology_mismatch([KIND], asks=True),
        ),
        (
            task("john", "wait", 1, template=select("ml.p5.48xlarge")),
            "its pods select or require nodes that no flavor of its queue has",
        ),
        (task("john", "wait", 1, more={"example.com/fpga": "1"}), "its queue doesn't count example.com/fpga"),
    ],
)
def test_what_can_never_run_is_promised_nothing(waiting, outlook):
    found = why("wait", task("john", "own", 3, runs=True), waiting, flavors=FLAVORS)
    assert (found.remedies, found.outlook) == ((), f"it can never run as it is: {outlook}")
    assert (found.runs_at, found.when) == (None, "")


@pytest.mark.parametrize("topology", [True, None])
def test_a_topology_that_a_flavor_has_and_a_type_that_is_selected_are_no_obstacle(topology, monkeypatch):
    flavors = {KIND: Flavor(KIND, {"node.kubernetes.io/instance-type": KIND}, topology=True)}
    if topology is None:
        monkeypatch.setattr(live, "aws_session", lambda *_: None)
        monkeypatch.setattr("hpkit.cluster.live.read.read", lambda *_, **__: observed(flavors={**flavors, **FLAVORS}))
        flavors = live.observe(ranked_handson(topologyAwareScheduling="Disabled"), None).flavors
        assert {each.topology for each in flavors.values()} == {None}
    waiting = task("john", "wait", 1, topology={"unconstrained": True}, template=select(KIND))
    assert why("wait", task("john", "own", 3, runs=True), waiting, flavors=flavors).remedies != ()


@pytest.mark.parametrize(
    ("chosen", "words"),
    [(P5, topology_mismatch([P5], asks=False)), ("ml.p4d.24xlarge", "its node selector, affinity or tolerations")],
)
def test_a_missing_topology_request_is_the_one_reason_unless_the_selector_excludes_the_flavor(chosen, words):
    """Kueue 0.19.2 writes the same condition for a selector that excludes both flavors, and for P5 alone."""
    message = f'Flavor "{P5}" supports only TopologyAwareScheduling, flavor {KIND} doesn\'t match node affinity'
    waiting = task("john", "wait", 1, template=select(chosen), QuotaReserved=(False, "Pending", message))
    flavors = {**FLAVORS, P5: Flavor(P5, {"node.kubernetes.io/instance-type": P5}, topology=True)}
    john = queue("john", 8)
    mixed = dataclasses.replace(john, quotas={(each, GPU): john.quotas[KIND, GPU] for each in flavors})
    found = why("wait", waiting, queues=(mixed,), flavors=flavors)
    assert found.job.reason.startswith(f"it can never run: {words}")
    assert (found.remedies, found.outlook) == ((), "")


FAT = f"it can never run: one of its pods requests 8 {GPU} of {KIND}, but an instance provides 4"
NO_NODE = 'topology "x" doesn\'t allow to fit any of 1 pod(s)'
UNPLACED = "it's admitted and holds quota, but its pod doesn't run: 1 pod has no node: Insufficient"
APART = {"topology": {"required": "topology.k8s.aws/network-node-layer-3"}}


@pytest.mark.parametrize(
    ("topology", "fat", "minutes", "words"),
    [
        (True, {"pods": 1, "gpus": 8, "QuotaReserved": (False, "Pending", NO_NODE)}, 50, FAT),
        (True, {"pods": 2, **APART}, 50, "even if nothing else ran, only 1 of 2 pods find a node under one "),
        (False, {"pods": 1, "gpus": 8, "QuotaReserved": (False, "Pending", SHORT)}, None, FAT + HELD),
        (False, {"pods": 1, "gpus": 8, "spec": {"maximumExecutionTimeSeconds": 600}}, 60, FAT + HELD),
        (False, {"pods": 1, "gpus": 8, "runs": True}, None, f"{UNPLACED}. I{FAT[1:]}"),
    ],
)
def test_what_no_node_can_hold_takes_no_quota_where_kueue_looks_for_nodes(topology, fat, minutes, words):
    """The limit of a pod that no node holds never begins; Kueue's own begins with the quota."""
    flavors = {KIND: dataclasses.replace(FLAVORS[KIND], topology=topology)}
    limited = {"spec": {"containers": [], "activeDeadlineSeconds": 600}}
    own = task("john", "own", 3, runs=True, minutes=10, spec={"maximumExecutionTimeSeconds": 3600})
    tasks = (own, task("john", "fat", **fat, template=limited), task("john", "wait", 3))
    nodes = [node(f"n{number}", "a", "b", f"c{number}") for number in range(4)]
    conditions = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "Insufficient."}]
    pods = [pod("john", "fat", None, status={"conditions": conditions})] if "runs" in fat else []
    other = {} if topology else {("ml.m5.4xlarge", GPU): Quota(Decimal(0))}
    queues = [dataclasses.replace(each, quotas={**each.quotas, **other}) for each in TEAMS]
    seen = {"queues": queues, "flavors": flavors, "nodes": nodes, "pods": pods}
    found, never = (why(name, *tasks, **seen) for name in ("wait", "fat"))
    assert (found.runs_at and (found.runs_at - NOW).total_seconds()) == (minutes and minutes * 60)
    assert ("task own ends" in found.remedies) == topology
    assert words in (never.job.reason, never.outlook[: len(words)])
    assert "never" not in why("fat", *tasks, **{**seen, "nodes": [*nodes, node("n", gpus=8)]}).job.reason


def test_when_it_could_run_is_said_where_those_that_run_say_how_long():
    local = {"metadata": {"annotations": {"hpkit.local/run": "30m"}}, "spec": {"containers": []}}
    tasks = (
        task("john", "own", 3, runs=True, minutes=10, template=local),
        task("smith", "lend", 1, runs=True, minutes=10, spec={"maximumExecutionTimeSeconds": 3600}),
        task("john", "wait", 1),
    )
    found = why("wait", *tasks)
    assert (found.runs_at - NOW).total_seconds() == 20 * 60
    assert found.when.startswith("2026-11-22 12:20 UTC, in 20 min,")
    endless = why("wait", task("john", "own", 3, runs=True), *tasks[1:])
    assert endless.runs_at is not None
    assert (endless.runs_at - NOW).total_seconds() == 50 * 60
    p5, flavors = {(P5, GPU): Decimal(4)}, {**FLAVORS, P5: Flavor(P5, {"node.kubernetes.io/instance-type": P5}, False)}
    both = [dataclasses.replace(each, quotas={**each.quotas, (P5, GPU): each.quotas[KIND, GPU]}) for each in TEAMS]
    tasks = [task("john", "own", 3, runs=True), task("smith", "lend", 1, runs=True)]
    tasks += [dataclasses.replace(task("smith", "other", 1, runs=True), usage=p5)]
    unknown = why("wait", *tasks, task("john", "wait", 1, template=select(KIND)), queues=both, flavors=flavors)
    assert (unknown.runs_at, unknown.when) == (None, "unknown, because no limit is set on how long own, lend can run")
    assert unknown.holders == (f"john holds 12 {GPU} of {KIND}", f"smith holds 4 {GPU} of {KIND}")


def test_a_preemptor_that_is_gone_is_known_by_its_team():
    message = (
        "Preempted to accommodate a workload (UID: uid-gone, JobUID: 1) due to reclamation within the cohort; "
        "preemptor path: /hyperpod-cohort/hyperpod-ns-john-clusterqueue; preemptee path: /x"
    )
    back = task("smith", "back", 1, Preempted=(True, "InCohortReclamation", message))
    assert why("back", back).preempted_by == "a task of john that no longer exists"
    assert why("back", back, namespaces=("hyperpod-ns-smith",)).preempted_by == "a task of john that couldn't be read"


def test_what_others_hold_counts_though_their_tasks_could_not_be_read():
    queues = (queue("john", 12, used=12, limit=6), queue("smith", 4, used=4, limit=4))
    tasks = (task("john", "own", 3, runs=True), task("john", "wait", 1))
    answer = why("wait", *tasks, queues=queues, namespaces=("hyperpod-ns-john",))
    assert answer.holders == (f"john holds 12 {GPU} of {KIND}", f"smith holds 4 {GPU} of {KIND}")
    assert answer.remedies == ("task own ends",)
    assert answer.outlook.startswith("pods and waiting tasks of other namespaces couldn't be read")
    assert answer.when == "unknown, because no limit is set on how long those of smith, own can run"


def test_queues_that_were_not_read_are_not_said_to_be_missing():
    found = why("wait", task("john", "wait", 1), queues=(), unread=frozenset({"clusterqueues"}))
    assert found.job.reason.startswith("Kueue hasn't evaluated it for 300 s,")
    assert found.outlook == "what would let it run isn't known, because queues couldn't be read"


def part(name, on, gpus=3):
    """Return a pod of john's task `part` on a node."""
    return pod("john", name, on, gpus=gpus)


def test_free_quota_without_a_node_with_room_is_said_with_the_jobs_that_hold_the_parts():
    nodes = (node("n1"), node("n2"))
    tasks = (task("john", "part", 2, gpus=3, runs=True), task("john", "wait", 1))
    pods = (part("part", "n1"), part("part", "n2"))
    found = why("wait", *tasks, nodes=nodes, pods=pods, flavors=FLAVORS)
    assert found.outlook == (
        f"quota is free, but no node has 4 {GPU} free for a pod; part of john holds 6 {GPU} on 2 nodes"
    )
    assert (found.holders, found.remedies) == ((), ("task part ends",))
    old = task("john", "wait", 1, QuotaReserved=(False, "Pending", SHORT))
    with_room = why("wait", tasks[0], old, nodes=(*nodes, node("n3")), pods=pods, flavors=FLAVORS)
    assert with_room.job.reason.startswith("Kueue's last answer: at least 4 more")
    now = "nothing: the simulator admits it now, and Kueue should within seconds"
    assert (with_room.remedies, with_room.holders, with_room.when) == ((now,), (), "")
    member = why("wait", *tasks, nodes=nodes, pods=pods, flavors=FLAVORS, namespaces=("hyperpod-ns-john",))
    assert (member.outlook, member.remedies) == (found.outlook, ())
    # Two pods of 2 GPUs come first: the scheduler spreads them over n2 and the node that becomes free.
    tasks = (task("john", "a", 1, runs=True), task("john", "first", 2, gpus=2, runs=True))
    pods = (part("a", "n1", 4), *(part("first", None, 2) for _ in "ab"))
    first = why("wait", *tasks, task("john", "wait", 1), nodes=nodes, pods=pods, flavors=FLAVORS)
    assert ("no node has 4" in first.outlook, first.remedies) == (True, ("task first ends",))


def test_kueues_own_word_that_no_node_has_room_is_not_contradicted():
    full = {"QuotaReserved": (False, "Pending", 'topology "x" doesn\'t allow to fit any of 1 pod(s)')}
    found = why("wait", task("john", "wait", 1, **full))
    assert found.job.reason == "quota is free, but only 0 of 1 pods find a node with room"
    assert (found.remedies, found.outlook) == ((), "the simulator can't tell which tasks hold the nodes that it needs")


def test_pods_that_must_share_a_network_node_need_room_under_one():
    layer = "topology.k8s.aws/network-node-layer-3"
    flavors = {KIND: dataclasses.replace(FLAVORS[KIND], topology=True)}
    waiting = task("john", "wait", 2, topology={"required": layer})
    nodes = (node("n1", "a", "b", "c"), node("n2", "a", "b", "d"))
    found = why("wait", waiting, nodes=nodes, flavors=flavors)
    words = f"only 1 of 2 pods find a node under one {layer} with 4 {GPU} free for a pod"
    assert found.outlook == f"quota is free, but {words}"
    together = (node("n1", "a", "b", "c"), node("n2", "a", "b", "c"))
    assert why("wait", waiting, nodes=together, flavors=flavors).remedies[0].startswith("nothing")


def test_without_fair_share_a_task_above_its_quota_spares_its_team():
    seen = Jobs(observed(queues=TEAMS, tasks=(task("john", "low", 3, runs=True), task("john", "high", 4, priority=9))))
    found = explain(seen, find_task(seen, "high", None), fair_sharing=None)
    assert "requests more than the team's quota, and `fairShare` is Disabled" in found.outlook


def test_tasks_that_could_not_be_read_are_not_said_to_be_none():
    with pytest.raises(ToolError, match="the tasks couldn't be read"):
        find_task(Jobs(observed(unread=frozenset({"workloads"}))), "a", None)
    with pytest.raises(
        SelectionError, match=r"in hyperpod-ns-john; no other namespace could be read.*label kueue.x-k8s.io/queue-name"
    ):
        find_task(Jobs(observed(namespaces=("hyperpod-ns-john",))), "a", None)


def test_a_queue_that_admits_nothing_is_the_whole_answer():
    queues = (queue("smith", 4, active=False, message="stopped"),)
    found = why("wait", task("smith", "wait", 1), queues=queues)
    assert (found.job.reason, found.remedies) == ("its queue admits nothing: stopped", ())
    paused = why("wait", task("smith", "wait", 1), queues=(dataclasses.replace(queues[0], stopped=True),))
    assert paused.job.reason == "its queue admits nothing: it is paused (activationState: Disabled)"
    assert paused.outlook == "it can only run once activationState of its team is Enabled"


def test_a_task_is_found_by_the_name_of_its_job_or_its_workload():
    tasks = (task("john", "a", 1, minutes=9), task("john", "a", 1, minutes=1), task("smith", "b", 1))
    seen = Jobs(observed(tasks=tasks))
    assert find_task(seen, "a", None).created.minute == 59
    assert find_task(seen, "job-b", "smith").owner_name == "b"
    of_cron_job = Jobs(observed(tasks=(task("john", "c-29574420", 1),)))
    assert find_task(of_cron_job, "c", None).owner_name == "c-29574420"
    with pytest.raises(SelectionError, match="no task c; its tasks: a, b"):
        find_task(seen, "c", None)
    with pytest.raises(SelectionError, match="no task b of team john"):
        find_task(seen, "b", "john")
    both = Jobs(observed(tasks=(task("john", "a", 1), task("smith", "a", 1))))
    with pytest.raises(SelectionError, match="john, smith each have a task a; choose one with --team"):
        find_task(both, "a", None)
    with pytest.raises(SelectionError, match="it has no tasks"):
        find_task(Jobs(observed()), "a", None)


def test_a_job_on_a_node_with_a_fault_names_the_fault():
    faults = {"sagemaker.amazonaws.com/fault-reasons": "XID 79"}
    running = task("john", "train", 1, runs=True)
    found = why("train", running, nodes=(node("n", marked=faults), node("m")), pods=(pod("john", "train", "n"),))
    assert found.nodes == ("n: fault reasons: XID 79",)


def test_failed_instances_of_the_types_of_its_queue_are_named_with_the_end_of_their_log():
    seen = observed(queues=TEAMS, tasks=(task("smith", "wait", 1),))
    answer = explain(Jobs(seen), seen.tasks[0], fair_sharing=FAIR)
    failed = ClusterNode("i-1", "gpu", KIND, "Failure", "Lifecycle scripts failed", log=("mount: denied", "exit 1"))
    others = (ClusterNode("i-2", "gpu", KIND, "Running"), ClusterNode("i-3", "cpu", "ml.m5.4xlarge", "Failure"))
    told = with_failed_instances(answer, seen, platform(nodes=(failed, *others), log_group="/group"))
    (words,) = told.failed
    assert words.startswith("i-1 of group gpu: Lifecycle scripts failed; ")
    assert words.endswith(
        "mount: denied | exit 1. The whole log is in the log group /group, stream LifecycleConfig/gpu/i-1"
    )
    assert with_failed_instances(answer, seen, None).failed is None

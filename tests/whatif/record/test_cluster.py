"""Workloads of a cluster as tasks: times from Kueue's conditions, and reports of what is left out."""

import io
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from hpkit.cluster.live.model import Condition, Task, TaskPods
from hpkit.cluster.live.parse import topology_asked
from hpkit_whatif.record import Yaml, recorded
from hpkit_whatif.scenario import open_scenario
from hpkit_whatif.simulate import simulate
from tests.builders import ranked_handson
from tests.cluster.live.builders import GPU, KIND, NOW, node, observed
from tests.whatif.recommend.builders import plan_of_handson

HOUR = 3600.0


def workload(name, *, created, admitted=None, finished=None, team="john", gpus=4, pods=1, **more):
    """Return a Workload whose times are hours before now."""

    def at(hours):
        return NOW - timedelta(hours=hours)

    times = {"Admitted": admitted, "Finished": finished}
    given = {
        "uid": name,
        "owner_kind": "Job",
        "owner_name": name,
        "local_queue": "q",
        "queue": "cq",
        "priority": 0,
        "priority_class": None,
        "active": True,
        "requests": {GPU: Decimal(gpus * pods), "cpu": Decimal(2 * pods)},
        "usage": {} if admitted is None else {(KIND, GPU): Decimal(gpus * pods)},
        "conditions": {kind: Condition(True, "", "", at(hours)) for kind, hours in times.items() if hours is not None},
    }
    return Task(
        name=f"job-{name}", namespace=f"hyperpod-ns-{team}", created=at(created), pods=pods, **{**given, **more}
    )


def record(*workloads, hours=10, plan=None, nodes=()):
    return recorded(observed(tasks=workloads, nodes=nodes), plan or ranked_handson(), since=hours * HOUR)


def placed(*requests):
    """Return the pods of a Workload, one for each topologyRequest."""
    return tuple(
        TaskPods(f"pods-{number}", 1, {}, {}, topology_asked(request)) for number, request in enumerate(requests)
    )


def with_topology():
    return replace(plan_of_handson(), topology_aware_scheduling=True)


LAYER = "topology.k8s.aws/network-node-layer-"
NODES = (node("n1", "a", "b", "c"), node("n2", "a", "b", "c"), node("n3", "a", "b", "d"), node("n4", "a"))


def rows(found):
    return [(task.name, task.submit / HOUR, None if task.run is None else task.run / HOUR) for task in found.tasks]


def test_a_task_ran_from_its_last_admission_to_its_end():
    recorded = record(
        workload("waited", created=8, admitted=6, finished=3),
        workload("runs", created=5, admitted=4),
        workload("waits", created=1),
        workload("before", created=20, admitted=19, finished=11),
        workload("halfway", created=20, admitted=18, finished=9),
        workload("queued", created=12, admitted=9, finished=8),
    )
    assert rows(recorded) == [
        ("john/halfway", 0, 1),
        ("john/queued", 0, 1),
        ("john/waited", 2, 3),
        ("john/runs", 5, None),
        ("john/waits", 9, None),
    ]
    notes = "; ".join(recorded.notes)
    for words in (
        "Workloads are running at the end; their run time is unknown, so they have no `run` (1)",
        "Workloads are waiting at the end",
        "Workloads were already running",
        "of deleted jobs",
    ):
        assert words in notes


def test_pods_are_told_apart_where_they_are_alike():
    (task,) = record(workload("t", created=2, admitted=1, pods=2, gpus=4)).tasks
    assert (task.pods, task.accelerators, task.v_cpu, task.instance_type) == (2, 4, 2.0, KIND)


def test_pods_that_request_gpus_alone_take_nothing_else_of_their_quota():
    asked = workload("t", created=2, admitted=1, pods=2, requests={GPU: Decimal(8)})
    (task,) = record(asked).tasks
    assert (task.pods, task.accelerators, task.v_cpu, task.memory_in_gib) == (2, 4, 0, 0)
    written = io.StringIO()
    Yaml("", 60.0, [task]).write(written)
    assert "vCpu: 0.0, memoryInGiB: 0.0" in written.getvalue()


def test_a_launcher_beside_workers_keeps_what_is_asked_in_all():
    odd = workload("t", created=2, admitted=1, pods=3, requests={GPU: Decimal(8), "cpu": Decimal(6)})
    found = record(odd)
    assert [(task.pods, task.accelerators, task.v_cpu) for task in found.tasks] == [(2, 4, 3.0)]
    assert "Workloads have pods of different sizes" in "; ".join(found.notes)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"team": "others"}, "don't belong to a team of this stack"),
        ({"active": False}, "are stopped"),
        ({"finished": 1.0}, "ended before they were admitted"),
        ({"admitted": 1.0, "usage": {("ml.p5.48xlarge", GPU): Decimal(4)}}, "for which their team has no quota"),
        ({"admitted": 1.0, "usage": {(KIND, GPU): 1, ("ml.m5.4xlarge", "cpu"): 1}}, "on several instance types"),
        ({"admitted": 1.0, "requests": {}}, "request nothing"),
        ({"admitted": 1.0, "requests": {"nvidia.com/mig-1g.5gb": Decimal(1)}}, "MIG partitions"),
    ],
)
def test_what_is_no_task_is_left_out_and_said(more, message):
    found = record(workload("t", created=2, **more))
    assert found.tasks == ()
    assert message in "; ".join(found.notes)


def test_priorities_are_classes_of_the_stack_or_weights():
    recorded = record(
        workload("a", created=3, priority=80, priority_class="training-priority"),
        workload("b", created=2, priority=7, priority_class="gone-priority"),
        workload("c", created=1, priority=100_000),
    )
    assert [task.priority for task in recorded.tasks] == ["training", 7, 0]


@pytest.mark.parametrize(
    ("requests", "placement", "message"),
    [
        ([{"required": f"{LAYER}3"}], ("required", 3), None),
        ([{"preferred": f"{LAYER}1", "podIndexLabel": "i"}], ("preferred", 1), None),
        ([{"unconstrained": True}], ("unconstrained", None), None),
        ([{"podIndexLabel": "i"}], None, None),
        ([{"required": "kubernetes.io/hostname"}], None, "by kubernetes.io/hostname: they get no placement"),
        (
            [{"required": f"{LAYER}2", "podSetSliceRequiredTopology": f"{LAYER}3", "podSetSliceSize": 2}],
            ("required", 2),
            "by podSetSliceRequiredTopology, podSetSliceSize: they keep only the outer placement",
        ),
        ([{"podSetSliceSize": 2}], None, "by podSetSliceSize: they get no placement"),
        ([{"required": f"{LAYER}2"}, {}], None, "not the same for all of their pods: they get no placement"),
        ([{"required": f"{LAYER}2"}] * 2, ("required", 2), "all pods of a task are placed together"),
    ],
)
def test_a_placement_is_read_and_what_of_it_is_not_is_said(requests, placement, message):
    recorded = record(workload("t", created=2, pod_sets=placed(*requests)), plan=with_topology(), nodes=NODES)
    (task,) = recorded.tasks
    assert (task.placement and (task.placement.mode, task.placement.layer)) == placement
    unread = [line for line in recorded.notes if "that a scenario can't express" in line]
    assert (unread == []) if message is None else (message in unread[0])


def test_nodes_are_recorded_where_a_task_asks_for_a_placement():
    near = workload("near", created=2, pods=2, pod_sets=placed({"required": f"{LAYER}3"}))
    far = workload("far", created=1, pods=3, pod_sets=placed({"required": f"{LAYER}3"}))
    assert record(workload("t", created=2), plan=with_topology(), nodes=NODES).topology == ()
    recorded = record(near, far, plan=with_topology(), nodes=NODES)
    assert [(rack.nodes, rack.layers) for rack in recorded.topology] == [(2, ("a", "b", "c")), (1, ("a", "b", "d"))]
    assert [task.name for task in recorded.tasks] == ["john/near"]
    notes = "; ".join(recorded.notes)
    for words in (
        "Workloads don't fit on the current nodes: left out (1)",
        f"1 node of {KIND} without labels for all network layers",
        "current nodes; the places of earlier nodes are unknown",
    ):
        assert words in notes
    assert "no node has network layer labels" in "; ".join(record(near, plan=with_topology()).notes)
    without = replace(plan_of_handson(), topology_aware_scheduling=False)
    assert "the stack has no topology-aware scheduling" in "; ".join(record(near, plan=without, nodes=NODES).notes)


def test_a_placement_is_written_and_decides(tmp_path):
    tasks = [
        workload(name, created=pods, pods=pods, pod_sets=placed({"required": f"{LAYER}3"}))
        for name, pods in (("first", 2), ("second", 1))
    ]
    recorded = record(*tasks, plan=with_topology(), nodes=NODES[:2])
    scenario = tmp_path / "scenario.yaml"
    with scenario.open("w") as file:
        assert Yaml("what was", recorded.until, recorded.tasks, recorded.topology).write(file) == 2
    first, second = simulate(with_topology(), open_scenario(scenario)).tasks
    assert sorted(first.admissions[0].nodes.values()) == [1, 1]
    assert second.admitted is None
    scenario.write_text(scenario.read_text().partition("topology:")[0])
    assert [task.wait for task in simulate(with_topology(), open_scenario(scenario)).tasks] == [0, 0]


def test_the_oldest_that_is_left_says_from_when_on_something_is_known():
    assert "the oldest remaining Workload is from 2026-11-22 10:00 UTC" in "; ".join(
        record(workload("t", created=2)).notes
    )


def test_what_is_written_is_read_and_runs_as_it_ran(tmp_path):
    recorded = record(
        workload("one", created=8, admitted=8, finished=5, priority_class="training-priority"),
        workload("one", created=4, admitted=4, uid="later"),
        workload("other", created=3, team="smith"),
    )
    file = io.StringIO()
    assert Yaml("what was", recorded.until, recorded.tasks).write(file) == 3
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(file.getvalue())
    report = simulate(ranked_handson(), open_scenario(scenario))
    assert [(task.name, task.submit / HOUR, task.finished and task.finished / HOUR) for task in report.tasks] == [
        ("john/one", 2, 5),
        ("john/one#2", 6, None),
        ("smith/other", 7, None),
    ]
    assert report.end == 10 * HOUR

"""Properties independent of Kueue: the worked examples, the clock, and invalid models."""

import re
from dataclasses import replace

import pytest

from hpkit.kueue.model import Admission, ClusterQueue, WaitForPodsReady
from hpkit_whatif.admission import (
    Cohort,
    FlavorQuotas,
    Model,
    Node,
    PodSet,
    PodSetAssignment,
    Preemption,
    ResourceGroup,
    ResourceQuota,
    Simulator,
    Topology,
    TopologyRequest,
    Workload,
)

BOTH = ("LessThanOrEqualToFinalShare", "LessThanInitialShare")


def queue(name, nominal, *, borrow=None, weight=1.0, flavor="gpu-node", lend=None, **more):
    quota = ResourceQuota(nominal, borrow, lend)
    group = ResourceGroup(("gpu",), (FlavorQuotas(flavor, {"gpu": quota}),))
    preemption = Preemption("LowerPriority", "Any")
    return ClusterQueue(name, "all", (group,), fair_weight=weight, preemption=preemption, **more)


def task(name, team, amount, **more):
    return Workload(name, team, (PodSet("main", 1, {"gpu": amount}),), **more)


def run(model, *steps):
    simulator = Simulator(model)
    evicted = []
    for step in steps:
        simulator.submit(step)
        simulator.now += 1
        outcome = simulator.run_until_quiet(tick=1)
        evicted += [(each.name, each.reason) for each in outcome.preempted]
    return simulator, evicted


def test_an_evicted_task_begins_anew_and_runs_to_its_end():
    model = Model((queue("a", 4, borrow=0), queue("b", 4, borrow=4)), fair_sharing=BOTH)
    events = []
    tasks = [task("b8", "b", 8, created=0.0, run=100.0), task("a4", "a", 4, created=50.0, run=30.0)]
    simulator = Simulator(model)
    assert simulator.run_clock(tasks, on_event=events.append) == frozenset()
    seen = [(event.time, event.kind, event.workload) for event in events]
    assert (50.0, "Preempted", "b8") in seen
    assert seen[-2:] == [(80.0, "Admitted", "b8"), (180.0, "Finished", "b8")]


def test_endless_preemption_is_noticed():
    x = queue("x", 7, weight=0.0)
    y = queue("y", 8, weight=0.5)
    running = [("xlow", "x", 1, 0), ("x3", "x", 3, 1), ("y3", "y", 3, 1), ("y3b", "y", 3, 1), ("y4", "y", 4, 1)]
    workloads = [
        Workload(
            name,
            team,
            (PodSet("main", 1, {"gpu": amount}),),
            priority=priority,
            created=float(number),
            admission=Admission(float(number), (PodSetAssignment("main", 1, {"gpu": "gpu-node"}, {"gpu": amount}),)),
        )
        for number, (name, team, amount, priority) in enumerate(running)
    ]
    simulator = Simulator(Model((x, y), fair_sharing=BOTH), workloads, now=100.0)
    simulator.submit(task("x4", "x", 4, priority=1, created=100.0))
    assert "y4" in simulator.run_until_quiet(tick=1).flapping


def test_a_queue_that_is_held_admits_nothing():
    simulator, _ = run(Model((queue("a", 4, active=False),)), task("t", "a", 1))
    assert not simulator.running()


def test_what_contradicts_itself_is_refused():
    with pytest.raises(ValueError, match="no queue b"):
        Simulator(Model((queue("a", 1),)), [task("t", "b", 1)])
    with pytest.raises(ValueError, match="two workloads t"):
        Simulator(Model((queue("a", 1),)), [task("t", "a", 1), task("t", "a", 1)])
    circle = (Cohort("x", "y"), Cohort("y", "x"))
    with pytest.raises(ValueError, match=r"\Acohort x is below itself: x → y → x\Z"):
        Simulator(Model((queue("a", 1),), cohorts=circle))


def of(resources=("gpu",), *flavors, **more):
    """Return a model of one queue with these flavors in one group."""
    found = tuple(FlavorQuotas(name, {"gpu": quota}) for name, quota in flavors)
    return Model((ClusterQueue("a", resource_groups=(ResourceGroup(resources, found),), **more),))


ONE = ("f", ResourceQuota(1))


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (Model((queue("a", -4),)), "queue a: nominal of gpu of gpu-node is -4; it must be a whole number, 0 or more"),
        (Model((queue("a", 4, borrow=-1),)), "borrowing_limit of gpu of gpu-node is -1"),
        (Model((queue("a", 4, lend=0.5),)), "lending_limit of gpu of gpu-node is 0.5"),
        (Model((queue("a", 4, weight=-1.0),)), "queue a: fair_weight is -1.0; it must be a number, 0 or more"),
        (Model((queue("a", 4, weight=float("nan")),)), "queue a: fair_weight is nan"),
        (Model((queue("a", 4), queue("a", 9))), "queues: there are two a"),
        (Model((queue("a", 4),), cohorts=(Cohort("all"), Cohort("all", fair_weight=3))), "cohorts: there are two all"),
        (Model((queue("a", 4),), fair_sharing=("Foo",)), 'fair_sharing is "Foo"; it is one of LessThanOrEqual'),
        (of(("gpu",), ONE, ONE), "queue a: flavors: there are two f"),
        (of("gpu", ONE), "covered_resources is the text gpu, and must be a tuple"),
        (of(("cpu",), ONE), "the resource group of flavor f does not cover gpu"),
        (of(("gpu",), ONE, queueing_strategy="Fifo"), 'queueing_strategy is "Fifo"; it is one of BestEffortFIFO'),
        (of(("gpu",), ONE, preemption=Preemption("lowerpriority", "Any")), 'within_cluster_queue is "lowerpriority"'),
        (of(("gpu",), ONE, preemption=Preemption("Never", "any")), 'reclaim_within_cohort is "any"'),
        (Model((), topologies=(Topology((), ()),)), "a topology has no levels"),
    ],
)
def test_a_model_that_kueue_would_not_take_says_what_is_wrong(model, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        Simulator(model)


RACKS = Topology(("rack", "host"), (Node("n", {"rack": "r", "host": "n"}, {"gpu": 4, "pods": 9}),), {"gpu-node": {}})


@pytest.mark.parametrize(
    ("workload", "said"),
    [
        (Workload("t", "a", (PodSet("main", -3, {"gpu": 1}),)), "workload t: pod set main: count is -3"),
        (Workload("t", "a", (PodSet("main", 1.5, {"gpu": 1}),)), "count is 1.5; it must be a whole number"),
        (Workload("t", "a", (PodSet("main", 1, {"gpu": -5}),)), "pod set main: gpu is -5"),
        (Workload("t", "a", (PodSet("main", 2, {"gpu": 1}, min_count=5),)), "min_count is 5, more than its count of 2"),
        (Workload("t", "a", (PodSet("m", 1, {}), PodSet("m", 1, {}))), "pod sets: there are two m"),
        (Workload("t", "a", ()), "workload t: it has no pod sets"),
        (Workload("t", "a", (PodSet("main", 1, {}, flavors="f"),)), "flavors is the text f, and must be a set"),
        (task("t", "a", 1, run=-5.0), "run is -5.0; it must be seconds, 0 or more"),
        (task("t", "a", 1, run=float("nan")), "run is nan"),
        (task("t", "a", 1, created=float("inf")), "created is inf"),
        (
            Workload("t", "a", (PodSet("main", 1, {"gpu": 1}, topology=TopologyRequest("required", "zone")),)),
            "no topology has a level zone; there are rack, host",
        ),
        (
            task("t", "a", 1, admission=Admission(0.0, (PodSetAssignment("main", 1, {"gpu": "zz"}, {"gpu": 1}),))),
            "it runs on zz, which has no quota of gpu",
        ),
        (task("t", "a", 1, admission=Admission(float("nan"), ())), "workload t: admitted is nan; it must be a number"),
        (
            task(
                "t", "a", 1,
                admission=Admission(0.0, (PodSetAssignment("main", 1, {"gpu": "gpu-node"}, {"gpu": 1}, (("x", 1),)),)),
            ),
            "it runs on x, which no topology has",
        ),
    ],
)  # fmt: skip
def test_a_workload_that_kueue_would_not_take_says_what_is_wrong(workload, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        Simulator(Model((queue("a", 4),), topologies=(RACKS,)), [workload])


def test_a_flavor_whose_topology_lacks_the_level_takes_no_pods_that_ask_for_it():
    other = Topology(("host",), (Node("m", {"host": "m"}, {"gpu": 4, "pods": 9}),), {"other": {}})
    flavors = tuple(FlavorQuotas(name, {"gpu": ResourceQuota(4)}) for name in ("other", "gpu-node"))
    model = Model((ClusterQueue("a", resource_groups=(ResourceGroup(("gpu",), flavors),)),), topologies=(RACKS, other))
    asked = PodSet("main", 1, {"gpu": 1}, topology=TopologyRequest("required", "rack"))
    simulator = Simulator(model, [Workload("t", "a", (asked,))])
    simulator.run_until_quiet()
    assert simulator.running()["t"][0].flavors == {"gpu": "gpu-node"}


def test_what_a_queue_uses_beyond_its_limit_is_not_given_away_twice():
    # "over" runs 8 with 2 of its own and 1 borrowed, and its next workload has nothing to evict; 2 of 10 are free, and
    # two workloads request them.
    never = Preemption("Never", "LowerPriority")
    quotas = {"over": (2, 1), "one": (1, 6), "two": (1, 6), "idle": (6, 0)}
    queues = tuple(
        replace(queue(name, nominal, borrow=borrow), preemption=never) for name, (nominal, borrow) in quotas.items()
    )
    held = Admission(0.0, (PodSetAssignment("main", 1, {"gpu": "gpu-node"}, {"gpu": 8}),))
    simulator = Simulator(Model(queues), [task("old", "over", 8, admission=held)])
    simulator.submit(task("more", "over", 1, priority=9, created=1.0))
    simulator.submit(task("first", "one", 2, created=2.0))
    simulator.submit(task("second", "two", 2, created=3.0))
    assert [each.name for each in simulator.run_cycle().admitted] == ["first"]


GANG = WaitForPodsReady(timeout=300, recovery_timeout=300, backoff_base_seconds=60, backoff_max_seconds=200)


def clocked(workloads, gang, *, nominal=4, until=None):
    """Run workloads on one queue, and return the events with their times."""
    events = []
    simulator = Simulator(Model((queue("q", nominal),), wait_for_pods_ready=gang))
    simulator.run_clock(
        workloads, until=until, on_event=lambda each: events.append((each.time, each.kind, each.workload))
    )
    return events


def test_a_task_whose_pods_are_late_is_evicted_and_retried_later_each_time():
    late = task("late", "q", 4, start=301.0, run=60.0)
    events = clocked([late], GANG, until=1600)
    assert [time for time, kind, _ in events if kind == "Admitted"] == [0, 360, 780, 1280]
    assert [time for time, kind, _ in events if kind == "TimedOut"] == [300, 660, 1080, 1580]


def test_a_task_is_deactivated_after_as_many_retries_as_are_allowed():
    late = task("late", "q", 4, start=301.0)
    events = clocked([late], replace(GANG, backoff_limit_count=1))
    assert events[-1] == (660, "Deactivated", "late")


def test_a_task_whose_pods_are_ready_in_time_runs_from_then_on():
    events = clocked([task("a", "q", 4, start=300.0, run=60.0)], GANG)
    assert events[-1] == (360, "Finished", "a")
    assert clocked([task("a", "q", 4, start=300.0, run=60.0)], None) == events

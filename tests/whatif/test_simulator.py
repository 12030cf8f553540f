"""What holds whatever Kueue does: the worked examples, the clock, and what a model may not be."""

import json
from dataclasses import replace

import pytest

from hpkit.whatif import (
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
from hpkit.whatif.model import Admission, ClusterQueue
from tests.whatif import neutral

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


@pytest.mark.parametrize(("limit", "runs"), [(5, True), (3, True), (2, False)])
def test_a_team_borrows_as_far_as_its_limit_allows(limit, runs):
    model = Model((queue("a", 6, borrow=6), queue("b", 5, borrow=limit)), fair_sharing=BOTH)
    simulator, _ = run(model, task("a2", "a", 2), task("b4", "b", 4), task("b4more", "b", 4))
    assert ("b4more" in simulator.running()) == runs


def test_a_lender_gets_its_own_back_whatever_its_weight():
    john = queue("john", 12, borrow=6, weight=0.0)
    smith = queue("smith", 4, borrow=4, weight=100.0)
    tasks = [task("j1", "john", 8), task("s1", "smith", 8), task("j2", "john", 4)]
    simulator, evicted = run(Model((john, smith), fair_sharing=BOTH), *tasks)
    assert evicted == [("s1", "InCohortReclamation")]
    assert sorted(simulator.running()) == ["j1", "j2"]
    assert [each.parked for each in simulator.pending()] == [True]


def test_what_is_not_lent_is_in_nobodys_reach():
    model = Model((queue("a", 6, lend=0, borrow=0), queue("b", 5, borrow=5)), fair_sharing=BOTH)
    simulator, _ = run(model, task("b4", "b", 4), task("b4more", "b", 4))
    assert sorted(simulator.running()) == ["b4"]


def test_an_evicted_task_begins_anew_and_runs_to_its_end():
    model = Model((queue("a", 4, borrow=0), queue("b", 4, borrow=4)), fair_sharing=BOTH)
    events = []
    tasks = [
        task("b8", "b", 8, created=0.0, run=100.0),
        task("a4", "a", 4, created=50.0, run=30.0),
    ]
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


def test_pods_that_must_be_near_each_other_wait_for_one_domain():
    nodes = tuple(Node(f"n{n}", {"rack": f"r{n // 2}", "type": "gpu-node"}, {"gpu": 4, "pods": 10}) for n in range(4))
    levels = ("rack", "kubernetes.io/hostname")
    topology = Topology(levels, nodes, {"gpu-node": {"type": "gpu-node"}})
    model = Model((queue("a", 16),), topologies=(topology,), fair_sharing=BOTH)

    def placed(name, pods):
        return Workload(name, "a", (PodSet("main", pods, {"gpu": 4}, topology=TopologyRequest("required", "rack")),))

    simulator, _ = run(model, placed("one", 1), placed("two", 2), placed("another", 2))
    where = {name: dict(got[0].domains) for name, got in simulator.running().items()}
    assert where == {"one": {"n0": 1}, "two": {"n2": 1, "n3": 1}}
    simulator.finish("one")
    simulator.run_until_quiet()
    assert "another" in simulator.running()


def test_what_can_never_fit_says_so():
    simulator, _ = run(Model((queue("a", 4),)), task("large", "a", 5))
    assert [(each.reason, each.parked) for each in simulator.pending()] == [("ExceedsMaxQuota", True)]


def test_a_queue_that_is_held_admits_nothing():
    simulator, _ = run(Model((queue("a", 4, active=False),)), task("t", "a", 1))
    assert not simulator.running()


def test_what_contradicts_itself_is_refused():
    with pytest.raises(ValueError, match="no queue b"):
        Simulator(Model((queue("a", 1),)), [task("t", "b", 1)])
    with pytest.raises(ValueError, match="two workloads t"):
        Simulator(Model((queue("a", 1),)), [task("t", "a", 1), task("t", "a", 1)])
    circle = (Cohort("x", "y"), Cohort("y", "x"))
    with pytest.raises(ValueError, match="below itself"):
        Simulator(Model((queue("a", 1),), cohorts=circle))


def test_the_command_says_where_the_simulator_differs(tmp_path, capsys):
    case = neutral.read(neutral.Path(__file__).with_name("kept") / "recorded.json")[0]
    file = tmp_path / "cases.json"
    file.write_text(json.dumps({"cases": [case]}))
    assert neutral.main([str(file)]) == 0
    case["expect"]["admitted"].append({"name": "nobody", "pod_sets": []})
    file.write_text(json.dumps([case]))
    assert neutral.main([str(file)]) == 1
    assert "DIFFERS" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not JSON"),
        ("{}", "neither a list"),
        ('[{"id": "x", "kind": "odd"}]', "'odd' is none of"),
        (None, "No such"),
    ],
)
def test_a_file_without_cases_is_said(tmp_path, capsys, text, said):
    file = tmp_path / "cases.json"
    if text is not None:
        file.write_text(text)
    assert neutral.main([str(file)]) == 2
    assert said in capsys.readouterr().err


def test_places_are_those_of_the_fewest_domains():
    nodes = [
        {"name": f"n{n}", "labels": {"rack": rack}, "allocatable": {"gpu": gpus, "pods": 10}}
        for n, (rack, gpus) in enumerate([("r1", 2), ("r2", 2), ("r3", 1), ("r3", 1), ("r3", 1), ("r3", 1)])
    ]
    case = {
        "id": "racks",
        "kind": "placement",
        "levels": ["rack", "kubernetes.io/hostname"],
        "nodes": nodes,
        "request": {"mode": "preferred", "level": "rack", "count": 4, "per_pod": {"gpu": 1}},
        "expect": {"domains": [{"domain": f"n{n}", "count": 1} for n in (2, 3, 4, 5)]},
    }
    assert neutral.differences(case, neutral.run(case)) == []
    case["request"] = {"mode": "required", "level": "rack", "count": 5, "per_pod": {"gpu": 1}}
    case["expect"] = {"domains": None, "fits_only": 4}
    assert neutral.differences(case, neutral.run(case)) == []


def test_what_a_queue_uses_beyond_its_limit_is_not_given_away_twice():
    # "over" runs 8 of 2 + 1 borrowed, and its next finds nobody to evict; 2 of 10 are left, and two ask for them.
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

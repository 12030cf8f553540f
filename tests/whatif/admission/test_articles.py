"""The articles' statements about weights, order and lending, tested with the simulator and nightly with Kueue."""

import pytest

from tests.running import tools_required
from tests.whatif.admission import neutral, oracle
from tests.whatif.admission.test_differential import differs

FAIR = {"strategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]}


def queue(team, quota, *, borrow=0, weight=1.0, within="LowerPriority"):
    """Return a team's queue as task governance creates it: lent quota is reclaimed, regardless of priority."""
    limits = {"nominal": quota, "borrowing_limit": borrow, "lending_limit": None}
    return {
        "name": team,
        "cohort": "hyperpod-cohort",
        "queueing": "BestEffortFIFO",
        "fair_weight": weight,
        "preemption": {"within_queue": within, "reclaim_in_cohort": "Any", "borrow_within_cohort": None},
        "fungibility": {"when_can_borrow": "MayStopSearch", "when_can_preempt": "TryNextFlavor", "preference": None},
        "resource_groups": [{"resources": ["gpu"], "flavors": [{"name": "ml.g5.12xlarge", "quotas": {"gpu": limits}}]}],
    }


def task(name, team, gpus, *, priority=0):
    pods = [{"name": "main", "count": 1, "min_count": None, "per_pod": {"gpu": gpus}}]
    return {"name": name, "queue": team, "priority": priority, "pod_sets": pods}


def step(*tasks, finish=None):
    return {"submit": list(tasks), "finish": finish and {"queue": finish, "count": 1}}


def idle(a, b):
    """Return a pool of eight idle GPUs, and two teams without their own that borrow by their weights."""
    return [queue("pool", 8), queue("a", 0, borrow=8, weight=a), queue("b", 0, borrow=8, weight=b)]


def many(team, count):
    return [task(f"{team}{number}", team, 1) for number in range(count)]


def case(name, queues, *steps, fair=True):
    shared = {"fair_sharing": FAIR if fair else None, "feature_gates": {}, "cohorts": []}
    return {"id": name, "kind": "scenario", **shared, "queues": queues, "steps": list(steps)}


ALONE = [queue("a", 4)]
# In each case, b's tasks come before a's.
CASES = {
    example["id"]: example
    for example in (
        case("three to one", idle(3.0, 1.0), step(*many("b", 8), *many("a", 8))),
        case("weight of nothing", idle(1.0, 0.0), step(*many("b", 8)), step(*many("a", 8))),
        case("one for all, by weight", idle(3.0, 1.0), step(task("b", "b", 8), task("a", "a", 8))),
        case("one for all, by arrival", idle(3.0, 1.0), step(task("b", "b", 8), task("a", "a", 8)), fair=False),
        case(
            "one class",
            ALONE,
            step(task("runs", "a", 4, priority=80)),
            step(*(task(name, "a", 4, priority=80) for name in ("z-first", "m-second", "a-third"))),
            step(finish="a"),
            step(finish="a"),
        ),
        case(
            "three classes, and none",
            ALONE,
            step(task("runs", "a", 4, priority=80)),
            step(*(task(f"of {rank}", "a", 4, priority=rank) for rank in (0, 10, 80, 40))),
            step(finish="a"),
            step(finish="a"),
            step(finish="a"),
            step(finish="a"),
        ),
        *(
            case(
                f"lent by a team with {within}",
                [queue("a", 4, within=within), queue("b", 4, borrow=4)],
                step(task("own", "b", 4), task("borrows", "b", 4, priority=100)),
                step(task("comes", "a", 4)),
            )
            for within in ("Never", "LowerPriority")
        ),
        case(
            "no preemption within",
            [queue("a", 4, within="Never")],
            step(task("low", "a", 4)),
            step(task("high", "a", 4, priority=100)),
        ),
        case(
            "five borrowed",
            [queue("ml-engineering", 8, borrow=8), queue("research", 8)],
            step(task("research", "research", 3), task("own", "ml-engineering", 8), task("more", "ml-engineering", 5)),
        ),
    )
}


def outcome(name):
    """Return the tasks that run after each step, and those preempted in it."""
    return [(each["admitted"], [one["name"] for one in each["preempted"]]) for each in neutral.run(CASES[name])]


@pytest.mark.nightly
@pytest.mark.slow
def test_kueues_own_scheduler_does_all_that_is_said_here():
    with tools_required():
        oracle.binary()
    answers = oracle.ask(list(CASES.values()), times=3)
    for name, (answer, *others) in zip(CASES, answers, strict=True):
        assert others == [], f"{name}: nothing is left to chance"
        assert differs(CASES[name], answer) == [], name


def counted(names):
    return {team: sum(name.startswith(team) for name in names) for team in ("a", "b")}


def test_idle_compute_goes_by_the_weights_of_the_teams_that_want_it():
    ((admitted, _),) = outcome("three to one")
    assert counted(admitted) == {"a": 6, "b": 2}


def test_a_weight_of_nothing_has_idle_compute_only_for_as_long_as_nobody_else_wants_it():
    (before, _), (after, preempted) = outcome("weight of nothing")
    assert counted(before) == {"a": 0, "b": 8}
    assert counted(after) == {"a": 8, "b": 0}
    assert counted(preempted) == {"a": 0, "b": 8}


def test_what_only_one_can_have_goes_to_the_heavier_team_or_without_fair_share_to_who_came_first():
    assert outcome("one for all, by weight") == [(["a"], [])]
    assert outcome("one for all, by arrival") == [(["b"], [])]


def test_tasks_of_a_class_go_by_age():
    assert [admitted for admitted, _ in outcome("one class")][2:] == [["z-first"], ["m-second"]]


def test_tasks_go_by_class_and_those_without_one_last():
    order = [admitted for admitted, _ in outcome("three classes, and none")][2:]
    assert order == [["of 80"], ["of 40"], ["of 10"], ["of 0"]]


@pytest.mark.parametrize("within", ["Never", "LowerPriority"])
def test_what_a_team_has_lent_comes_back_whatever_it_says_of_its_own_tasks(within):
    (before, _), (after, preempted) = outcome(f"lent by a team with {within}")
    assert before == ["borrows", "own"]
    assert "comes" in after
    assert len(preempted) == 1


def test_a_team_that_preempts_none_of_its_own_lets_the_higher_wait():
    assert outcome("no preemption within") == [(["low"], []), (["low"], [])]


def test_a_team_uses_five_gpus_of_another():
    assert outcome("five borrowed") == [(["more", "own", "research"], [])]

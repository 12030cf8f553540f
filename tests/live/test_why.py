"""What would let a task run now, by the simulator."""

import pytest

from hpkit.errors import SelectionError
from hpkit.live.why import explain, find_task
from tests.live.builders import GPU, KIND, observed, queue, task

FAIR = ("LessThanOrEqualToFinalShare", "LessThanInitialShare")
SHORT = f"insufficient unused quota for {GPU} in flavor {KIND}, 4 more needed"


TEAMS = (queue("john", 12, limit=6), queue("smith", 4, limit=4))


def why(name, *tasks, classes=None, queues=TEAMS):
    seen = observed(queues=queues, tasks=tasks, priority_classes=classes or {})
    return explain(seen, find_task(seen, name, None), fair_sharing=FAIR)


def test_each_task_whose_end_would_be_enough_is_named():
    found = why(
        "wait",
        task("john", "own", 3, runs=True),
        task("smith", "lend", 1, runs=True),
        task("smith", "wait", 1, QuotaReserved=(False, "Pending", SHORT)),
    )
    assert found.reason == f"4 more {GPU} of {KIND} must become free"
    assert found.holders == (f"john holds 12 {GPU} of {KIND}", f"smith holds 4 {GPU} of {KIND}")
    assert found.remedies == ("task own ends", "task lend ends")


def test_a_higher_priority_helps_where_it_preempts():
    found = why(
        "wait",
        task("smith", "low", 2, runs=True, priority=10),
        task("smith", "wait", 2, priority=10),
        task("john", "own", 2, runs=True),
        classes={"training-priority": 80, "experiment-priority": 40, "none-priority": 10},
    )
    assert "it gets the priority class experiment-priority; then it preempts low" in found.remedies


def test_fewer_pods_help_where_some_fit():
    found = why("wait", task("john", "own", 2, runs=True), task("smith", "wait", 6))
    assert found.remedies == ("it asks for 2 of its 6 pods",)


def test_what_can_never_run_is_told_how_much_can():
    found = why(
        "wait", task("john", "own", 3, runs=True), task("smith", "lend", 1, runs=True), task("smith", "wait", 6)
    )
    assert found.remedies == ("it asks for at most 2 of its 6 pods, and others end",)


def test_a_task_that_the_simulator_admits_needs_nothing():
    assert why("wait", task("smith", "wait", 1)).remedies == (
        "nothing: the simulator admits it as things are; Kueue should within seconds",
    )


def test_a_task_that_ended_or_runs_says_so_and_for_whom_it_was_preempted():
    said = "Preempted to accommodate a workload (UID: uid-own, JobUID: 1) due to reclamation within the cohort"
    back = task("smith", "back", 1, runs=True, Preempted=(True, "InCohortReclamation", said))
    found = why("back", back, task("john", "own", 3, runs=True))
    assert found.reason == ("it runs. Before, it was preempted, since the team that had lent the quota needed it back")
    assert (found.preempted_by, found.holders, found.remedies) == ("own of john", (), ())
    ended = why("bad", task("smith", "bad", 1, Finished=(True, "Failed", "BackoffLimitExceeded")))
    assert ended.reason == "it has failed: BackoffLimitExceeded"


def test_a_queue_that_admits_nothing_is_the_whole_answer():
    queues = (queue("smith", 4, active=False, message="stopped"),)
    found = why("wait", task("smith", "wait", 1), queues=queues)
    assert (found.reason, found.remedies) == ("its queue admits nothing: stopped", ())


def test_a_task_is_found_by_the_name_of_its_job_or_its_workload():
    seen = observed(tasks=(task("john", "a", 1, minutes=9), task("john", "a", 1, minutes=1), task("smith", "b", 1)))
    assert find_task(seen, "a", None).created.minute == 59
    assert find_task(seen, "job-b", "smith").owner_name == "b"
    with pytest.raises(SelectionError, match="no task c; it knows a, b"):
        find_task(seen, "c", None)
    with pytest.raises(SelectionError, match="no task b of team john"):
        find_task(seen, "b", "john")
    both = observed(tasks=(task("john", "a", 1), task("smith", "a", 1)))
    with pytest.raises(SelectionError, match="john, smith each have a task a: say whose with --team"):
        find_task(both, "a", None)
    with pytest.raises(SelectionError, match="it knows none at all"):
        find_task(observed(), "a", None)
